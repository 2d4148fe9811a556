// A user's program: schedules two cron timers, and asks one schedule for its next time.
#include <chrono>
#include <cstdio>

#include "carillon/timer/timer_service.h"

int main() {
  const carillon::CronSchedule mornings("0 9 * * MON-FRI", "Europe/Berlin");
  const auto next = mornings.next(std::chrono::sys_days(std::chrono::year(2024) / 7 / 5) +
                                  std::chrono::hours(12));
  carillon::TimerService timers;
  timers.schedule_cron(mornings, [] {});
  timers.schedule_cron("@daily", "UTC", [] {});
  if (next != std::chrono::sys_days(std::chrono::year(2024) / 7 / 8) + std::chrono::hours(7) ||
      timers.stop().size() != 2) {
    std::puts("expected Monday at nine, summer time, and two timers");
    return 1;
  }
  return 0;
}
