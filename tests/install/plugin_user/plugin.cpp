// A plugin that uses a timer service.
#include <carillon/timer/timer_service.h>

#include <chrono>
#include <memory>

namespace {

using namespace std::chrono_literals;

// Ended when the plugin is unloaded.
std::unique_ptr<carillon::TimerService> running;

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

extern "C" int begin_service() {
  running = std::make_unique<carillon::TimerService>();
  running->schedule_every(1ms, [] {});
  return 1;
}
