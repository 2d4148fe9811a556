#include "timer/thread_index.h"

#include <mutex>
#include <vector>

namespace carillon::detail {
namespace {

// Never destroyed: threads may end after main().
struct Homes {
  std::mutex mutex;
  std::vector<bool> taken;

  static Homes& instance() {
    static Homes* const homes = new Homes;
    return *homes;
  }

  std::size_t take() noexcept {
    const std::lock_guard lock(mutex);
    std::size_t home = 0;
    while (home < taken.size() && taken[home]) ++home;
    try {
      if (home == taken.size()) taken.push_back(false);
    } catch (...) {
      return 0;  // shared with another: slower, not wrong
    }
    taken[home] = true;
    return home;
  }
  void give_back(std::size_t home) noexcept {
    const std::lock_guard lock(mutex);
    if (home < taken.size()) taken[home] = false;
  }
};

constexpr std::size_t kNone = ~std::size_t{0};

// Constant initialisation, no destructor: reading it is one load. A thread that schedules while it
// ends keeps its old number.
constinit thread_local std::size_t home = kNone;

struct GiveBackAtThreadEnd {
  void exist() noexcept {}
  ~GiveBackAtThreadEnd() { Homes::instance().give_back(home); }
};
thread_local GiveBackAtThreadEnd give_back;

[[gnu::noinline]] std::size_t find_home() noexcept {
  home = Homes::instance().take();
  give_back.exist();
  return home;
}

}  // namespace

std::size_t home_of_this_thread() noexcept {
  return home != kNone ? home : find_home();
}

}  // namespace carillon::detail
