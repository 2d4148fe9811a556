// The pool of timer blocks: a free list per thread, and one depot for all threads. Blocks move
// between them in bundles of up to 64.
#include <cstddef>
#include <mutex>
#include <new>
#include <utility>

#include "carillon/require.h"
#include "carillon/timer/detail/timer_block.h"
#include "timer/block_pool.h"
#include "timer/forks.h"

namespace carillon::detail {
namespace {

constexpr std::size_t kBundle = 64;
constexpr std::size_t kSlab = 512;  // blocks: 64 KiB

// A list of free blocks, linked by `next`.
struct FreeList {
  TimerBlock* head;
  std::size_t count;

  void push(TimerBlock& block) noexcept {
    block.next = head;
    head = &block;
    ++count;
  }
  // REQUIRES: not empty.
  TimerBlock& pop() noexcept {
    CARILLON_REQUIRE(head != nullptr);
    TimerBlock& block = *head;
    head = block.next;
    --count;
    return block;
  }
};

// Bundles of free blocks. Never destroyed: blocks may be released while the process ends.
class Depot {
 public:
  static Depot& instance() {
    static Depot* const depot = make_depot();
    return *depot;
  }

  FreeList take() {
    {
      const std::lock_guard lock(mutex_);
      if (bundles_ != nullptr) {
        Bundle* bundle = bundles_;
        bundles_ = bundle->next;
        return {bundle->head, bundle->count};
      }
      if (singles_.head != nullptr) return std::exchange(singles_, FreeList{nullptr, 0});
    }
    return make();
  }

  void give(FreeList list) noexcept {
    if (list.head == nullptr) return;
    const std::lock_guard lock(mutex_);
    add(list);
  }

  void give_one(TimerBlock& block) noexcept {
    const std::lock_guard lock(mutex_);
    singles_.push(block);
    if (singles_.count == kBundle) add(std::exchange(singles_, FreeList{nullptr, 0}));
  }

 private:
  struct Bundle {
    Bundle* next;
    TimerBlock* head;
    std::size_t count;
  };
  static_assert(sizeof(Bundle) <= TaskStorage::kInPlace);

  // REQUIRES: the mutex is held, and the list is not empty.
  void add(FreeList list) noexcept {
    CARILLON_REQUIRE(list.head != nullptr);
    // The first block's task storage is free: it holds the bundle's entry in the depot.
    bundles_ = new (list.head->task.bytes) Bundle{bundles_, list.head, list.count};
  }

  static Depot* make_depot() {
    hold_during_forks<[]() -> std::mutex& { return instance().mutex_; }>();
    return new Depot;
  }

  FreeList make() {
    auto* blocks = static_cast<TimerBlock*>(
        ::operator new (kSlab * sizeof(TimerBlock), std::align_val_t{alignof(TimerBlock)}));
    FreeList list{nullptr, 0};
    for (std::size_t i = kSlab; i-- > 0;) {
      list.push(*new (blocks + i) TimerBlock);
      if (i % kBundle == 0 && i > 0) {
        give(list);
        list = {nullptr, 0};
      }
    }
    return list;
  }

  std::mutex mutex_;
  Bundle* bundles_ = nullptr;
  FreeList singles_{nullptr, 0};  // less than a bundle
};

// Constant initialisation and no destructor, so that getting at them costs nothing, and works while
// the thread ends.
constinit thread_local FreeList first_list{nullptr, 0};   // used first; at most kBundle blocks
constinit thread_local FreeList second_list{nullptr, 0};  // empty, or a whole bundle
// kBundle once it is certain that the thread gives its blocks back when it ends; 0 before.
constinit thread_local std::size_t room = 0;
constinit thread_local bool keeps_none = false;  // it ends, or KeepsNoBlocks

struct GiveBackAtThreadEnd : KeepsBlocks {
  // Any call makes the object, so that its destructor runs when the thread ends.
  void exist() noexcept {}
};
thread_local GiveBackAtThreadEnd give_back;

[[gnu::noinline]] TimerBlock& acquire_slowly() {
  if (keeps_none) {  // nothing would give back what the thread kept
    FreeList bundle = Depot::instance().take();
    TimerBlock& block = bundle.pop();
    Depot::instance().give(bundle);
    return block;
  }
  if (second_list.head != nullptr) {
    first_list = second_list;
    second_list = {nullptr, 0};
  } else {
    if (room == 0) give_back.exist();
    first_list = Depot::instance().take();
  }
  return first_list.pop();
}

[[gnu::noinline]] void release_slowly(TimerBlock& block) noexcept {
  if (room == 0) return Depot::instance().give_one(block);
  Depot::instance().give(second_list);
  second_list = first_list;
  first_list = {nullptr, 0};
  first_list.push(block);
}

}  // namespace

KeepsBlocks::KeepsBlocks() noexcept {
  room = kBundle;
}
KeepsBlocks::~KeepsBlocks() {
  keeps_none = true;
  room = 0;
  Depot::instance().give(first_list);
  Depot::instance().give(second_list);
  first_list = second_list = {nullptr, 0};
}

KeepsNoBlocks::KeepsNoBlocks() noexcept : changed_(room == 0 && !keeps_none) {
  if (changed_) keeps_none = true;
}
KeepsNoBlocks::~KeepsNoBlocks() {
  if (changed_) keeps_none = false;
}

TimerBlock& acquire_block() {
  if (first_list.head == nullptr) [[unlikely]]
    return acquire_slowly();
  TimerBlock& block = first_list.pop();
  __builtin_prefetch(first_list.head, 1);
  return block;
}

void release_block(TimerBlock& block) noexcept {
  CARILLON_REQUIRE(block.word.is_free(), block.word.generation());
  if (first_list.count >= room) [[unlikely]]
    return release_slowly(block);
  first_list.push(block);
}

}  // namespace carillon::detail
