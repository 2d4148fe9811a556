// Random commands about schedules (talker_parts.h).

#include "simulator/talker_parts.h"

#include <array>
#include <string>

#include "simulator/requests.h"
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

void choose_times(queue::Schedule& asked, Random& random, queue::Now now) {
  constexpr std::array<const char*, 6> kCron = {"* * * * *", "*/7 * * * *",  "30 2 * * *",
                                                "0 * * * *", "15 1 * * SUN", "@monthly"};
  constexpr std::array<const char*, 3> kZones = {"UTC", "Europe/Berlin", "America/New_York"};
  if (below(random, 2) == 0) {
    asked.cron = kCron[below(random, kCron.size())];
    asked.zone = kZones[below(random, kZones.size())];
    asked.run_after_gap = below(random, 2) == 0;
    return;
  }
  asked.every = one_of(random, std::array<std::uint64_t, 8>{1'000, 1'000, 1'000, 7'000, 60'000,
                                                            61'500, 3'600'000, 86'400'000});
  if (below(random, 3) != 0) return;
  asked.start = now.utc_ns / 1'000'000 + below(random, 400'000) - 200'000;
}

void choose_policies(queue::Schedule& asked, Random& random) {
  const std::uint64_t catch_up = below(random, 4);
  if (catch_up == 0) {
    asked.catch_up = CatchUp::kNone;
  } else if (catch_up == 1) {
    asked.catch_up = CatchUp::kAll;
    asked.catch_up_window = one_of(random, std::array<std::uint64_t, 3>{0, 15'000, 300'000});
    if (asked.every == 1'000) asked.catch_up_window = 15'000;
  }
  const std::uint64_t overlap = below(random, 3);
  if (overlap != 0) asked.overlap = overlap == 1 ? Overlap::kSkip : Overlap::kQueue;
  if (below(random, 3) == 0) asked.spread = 1 + below(random, 20'000);
}

// What all jobs of the schedule have.
void choose_jobs(queue::Schedule& asked, Random& random) {
  asked.tube = random_tube(random);
  asked.priority = kUsualPriority;
  asked.body = random_body(random);
  if (below(random, 8) != 0) asked.priority = random_priority(random);
  if (below(random, 8) != 0) asked.ttr = 1'000 * (1 + below(random, 3));
  if (below(random, 3) == 0) asked.group = random_group(random);
  if (below(random, 4) == 0) asked.attributes = random_attributes(random);
  if (below(random, 3) == 0) {
    const PolicyOptions policy = random_policy(random);
    policy.apply(asked.retry);
    asked.retry.counts_empty = policy.names_any() && asked.retry == queue::RetryPolicy();
  }
  if (below(random, 3) != 0) return;
  asked.expires_in =
      one_of(random, std::array<std::uint64_t, 5>{1, 300, 2'000, 70'000, 86'400'000});
  if (below(random, 3) == 0) return;
  asked.at_expiry = below(random, 2) == 0 ? queue::AtExpiry::kDrop : queue::AtExpiry::kDead;
}

Command set_schedule(Random& random, queue::Now now) {
  Command command{.verb = Verb::kSetSchedule, .schedule = random_name(random)};
  queue::Schedule& asked = command.asked;
  choose_times(asked, random, now);
  choose_policies(asked, random);
  choose_jobs(asked, random);
  command.body = asked.body;
  return command;
}

Command on_schedule(Verb verb, Random& random) {
  return {.verb = verb, .schedule = random_name(random)};
}

Command ask_about_schedules(Random& random) {
  if (below(random, 2) == 0) return on_schedule(Verb::kShowSchedule, random);
  Command list{.verb = Verb::kListSchedules, .bound = 100};
  if (below(random, 2) == 0) list.after = random_name(random);  // that of the page before
  return list;
}

Command choose_command(Random& random, queue::Now now) {
  switch (below(random, 10)) {
    case 0:
    case 1:
    case 2:
      return on_schedule(Verb::kDeleteSchedule, random);
    case 3:
      return on_schedule(Verb::kPauseSchedule, random);
    case 4:
      return on_schedule(Verb::kResumeSchedule, random);
    case 5:
      return on_schedule(Verb::kTriggerSchedule, random);
    case 6:
      return ask_about_schedules(random);
    default:
      return set_schedule(random, now);
  }
}

}  // namespace

Command random_schedule_command(Random& random, queue::Now now) {
  Command command = choose_command(random, now);
  write_request(command);
  return command;
}

}  // namespace carillon::simulator
