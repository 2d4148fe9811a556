// Random commands about schedules (talker_schedules.h).

#include "simulator/talker_schedules.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "simulator/talker_attempts.h"
#include "simulator/talker_words.h"

namespace carillon::simulator {

namespace {

using queue::CatchUp;
using queue::Millis;
using queue::Overlap;

std::string random_name(Random& random) {
  constexpr std::array<const char*, 3> kNames = {"nightly", "s", "a/b"};
  return kNames[below(random, kNames.size())];
}

void choose_times(queue::Schedule& asked, std::vector<std::string>& options, Random& random,
                  queue::Now now) {
  constexpr std::array<const char*, 6> kCron = {"* * * * *", "*/7 * * * *",  "30 2 * * *",
                                                "0 * * * *", "15 1 * * SUN", "@monthly"};
  constexpr std::array<const char*, 3> kZones = {"UTC", "Europe/Berlin", "America/New_York"};
  if (below(random, 2) == 0) {
    asked.cron = kCron[below(random, kCron.size())];
    asked.zone = kZones[below(random, kZones.size())];
    asked.run_after_gap = below(random, 2) == 0;
    options.push_back("cron=\"" + asked.cron + "\"");
    options.push_back("zone=" + asked.zone);
    if (!asked.run_after_gap) options.emplace_back("gap=skip");
    return;
  }
  asked.every = one_of(random, std::array<std::uint64_t, 8>{1'000, 1'000, 1'000, 7'000, 60'000,
                                                            61'500, 3'600'000, 86'400'000});
  options.push_back("every=" + duration(asked.every));
  if (below(random, 3) != 0) return;
  asked.start = now.utc_ns / 1'000'000 + below(random, 400'000) - 200'000;
  options.push_back("start=" + number(*asked.start));
}

void choose_policies(queue::Schedule& asked, std::vector<std::string>& options, Random& random) {
  const std::uint64_t catch_up = below(random, 4);
  if (catch_up == 0) {
    asked.catch_up = CatchUp::kNone;
    options.emplace_back("catch-up=none");
  } else if (catch_up == 1) {
    asked.catch_up = CatchUp::kAll;
    asked.catch_up_window = one_of(random, std::array<std::uint64_t, 3>{0, 15'000, 300'000});
    if (asked.every == 1'000) asked.catch_up_window = 15'000;
    options.push_back("catch-up=all:" + duration(asked.catch_up_window));
  }
  const std::uint64_t overlap = below(random, 3);
  if (overlap != 0) {
    asked.overlap = overlap == 1 ? Overlap::kSkip : Overlap::kQueue;
    options.emplace_back(overlap == 1 ? "overlap=skip" : "overlap=queue");
  }
  if (below(random, 3) == 0) {
    asked.spread = 1 + below(random, 20'000);
    options.push_back("spread=" + duration(asked.spread));
  }
}

// What all jobs of the schedule have. Without a tube they go into the one in use.
void choose_jobs(queue::Schedule& asked, std::vector<std::string>& options, Random& random) {
  asked.tube.clear();
  asked.priority = kUsualPriority;
  asked.body = random_body(random);
  if (below(random, 8) != 0) {
    asked.tube = random_tube(random);
    options.push_back("tube=" + asked.tube);
  }
  if (below(random, 8) != 0) {
    asked.priority = random_priority(random);
    options.push_back("pri=" + number(asked.priority));
  }
  if (below(random, 8) != 0) {
    asked.ttr = 1'000 * (1 + below(random, 3));
    options.push_back("ttr=" + duration(asked.ttr));
  }
  if (below(random, 3) == 0) {
    asked.group = random_group(random);
    options.push_back("group=" + asked.group);
  }
  if (below(random, 4) == 0) {
    asked.attributes = random_attributes(random);
    options.push_back("attributes=" + asked.attributes);
  }
  if (below(random, 3) == 0) {
    const PolicyOptions policy = random_policy(options, random);
    policy.apply(asked.retry);
    asked.retry.counts_empty = policy.names_any() && asked.retry == queue::RetryPolicy();
  }
  if (below(random, 3) != 0) return;
  asked.expires_in =
      one_of(random, std::array<std::uint64_t, 5>{1, 300, 2'000, 70'000, 86'400'000});
  options.push_back("expires-in=" + duration(asked.expires_in));
  if (below(random, 3) == 0) return;
  asked.at_expiry = below(random, 2) == 0 ? queue::AtExpiry::kDrop : queue::AtExpiry::kDead;
  options.emplace_back(asked.at_expiry == queue::AtExpiry::kDrop ? "at-expiry=drop"
                                                                 : "at-expiry=dead");
}

Command set_schedule(Random& random, queue::Now now) {
  Command command{.verb = Verb::kSetSchedule, .schedule = random_name(random)};
  queue::Schedule& asked = command.asked;
  std::vector<std::string> options;
  choose_times(asked, options, random, now);
  choose_policies(asked, options, random);
  choose_jobs(asked, options, random);
  command.pauses = below(random, 8) == 0;
  if (command.pauses) options.emplace_back("paused=yes");
  command.body = asked.body;
  command.bytes = "set-schedule " + command.schedule + " " + number(asked.body.size()) +
                  line_of(std::move(options), random) + asked.body + "\r\n";
  return command;
}

Command on_schedule(Verb verb, const std::string& word, Random& random) {
  const std::string name = random_name(random);
  return {.verb = verb, .bytes = word + " " + name + "\r\n", .schedule = name};
}

Command ask_about_schedules(Random& random) {
  switch (below(random, 4)) {
    case 0:
      return on_schedule(Verb::kStatsSchedule, "stats-schedule", random);
    case 1:
      return on_schedule(Verb::kShowSchedule, "show-schedule", random);
    case 2: {
      const std::string name = random_name(random);  // that of the page before
      return {
          .verb = Verb::kListSchedules, .bytes = "list-schedules " + name + "\r\n", .after = name};
    }
    default:
      return {.verb = Verb::kListSchedules, .bytes = "list-schedules\r\n"};
  }
}

}  // namespace

Command random_schedule_command(Random& random, queue::Now now) {
  switch (below(random, 10)) {
    case 0:
    case 1:
    case 2:
      return on_schedule(Verb::kDeleteSchedule, "delete-schedule", random);
    case 3:
      return on_schedule(Verb::kPauseSchedule, "pause-schedule", random);
    case 4:
      return on_schedule(Verb::kResumeSchedule, "resume-schedule", random);
    case 5:
      return on_schedule(Verb::kTriggerSchedule, "trigger-schedule", random);
    case 6:
      return ask_about_schedules(random);
    default:
      return set_schedule(random, now);
  }
}

}  // namespace carillon::simulator
