// A user's program: three timers on a wheel, one of them cancelled. Checks the order of firing.
#include "carillon/wheel/hierarchical_wheel.h"

#include <cstdio>
#include <vector>

int main() {
  carillon::HierarchicalWheel<> wheel;
  carillon::TimerNode late, early, cancelled;
  wheel.schedule(late, carillon::Moment{70'000});
  wheel.schedule_after(cancelled, 500);
  wheel.schedule(early, wheel.now() + 3);
  wheel.cancel(cancelled);

  std::vector<carillon::TimerNode*> fired;
  wheel.advance(100'000, [&](carillon::TimerNode& timer) { fired.push_back(&timer); });
  if (fired != std::vector{&early, &late} || !wheel.empty()) {
    std::puts("expected the early timer, then the late one, and nothing else");
    return 1;
  }
  return 0;
}
