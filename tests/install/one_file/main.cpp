// A user's program that has one file of the library. With the argument "past" it makes a mistake.
#include "carillon_wheel.hpp"

#include <cstdio>

int main(int argc, char**) {
  carillon::HierarchicalWheel<> wheel;
  carillon::TimerNode timer;
  wheel.schedule(timer, wheel.now() + 5);
  int fired = 0;
  wheel.advance(10, [&](carillon::TimerNode&) { ++fired; });

  carillon::TimerPool<int> pool;
  const carillon::TimerId cancelled = pool.schedule_after(5, 100);
  pool.schedule(carillon::Moment{6}, 20);
  pool.cancel(cancelled);
  pool.advance(9, [&](carillon::TimerId, int&& key) { fired += key; });

  if (argc > 1) wheel.advance(0, [](carillon::TimerNode&) {});
  if (fired != 21) std::puts("expected the timer of the wheel, and the second of the pool");
  return fired == 21 ? 0 : 1;
}
