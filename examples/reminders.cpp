// Timers as values: a pool keeps the payloads. An id names a timer, and stays safe to use when the
// timer is gone.
//
//   g++ -std=c++20 -Iinclude examples/reminders.cpp && ./a.out

#include <carillon/wheel/timer_pool.h>

#include <cstdio>
#include <string>

int main() {
  carillon::TimerPool<std::string> reminders;
  reminders.schedule_after(3, "tea");
  const carillon::TimerId call = reminders.schedule_after(5, "call home");
  reminders.schedule(carillon::Moment{10'000'000'000}, "the year 2286");

  const bool cancelled = reminders.cancel(call);
  const bool again = reminders.cancel(call);
  std::printf("cancelled: %s, and again: %s\n", cancelled ? "yes" : "no", again ? "yes" : "no");

  // From one wake-up to the next, not tick by tick.
  while (const auto wakeup = reminders.next_wakeup()) {
    reminders.advance(*wakeup, [&reminders](carillon::TimerId, const std::string& text) {
      std::printf("%12llu: %s\n", static_cast<unsigned long long>(reminders.now()), text.c_str());
    });
  }
  return cancelled && !again ? 0 : 1;
}
