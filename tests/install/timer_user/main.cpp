// A user's program: two timers, one of them cancelled.
#include <chrono>
#include <cstdio>

#include "carillon/timer/timer_service.h"

int main() {
  using namespace std::chrono_literals;
  carillon::TimerService timers;
  int fired = 0;
  timers.schedule_after(1ms, [&] { ++fired; });
  carillon::TimerHandle cancelled = timers.schedule_after(1h, [&] { fired += 100; });
  if (!cancelled.cancel() || !timers.drain().empty() || fired != 1) {
    std::puts("expected one timer to fire, and the other to be cancelled");
    return 1;
  }
  return 0;
}
