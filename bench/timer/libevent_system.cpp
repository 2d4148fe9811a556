// libevent's timers as a contestant. After evthread_use_pthreads() any thread may use an
// event_base, which has a lock.
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/thread.h>

#include <stdexcept>
#include <thread>

#include "timer/contestant.h"

namespace carillon::bench {
namespace {

class LibeventSystem {
 public:
  static bool takes_part(Trial) { return true; }

  LibeventSystem(std::size_t slots, unsigned, FireLog& log) : log_(log), events_(slots) {
    if (evthread_use_pthreads() != 0) throw std::runtime_error("libevent: no threads");
    base_ = event_base_new();
    if (base_ == nullptr) throw std::runtime_error("libevent: no base");
    for (std::size_t slot = 0; slot < slots; ++slot) {
      events_[slot].system = this;
      evtimer_assign(&events_[slot].entry, base_, on_timer, &events_[slot]);
    }
    thread_ = std::thread([this] { event_base_loop(base_, EVLOOP_NO_EXIT_ON_EMPTY); });
  }

  void schedule(unsigned, std::size_t slot, milliseconds delay) {
    timeval after{};
    after.tv_sec = delay.count() / 1000;
    after.tv_usec = delay.count() % 1000 * 1000;
    log_.expect(slot, delay);
    evtimer_add(&events_[slot].entry, &after);
  }
  void cancel(unsigned, std::size_t slot) { evtimer_del(&events_[slot].entry); }
  void finish(unsigned) {}
  void settle() {}  // calls take effect at once

 private:
  struct Timer {
    ::event entry{};
    LibeventSystem* system = nullptr;
  };

  static void on_timer(evutil_socket_t, short, void* context) {
    Timer& timer = *static_cast<Timer*>(context);
    timer.system->log_.fire(static_cast<std::size_t>(&timer - timer.system->events_.data()));
  }

  FireLog& log_;
  event_base* base_ = nullptr;
  std::vector<Timer> events_;
  std::thread thread_;
};

const Registration<LibeventSystem> kRegistration("libevent", 330);

}  // namespace
}  // namespace carillon::bench
