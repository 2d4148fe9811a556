// The fields of stats-schedule (schedule_stats.h).
#include "server/beanstalk/schedule_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "server/api/attributes.h"
#include "server/beanstalk/option_line.h"
#include "server/beanstalk/stats.h"
#include "server/text/calendar.h"

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

// For text within double quotes.
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
  text += job_options_yaml(schedule);
  line("body-bytes", schedule.body.size());
  if (schedule.cron.empty()) {
    line("every", fmt::format("{}ms", schedule.every));
    line("start", format_in_zone(schedule.start.value_or(0), schedule.zone));
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

std::string schedule_line(const queue::ScheduleRecord& record) {
  const queue::Schedule& schedule = record.schedule;
  std::string text;
  OptionLine line(text);
  line.text("name", record.name);
  line.text("tube", schedule.tube);
  line.field("pri", schedule.priority);
  line.duration("ttr", schedule.ttr);
  if (!schedule.group.empty()) line.text("group", schedule.group);
  line.policy(schedule.retry);
  if (!schedule.attributes.empty()) line.attributes(schedule.attributes);
  if (schedule.expires_in > 0) {
    line.duration("expires_in", schedule.expires_in);
    line.word("at_expiry", name_of(schedule.at_expiry));
  }
  if (schedule.cron.empty()) {
    line.duration("every", schedule.every);
    line.moment("start", schedule.start.value_or(0));
  } else {
    line.text("cron", schedule.cron);
    line.text("zone", schedule.zone);
    line.word("gap", schedule.run_after_gap ? "after" : "skip");
  }
  line.word("catch_up", catch_up(schedule));
  line.word("overlap", overlap(schedule));
  line.duration("spread", schedule.spread);
  if (record.paused) line.word("paused", "yes");
  line.text("body", schedule.body);
  line.end();
  return text;
}

}  // namespace carillon::server::beanstalk
