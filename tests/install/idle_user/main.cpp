// A user's program: two connections, one of which sends packets.
#include "carillon/idle/idle_tracker.h"

#include <cstdio>

int main() {
  carillon::IdleTracker<int> tracker(carillon::Ticks{30});
  tracker.add(1);
  const carillon::IdleId id = tracker.add(2);
  int found = 0;
  for (carillon::Tick tick = 1; tick <= 100; ++tick) {
    tracker.advance(tick, [&](carillon::IdleId, int key) { found += key; });
    tracker.touch(id);
  }
  if (found != 1 || tracker.size() != 1) {
    std::puts("expected the silent connection, and nothing else");
    return 1;
  }
  return 0;
}
