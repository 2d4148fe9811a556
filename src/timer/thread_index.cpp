#include "timer/thread_index.h"

#include <mutex>
#include <vector>

#include "timer/forks.h"

namespace carillon::detail {
namespace {

// The indices in use. Never destroyed: threads may end after main().
struct Indices {
  std::mutex mutex;
  std::vector<bool> taken;

  static Indices& instance() {
    static Indices* const indices = [] {
      hold_during_forks<[]() -> std::mutex& { return instance().mutex; }>();
      return new Indices;
    }();
    return *indices;
  }

  std::size_t take() noexcept {
    const std::lock_guard lock(mutex);
    std::size_t index = 0;
    while (index < taken.size() && taken[index]) ++index;
    try {
      if (index == taken.size()) taken.push_back(false);
    } catch (...) {
      return 0;  // shared with another thread: slower, but not wrong
    }
    taken[index] = true;
    return index;
  }
  void give_back(std::size_t index) noexcept {
    const std::lock_guard lock(mutex);
    if (index < taken.size()) taken[index] = false;
  }
};

constexpr std::size_t kNone = ~std::size_t{0};

// Constant initialisation and no destructor: reading it is one load. A thread that schedules while
// it ends, after the index was given back, keeps using it.
constinit thread_local std::size_t own_index = kNone;

struct ReturnIndexAtThreadEnd {
  // Any call makes the object, so that its destructor runs when the thread ends.
  void exist() noexcept {}
  ~ReturnIndexAtThreadEnd() { Indices::instance().give_back(own_index); }
};
thread_local ReturnIndexAtThreadEnd return_index;

[[gnu::noinline]] std::size_t take_index() noexcept {
  own_index = Indices::instance().take();
  return_index.exist();
  return own_index;
}

}  // namespace

std::size_t index_of_this_thread() noexcept {
  return own_index != kNone ? own_index : take_index();
}

}  // namespace carillon::detail
