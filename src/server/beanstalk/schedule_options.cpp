// The table of the options of set-schedule (schedule_options.h).
#include "server/beanstalk/schedule_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "server/beanstalk/command.h"
#include "server/beanstalk/job_options.h"
#include "server/beanstalk/option_values.h"

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

struct Option {
  std::string_view name;
  void (*set)(Schedule&, std::string_view);
};

constexpr std::array kOptions = {
    Option{"cron", [](Schedule& s, std::string_view text) { s.cron = text; }},
    Option{"zone", [](Schedule& s, std::string_view text) { s.zone = text; }},
    Option{"gap", set_gap},
    Option{"every", set_every},
    Option{"start", [](Schedule& s, std::string_view text) { s.start = moment(text); }},
    Option{"catch-up", set_catch_up},
    Option{"overlap", set_overlap},
    Option{"spread", [](Schedule& s, std::string_view text) { s.spread = duration(text); }},
    Option{"tube", set_tube},
    Option{"pri", [](Schedule& s, std::string_view text) { s.priority = number_u32(text); }},
    Option{"ttr", [](Schedule& s, std::string_view text) { s.ttr = ttr(text); }},
};

using Given = std::array<bool, kOptions.size()>;

std::string names() {
  std::string names;
  for (const Option& option : kOptions)
    names += (names.empty() ? "" : " ") + std::string(option.name);
  return names;
}

std::size_t index_of(std::string_view name) {
  const auto* const found =
      std::find_if(kOptions.begin(), kOptions.end(),
                   [name](const Option& option) { return option.name == name; });
  if (found == kOptions.end())
    refuse_option(fmt::format("{}: no such option; there are {}", quoted(name), names()));
  return static_cast<std::size_t>(found - kOptions.begin());
}

void read(const OptionText& part, Given& given, Schedule& schedule) {
  const std::size_t index = index_of(part.name);
  if (!part.value) refuse_option(fmt::format("{0}: {0}=VALUE", part.name));
  if (given[index]) refuse_option(fmt::format("{}: comes twice", part.name));
  given[index] = true;
  try {
    kOptions[index].set(schedule, *part.value);
  } catch (const std::invalid_argument& error) {
    refuse_option(fmt::format("{}: {}", part.name, printable(error.what())));
  }
}

}  // namespace

queue::Schedule parse_schedule_options(std::string_view text, std::string_view tube) {
  Schedule schedule{.tube = std::string(tube), .priority = kUsualPriority};
  Given given{};
  while (const auto option = take_option(text)) read(*option, given, schedule);
  const auto has = [&given](std::string_view name) { return given[index_of(name)]; };
  if (!has("cron") && !has("every")) refuse_option("cron: write it, or every");
  if (has("cron") && has("every")) refuse_option("every: does not go with cron");
  for (const char* name : {"zone", "gap"}) {
    if (has(name) && !has("cron")) refuse_option(fmt::format("{}: needs cron", name));
  }
  if (has("start") && !has("every")) refuse_option("start: needs every");
  return schedule;
}

}  // namespace carillon::server::beanstalk
