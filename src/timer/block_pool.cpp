// The pool of timer blocks: a free list per thread, and one depot for all threads, between which
// blocks move in batches.
#include <cstddef>
#include <mutex>
#include <new>

#include "carillon/timer/detail/timer_block.h"

namespace carillon::detail {
namespace {

constexpr std::size_t kBatch = 64;
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
  TimerBlock& pop() noexcept {
    TimerBlock& block = *head;
    head = block.next;
    --count;
    return block;
  }
};

// Batches of free blocks. Never destroyed: blocks may be released while the process ends.
class Depot {
 public:
  static Depot& instance() {
    static Depot* const depot = new Depot;
    return *depot;
  }

  FreeList take() {
    {
      const std::lock_guard lock(mutex_);
      if (batches_ != nullptr) {
        Batch* batch = batches_;
        batches_ = batch->next;
        return {batch->head, batch->count};
      }
    }
    return make();
  }

  void give(FreeList list) noexcept {
    if (list.head == nullptr) return;
    // An empty task storage holds what the depot needs to know.
    auto* batch = new (list.head->task.bytes) Batch{nullptr, list.head, list.count};
    const std::lock_guard lock(mutex_);
    batch->next = batches_;
    batches_ = batch;
  }

 private:
  struct Batch {
    Batch* next;
    TimerBlock* head;
    std::size_t count;
  };
  static_assert(sizeof(Batch) <= TaskStorage::kInPlace);

  FreeList make() {
    auto* blocks = static_cast<TimerBlock*>(
        ::operator new (kSlab * sizeof(TimerBlock), std::align_val_t{alignof(TimerBlock)}));
    FreeList list{nullptr, 0};
    for (std::size_t i = kSlab; i-- > 0;) {
      list.push(*new (blocks + i) TimerBlock);
      if (i % kBatch == 0 && i > 0) {
        give(list);
        list = {nullptr, 0};
      }
    }
    return list;
  }

  std::mutex mutex_;
  Batch* batches_ = nullptr;
};

// Constant initialisation and no destructor, so that getting at them costs nothing, and works while
// the thread ends.
constinit thread_local FreeList near_list{nullptr, 0};  // used first; at most kBatch
constinit thread_local FreeList far_list{nullptr, 0};   // empty, or a whole batch
constinit thread_local std::size_t room =
    0;  // kBatch once the thread is known to give back what it has when it ends
constinit thread_local bool thread_ends = false;

struct GiveBackAtThreadEnd {
  GiveBackAtThreadEnd() noexcept { room = kBatch; }
  void exist() noexcept {
  }  // a call makes the object, so that its destructor runs when the thread ends
  ~GiveBackAtThreadEnd() {
    thread_ends = true;
    room = 0;
    Depot::instance().give(near_list);
    Depot::instance().give(far_list);
    near_list = far_list = {nullptr, 0};
  }
};
thread_local GiveBackAtThreadEnd give_back;

[[gnu::noinline]] TimerBlock& acquire_slowly() {
  if (far_list.head != nullptr) {
    near_list = far_list;
    far_list = {nullptr, 0};
  } else {
    if (!thread_ends) give_back.exist();
    near_list = Depot::instance().take();
  }
  return near_list.pop();
}

[[gnu::noinline]] void release_slowly(TimerBlock& block) noexcept {
  if (thread_ends) {
    block.next = nullptr;
    Depot::instance().give({&block, 1});
    return;
  }
  give_back.exist();
  if (near_list.count < room) return near_list.push(block);
  Depot::instance().give(far_list);
  far_list = near_list;
  near_list = {nullptr, 0};
  near_list.push(block);
}

}  // namespace

TimerBlock& acquire_block() {
  if (near_list.head == nullptr) [[unlikely]]
    return acquire_slowly();
  TimerBlock& block = near_list.pop();
  __builtin_prefetch(near_list.head, 1);
  return block;
}

void release_block(TimerBlock& block) noexcept {
  if (near_list.count >= room) [[unlikely]]
    return release_slowly(block);
  near_list.push(block);
}

}  // namespace carillon::detail
