// libuv's timers as a contestant. The only function of a loop that other threads may call is
// uv_async_send(). So producers put their orders on a list under a mutex, and the loop carries them
// out.
#include <uv.h>

#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "timer/contestant.h"

namespace carillon::bench {
namespace {

class LibuvSystem {
 public:
  static bool takes_part(Trial) { return true; }

  LibuvSystem(std::size_t slots, unsigned, FireLog& log) : log_(log), timers_(slots) {
    if (uv_loop_init(&loop_) != 0) throw std::runtime_error("libuv: no loop");
    loop_.data = this;
    uv_async_init(&loop_, &async_, [](uv_async_t* async) { of(*async->loop).do_orders(); });
    for (auto& timer : timers_) uv_timer_init(&loop_, &timer);
    thread_ = std::thread([this] { uv_run(&loop_, UV_RUN_DEFAULT); });
  }

  void schedule(unsigned, std::size_t slot, milliseconds delay) {
    tell({slot, delay.count(), nullptr});
  }
  void cancel(unsigned, std::size_t slot) { tell({slot, kCancel, nullptr}); }
  void finish(unsigned) { settle(); }
  void settle() {
    std::promise<void> done;
    tell({0, 0, &done});
    done.get_future().wait();
  }

 private:
  static constexpr std::int64_t kCancel = -1;
  struct Order {
    std::size_t slot;
    std::int64_t delay;
    std::promise<void>* done;  // not null: set when all orders before this one are carried out
  };

  static LibuvSystem& of(const uv_loop_t& loop) { return *static_cast<LibuvSystem*>(loop.data); }

  void tell(Order order) {
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      first = orders_.empty();
      orders_.push_back(order);
    }
    if (first) uv_async_send(&async_);
  }

  void do_orders() {
    {
      const std::lock_guard lock(mutex_);
      std::swap(orders_, present_);
    }
    for (const Order& order : present_) carry_out(order);
    present_.clear();
  }

  void carry_out(const Order& order) {
    if (order.done != nullptr) return order.done->set_value();
    uv_timer_t& timer = timers_[order.slot];
    if (order.delay == kCancel) {
      uv_timer_stop(&timer);
      return;
    }
    // The loop reads its clock only once per turn. Without this update the delay would count from
    // the start of the turn, and the timer would be early by our clock.
    if (log_.on()) uv_update_time(&loop_);
    log_.expect(order.slot, milliseconds(order.delay));
    uv_timer_start(&timer, on_timer, static_cast<std::uint64_t>(order.delay), 0);
  }

  static void on_timer(uv_timer_t* timer) {
    LibuvSystem& system = of(*timer->loop);
    system.log_.fire(static_cast<std::size_t>(timer - system.timers_.data()));
  }

  FireLog& log_;
  uv_loop_t loop_{};
  uv_async_t async_{};
  std::vector<uv_timer_t> timers_;
  std::mutex mutex_;
  std::vector<Order> orders_;   // guarded by mutex_
  std::vector<Order> present_;  // being carried out; used by the loop's thread only
  std::thread thread_;
};

const Registration<LibuvSystem> kRegistration("libuv", 320);

}  // namespace
}  // namespace carillon::bench
