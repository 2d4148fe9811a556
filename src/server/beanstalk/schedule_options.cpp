// The table of the options of set-schedule (schedule_options.h).
#include "server/beanstalk/schedule_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "server/api/option_values.h"
#include "server/beanstalk/command.h"
#include "server/beanstalk/job_options.h"

namespace carillon::server::beanstalk {
namespace {

using queue::CatchUp;
using queue::Overlap;
using queue::Schedule;

void set_gap(Schedule& schedule, std::string_view text) {
  if (text != "skip" && text != "after") refuse_option(quoted(text) + ": skip or after");
  schedule.run_after_gap = text == "after";
}

void set_catch_up(Schedule& schedule, std::string_view text) {
  constexpr std::string_view kAll = "all:";
  if (text.starts_with(kAll)) {
    schedule.catch_up = CatchUp::kAll;
    schedule.catch_up_window = duration(text.substr(kAll.size()));
    return;
  }
  if (text != "none" && text != "last")
    refuse_option(quoted(text) + ": none, last or all:DURATION");
  schedule.catch_up = text == "none" ? CatchUp::kNone : CatchUp::kLast;
}

void set_overlap(Schedule& schedule, std::string_view text) {
  if (text == "allow") {
    schedule.overlap = Overlap::kAllow;
  } else if (text == "skip") {
    schedule.overlap = Overlap::kSkip;
  } else if (text == "queue") {
    schedule.overlap = Overlap::kQueue;
  } else {
    refuse_option(quoted(text) + ": allow, skip or queue");
  }
}

void set_tube(Schedule& schedule, std::string_view text) {
  if (!is_tube_name(text)) refuse_option(quoted(text) + ": not the name of a tube");
  schedule.tube = text;
}

void set_every(Schedule& schedule, std::string_view text) {
  schedule.every = duration(text);
  if (schedule.every == 0) refuse_option(quoted(text) + ": at least 1s");
}

void set_paused(ScheduleOptions& options, std::string_view text) {
  if (text != "yes") refuse_option(quoted(text) + ": yes; resume-schedule ends a pause");
  options.paused = true;
}

struct ScheduleOption {
  std::string_view name;
  void (*set)(ScheduleOptions&, std::string_view);
};

template <auto set>
constexpr ScheduleOption option(std::string_view name) {
  return {name, [](ScheduleOptions& o, std::string_view text) { set(o.schedule, text); }};
}

// The options of the schedule itself; those of its jobs are in job_options.cpp.
constexpr std::array kScheduleOptions = {
    option<[](Schedule& s, std::string_view text) { s.cron = text; }>("cron"),
    option<[](Schedule& s, std::string_view text) { s.zone = text; }>("zone"),
    option<set_gap>("gap"),
    option<set_every>("every"),
    option<[](Schedule& s, std::string_view text) { s.start = moment(text); }>("start"),
    option<set_catch_up>("catch-up"),
    option<set_overlap>("overlap"),
    option<set_tube>("tube"),
    ScheduleOption{"paused", set_paused},
};

using Given = std::array<bool, kScheduleOptions.size()>;

const ScheduleOption* find_schedule_option(std::string_view name) {
  return std::find_if(kScheduleOptions.begin(), kScheduleOptions.end(),
                      [name](const ScheduleOption& option) { return option.name == name; });
}

[[noreturn]] void refuse_name(std::string_view name) {
  std::string names;
  for (const ScheduleOption& option : kScheduleOptions) names += std::string(option.name) + " ";
  refuse_option(fmt::format("{}: no such option; there are {}{}", quoted(name), names,
                            option_names(OptionsOf::kSchedule)));
}

void read(const OptionText& part, Given& given, ScheduleOptions& options) {
  const ScheduleOption* const found = find_schedule_option(part.name);
  if (found == kScheduleOptions.end()) refuse_name(part.name);
  if (!part.value) refuse_option(fmt::format("{0}: {0}=VALUE", part.name));
  bool& is_given = given[static_cast<std::size_t>(found - kScheduleOptions.begin())];
  if (is_given) refuse_option(fmt::format("{}: comes twice", part.name));
  is_given = true;
  try {
    found->set(options, *part.value);
  } catch (const std::invalid_argument& error) {
    refuse_option(fmt::format("{}: {}", part.name, printable(error.what())));
  }
}

void set_job(const JobOptions& job, Schedule& schedule) {
  const queue::PutOrder order = put_order(job);
  schedule.priority = order.priority;
  schedule.ttr = order.ttr;
  schedule.group = order.group;
  schedule.retry = order.retry;
  schedule.attributes = order.attributes;
  schedule.expires_in = order.expires_in;
  schedule.at_expiry = order.at_expiry;
  schedule.spread = order.spread;
}

}  // namespace

ScheduleOptions parse_schedule_options(std::string_view text, std::string_view tube) {
  ScheduleOptions options{.schedule = {.tube = std::string(tube)}};
  JobOptions job;
  Given given{};
  while (const auto option = take_option(text)) {
    if (!read_job_option(*option, OptionsOf::kSchedule, job)) read(*option, given, options);
  }
  check(job, OptionsOf::kSchedule);
  set_job(job, options.schedule);
  const auto has = [&given](std::string_view name) {
    return given[static_cast<std::size_t>(find_schedule_option(name) - kScheduleOptions.begin())];
  };
  if (!has("cron") && !has("every")) refuse_option("cron: write it, or every");
  if (has("cron") && has("every")) refuse_option("every: does not go with cron");
  for (const char* name : {"zone", "gap"}) {
    if (has(name) && !has("cron")) refuse_option(fmt::format("{}: needs cron", name));
  }
  if (has("start") && !has("every")) refuse_option("start: needs every");
  return options;
}

}  // namespace carillon::server::beanstalk
