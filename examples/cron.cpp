// A cron expression in a time zone: prints its next times, and runs at each of them.
//
//   cron "0 9 * * MON-FRI" Europe/Berlin                  # the next 5 times; waits for them
//   cron "30 2 * * *" Europe/Berlin 3 2024-03-29T12:00    # 3 times after that UTC time, without
//                                                         # waiting: on a clock set by the program

#include <carillon/timer/manual_clock.h>
#include <carillon/timer/timer_service.h>
#include <date/tz.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using std::chrono::sys_seconds;

std::string show(sys_seconds time, const std::string& zone) {
  return date::format("%a %F %T %Z", date::make_zoned(zone, time));
}

sys_seconds read_utc(const std::string& text) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  unsigned hour = 0;
  unsigned minute = 0;
  if (std::sscanf(text.c_str(), "%d-%u-%uT%u:%u", &year, &month, &day, &hour, &minute) != 5)
    throw std::invalid_argument("not a time like 2024-03-29T12:00: " + text);
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  return std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute);
}

std::vector<sys_seconds> next_times(const carillon::CronSchedule& schedule, sys_seconds after,
                                    int count) {
  std::vector<sys_seconds> times;
  while (static_cast<int>(times.size()) < count) {
    const auto next = schedule.next(after);
    if (!next.has_value()) break;
    times.push_back(after = *next);
  }
  return times;
}

void run(const carillon::CronSchedule& schedule, const std::vector<sys_seconds>& times,
         const std::shared_ptr<carillon::ManualClock>& rehearsal) {
  const std::shared_ptr<carillon::TimerClock> clock =
      rehearsal != nullptr ? rehearsal : carillon::machine_clock();
  std::counting_semaphore<> runs(0);
  carillon::TimerService timers({.clock = clock});
  timers.schedule_cron(schedule, [&] {
    const auto now = std::chrono::floor<std::chrono::seconds>(clock->wall_now());
    std::printf("run   %s\n", show(now, schedule.zone()).c_str());
    std::fflush(stdout);
    runs.release();
  });
  for (const sys_seconds time : times) {
    if (rehearsal != nullptr) rehearsal->advance(time - rehearsal->wall_now());
    runs.acquire();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 5) {
    std::fputs("usage: cron EXPRESSION ZONE [COUNT [FROM]]\n", stderr);
    return 2;
  }
  try {
    const carillon::CronSchedule schedule(argv[1], argv[2]);
    const int count = argc > 3 ? std::stoi(argv[3]) : 5;
    std::shared_ptr<carillon::ManualClock> rehearsal;
    auto from = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    if (argc > 4) {
      from = read_utc(argv[4]);
      rehearsal = std::make_shared<carillon::ManualClock>(carillon::SteadyTime{}, from);
    }
    const std::vector<sys_seconds> times = next_times(schedule, from, count);
    for (const sys_seconds time : times)
      std::printf("next  %s\n", show(time, schedule.zone()).c_str());
    run(schedule, times, rehearsal);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
