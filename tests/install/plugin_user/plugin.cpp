// A plugin that uses a timer service.
#include <carillon/timer/timer_service.h>

#include <chrono>
#include <memory>

namespace {

using namespace std::chrono_literals;

// Ended when the plugin is unloaded.
std::unique_ptr<carillon::TimerService> running;

// The same, with a call on the thread that unloads it, which may have used no timer before.
struct Ended {
  std::unique_ptr<carillon::TimerService> timers;
  carillon::TimerHandle timer;
  bool stop = false;

  ~Ended() {
    if (timers == nullptr) return;
    if (stop) {
      static_cast<void>(timers->stop());
    } else {
      timer.cancel();
    }
  }
};
Ended ended;

int begin(bool stop) {
  ended.stop = stop;
  ended.timers = std::make_unique<carillon::TimerService>();
  ended.timer = ended.timers->schedule_every(1h, [] {});
  return 1;
}

}  // namespace

// Returns the number of tasks that have run.
extern "C" int use_timers() {
  int runs = 0;
  carillon::TimerService timers;
  timers.schedule_after(1ms, [&runs] { ++runs; });
  timers.schedule_after(1h, [&runs] { ++runs; }).cancel();
  timers.drain();
  return runs;
}

extern "C" int begin_service_to_stop() {
  return begin(true);
}
extern "C" int begin_service_to_cancel() {
  return begin(false);
}

extern "C" int begin_service() {
  running = std::make_unique<carillon::TimerService>();
  running->schedule_every(1ms, [] {});
  return 1;
}
