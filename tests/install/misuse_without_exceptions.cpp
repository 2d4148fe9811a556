// Goes back in time, with a wheel or with an idle tracker. Neither call may return.
#include <cstdio>
#include <string_view>

#include "carillon/idle/idle_tracker.h"
#include "carillon/wheel/hierarchical_wheel.h"

int main(int, char** arguments) {
  if (arguments[1] == std::string_view("wheel")) {
    carillon::HierarchicalWheel<> wheel(100);
    wheel.advance(99, [](carillon::TimerNode&) {});
  } else {
    carillon::IdleTracker<int> tracker(carillon::Ticks{30}, 100);
    tracker.advance(99, [](carillon::IdleId, int) {});
  }
  std::puts("it went on");
  return 0;
}
