// libuv's timers as a contestant: uv_timer_t in the loop's binary heap.
#include <uv.h>

#include <span>
#include <stdexcept>

#include "contestant.h"
#include "fire_call.h"
#include "virtual_time.h"

namespace carillon::bench {
namespace {

class LibuvSystem {
 public:
  static constexpr Tick kRange = kEveryRange;
  static constexpr bool kHandles = false;
  static constexpr bool kSleeps = true;

  struct Timer {
    uv_timer_t timer{};
    Payload payload{};
  };

  explicit LibuvSystem(std::span<Timer> timers) : timers_(timers) {
    VirtualTime::reset();
    if (uv_loop_init(&loop_) != 0) throw std::runtime_error("libuv: no loop");
    loop_.data = this;
    for (auto& each : timers_) {
      uv_timer_init(&loop_, &each.timer);
      each.timer.data = &each;
    }
    uv_update_time(&loop_);
  }
  LibuvSystem(const LibuvSystem&) = delete;
  LibuvSystem& operator=(const LibuvSystem&) = delete;
  ~LibuvSystem() {
    for (auto& each : timers_) uv_close(reinterpret_cast<uv_handle_t*>(&each.timer), nullptr);
    uv_run(&loop_, UV_RUN_DEFAULT);
    uv_loop_close(&loop_);
  }

  void schedule(Timer& timer, Tick expiry) {
    uv_timer_start(&timer.timer, on_timer, expiry - VirtualTime::tick(), 0);
  }
  void cancel(Timer& timer) { uv_timer_stop(&timer.timer); }
  // uv_timer_start() stops a pending timer.
  void reschedule(Timer& timer, Tick expiry) { schedule(timer, expiry); }

  template <class Fire>
  void advance(Tick to, Fire&& fire) {
    VirtualTime::set_tick(to);
    fire_.set(fire);
    uv_run(&loop_, UV_RUN_NOWAIT);
  }
  template <class Fire>
  void run_to_end(Fire&& fire) {
    fire_.set(fire);
    uv_run(&loop_, UV_RUN_DEFAULT);
  }

 private:
  static void on_timer(uv_timer_t* handle) {
    const auto& system = *static_cast<LibuvSystem*>(handle->loop->data);
    system.fire_(*static_cast<Timer*>(handle->data));
  }

  std::span<Timer> timers_;
  uv_loop_t loop_{};
  FireCall<Timer> fire_;
};

const Registration<LibuvSystem> kRegistration({.name = "libuv timers", .rank = 320});

}  // namespace
}  // namespace carillon::bench
