// The fields of stats-schedule (schedule_stats.h).
#include "server/beanstalk/schedule_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "server/calendar.h"

namespace carillon::server::beanstalk {
namespace {

std::string catch_up(const queue::Schedule& schedule) {
  switch (schedule.catch_up) {
    case queue::CatchUp::kNone:
      return "none";
    case queue::CatchUp::kLast:
      return "last";
    case queue::CatchUp::kAll:
      return fmt::format("all:{}ms", schedule.catch_up_window);
  }
  return "invalid";
}

std::string_view overlap(const queue::Schedule& schedule) {
  switch (schedule.overlap) {
    case queue::Overlap::kAllow:
      return "allow";
    case queue::Overlap::kSkip:
      return "skip";
    case queue::Overlap::kQueue:
      return "queue";
  }
  return "invalid";
}

// Within double quotes.
std::string plain(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~' || c == '"' || c == '\\'; },
      '?');
  return text;
}

}  // namespace

std::string schedule_yaml(const queue::ScheduleView& view) {
  const queue::ScheduleRecord& record = view.record;
  const queue::Schedule& schedule = record.schedule;
  std::string text = "---\n";
  const auto line = [&text](std::string_view name, const auto& value) {
    fmt::format_to(std::back_inserter(text), "{}: {}\n", name, value);
  };
  const auto quoted = [&line](std::string_view name, const std::string& value) {
    line(name, "\"" + plain(value) + "\"");
  };
  const auto moment = [&](std::string_view name, queue::UtcMs at) {
    if (at != 0) line(name, format_in_zone(at, schedule.zone));
  };
  quoted("name", record.name);
  quoted("tube", schedule.tube);
  line("pri", schedule.priority);
  line("ttr", fmt::format("{}ms", schedule.ttr));
  line("body-bytes", schedule.body.size());
  if (schedule.cron.empty()) {
    line("every", fmt::format("{}ms", schedule.every));
    moment("start", schedule.start);
  } else {
    quoted("cron", schedule.cron);
    quoted("zone", schedule.zone);
    line("gap", schedule.run_after_gap ? "after" : "skip");
  }
  line("catch-up", catch_up(schedule));
  line("overlap", overlap(schedule));
  line("spread", fmt::format("{}ms", schedule.spread));
  line("paused", record.paused);
  if (!view.broken.empty()) quoted("broken", view.broken);
  line("fired", record.fired);
  line("skipped", record.skipped);
  line("last-job", record.last_job);
  moment("last", record.last_occurrence);
  moment("waiting", record.waiting);
  for (std::size_t n = 0; n < view.next.size(); ++n)
    moment(fmt::format("next-{}", n + 1), view.next[n]);
  return text;
}

}  // namespace carillon::server::beanstalk
