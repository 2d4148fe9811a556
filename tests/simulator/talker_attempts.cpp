// Random commands about attempts (talker_parts.h).

#include "simulator/talker_parts.h"

#include <array>
#include <utility>

#include "simulator/requests.h"
#include "simulator/talker_words.h"

namespace carillon::simulator {

PolicyOptions random_policy(Random& random) {
  PolicyOptions policy;
  if (below(random, 4) != 0) policy.max_attempts = static_cast<std::uint32_t>(below(random, 4));
  if (below(random, 4) != 0) {
    policy.backoff = one_of(random, std::array<std::uint64_t, 5>{0, 1, 300, 2'000, 100'000});
    if (below(random, 2) == 0) policy.backoff_max = *policy.backoff * (2 + below(random, 5));
  }
  if (below(random, 2) == 0) policy.jitter = static_cast<std::uint32_t>(below(random, 101));
  if (below(random, 2) == 0) policy.lost_fails = below(random, 2) == 0;
  return policy;
}

void add_policy(std::vector<std::string>& options, const PolicyOptions& policy) {
  if (policy.max_attempts) options.push_back("max-attempts=" + number(*policy.max_attempts));
  if (policy.backoff) {
    const std::string most =
        policy.backoff_max == 0 ? std::string() : ".." + duration(policy.backoff_max);
    options.push_back("backoff=" + duration(*policy.backoff) + most);
  }
  if (policy.jitter) options.push_back("jitter=" + number(*policy.jitter) + "%");
  if (policy.lost_fails) options.emplace_back(*policy.lost_fails ? "lost=fails" : "lost=returns");
}

namespace {

// Rates that let a few jobs out while a server lives, and some that let out one at the most.
LimitOptions random_limits(Random& random) {
  LimitOptions limits;
  if (below(random, 2) == 0) limits.max_running = below(random, 4);
  if (below(random, 2) == 0) {
    limits.rate = one_of(random, std::array<std::uint64_t, 5>{0, 1, 3, 100, 7'000});
    if (*limits.rate > 0) {
      limits.period =
          one_of(random, std::array<std::uint64_t, 5>{7, 1'000, 1'000, 60'000, 2'592'000'000});
    }
    if (*limits.rate > 0 && below(random, 2) == 0)
      limits.burst = one_of(random, std::array<std::uint64_t, 4>{1, 2, 5, 1'000'000});
  }
  return limits;
}

// So fast that most puts come in.
LimitOptions random_put_rate(Random& random) {
  LimitOptions rate{.rate = one_of(random, std::array<std::uint64_t, 4>{0, 3, 100, 7'000})};
  if (*rate.rate == 0) return rate;
  rate.period = one_of(random, std::array<std::uint64_t, 3>{7, 100, 1'000});
  if (below(random, 2) == 0) rate.burst = one_of(random, std::array<std::uint64_t, 3>{1, 5, 1'000});
  return rate;
}

void choose_group(Command& command, Random& random) {
  command.group = random_group(random);
  if (below(random, 2) == 0) command.weight = static_cast<std::uint32_t>(1 + below(random, 4));
  if (below(random, 3) == 0) command.limits = random_limits(random);
  if (below(random, 3) != 0) return;
  command.weight = 1;  // nothing is set any more
  command.limits = {.max_running = 0, .rate = 0};
}

void choose_settings(Command& command, Random& random) {
  command.policy = random_policy(random);
  command.limits = random_limits(random);
  if (below(random, 4) == 0) command.put_rate = random_put_rate(random);
  if (below(random, 4) == 0)
    command.retention = one_of(random, std::array<std::uint64_t, 5>{0, 1, 300, 5'000, 600'000});
  const std::uint64_t chance = below(random, 12);
  if (chance < 4) command.refuses_puts = chance == 0;
  if (below(random, 3) != 0) return;
  command.policy = {.max_attempts = 0, .backoff = 0, .jitter = 0, .lost_fails = false};
  command.limits = {.max_running = 0, .rate = 0};
  command.put_rate = {.rate = 0};
  command.retention = 0;
  command.refuses_puts = false;
}

}  // namespace

Command random_set_tube(Random& random) {
  Command command{.verb = Verb::kSetTube, .tube = random_tube(random)};
  below(random, 3) == 0 ? choose_group(command, random) : choose_settings(command, random);
  write_request(command);
  return command;
}

Command random_fail(queue::JobId id, Random& random) {
  Command command{.verb = Verb::kFailJob, .id = id};
  std::vector<std::string> options;
  if (below(random, 4) == 0) {
    command.failure.priority = random_priority(random);
    options.push_back("pri=" + number(*command.failure.priority));
  }
  if (below(random, 4) == 0) {
    command.failure.delay = below(random, 2) * below(random, 2'000);
    options.push_back("delay=" + duration(*command.failure.delay));
  }
  if (below(random, 8) == 0) {
    command.failure.max_attempts = static_cast<std::uint32_t>(below(random, 4));
    options.push_back("max-attempts=" + number(*command.failure.max_attempts));
  }
  command.body.assign(below(random, 64) == 0 ? below(random, 3'000) : below(random, 30), 'e');
  command.bytes = "fail-job " + number(id) + " " + number(command.body.size()) +
                  line_of(std::move(options), random) + command.body + "\r\n";
  return command;
}

Command random_stats_group(Random& random) {
  Command command{.verb = Verb::kStatsGroup, .tube = random_tube(random)};
  command.group = random_group(random);
  write_request(command);
  return command;
}

Command touch_job(queue::JobId id) {
  return {.verb = Verb::kTouchJob, .bytes = "touch-job " + number(id) + "\r\n", .id = id};
}

std::string name_of(ClientNumber client) {
  return "w" + number(client);
}

Command name_client(ClientNumber client) {
  return {.verb = Verb::kNameClient, .bytes = "name-client " + name_of(client) + "\r\n"};
}

}  // namespace carillon::simulator
