// Random commands about attempts (talker_attempts.h).

#include "simulator/talker_attempts.h"

#include <array>
#include <utility>

#include "simulator/talker_words.h"

namespace carillon::simulator {

PolicyOptions random_policy(std::vector<std::string>& options, Random& random) {
  PolicyOptions policy;
  if (below(random, 4) != 0) {
    policy.max_attempts = static_cast<std::uint32_t>(below(random, 4));
    options.push_back("max-attempts=" + number(*policy.max_attempts));
  }
  if (below(random, 4) != 0) {
    policy.backoff = one_of(random, std::array<std::uint64_t, 5>{0, 1, 300, 2'000, 100'000});
    std::string text = duration(*policy.backoff);
    if (below(random, 2) == 0) {
      policy.backoff_max = *policy.backoff * (1 + below(random, 6));
      text += ".." + duration(policy.backoff_max);
    }
    options.push_back("backoff=" + text);
  }
  if (below(random, 2) == 0) {
    policy.jitter = static_cast<std::uint32_t>(below(random, 101));
    options.push_back("jitter=" + number(*policy.jitter) + "%");
  }
  if (below(random, 2) == 0) {
    policy.lost_fails = below(random, 2) == 0;
    options.emplace_back(*policy.lost_fails ? "lost=fails" : "lost=returns");
  }
  return policy;
}

namespace {

// Rates that let a few jobs out while a server lives, and some that let out one at the most.
LimitOptions random_limits(std::vector<std::string>& options, Random& random) {
  LimitOptions limits;
  if (below(random, 2) == 0) {
    limits.max_running = below(random, 4);
    options.push_back("max-running=" + number(*limits.max_running));
  }
  if (below(random, 2) == 0) {
    limits.rate = one_of(random, std::array<std::uint64_t, 5>{0, 1, 3, 100, 7'000});
    std::string text = number(*limits.rate);
    if (*limits.rate > 0) {
      limits.period =
          one_of(random, std::array<std::uint64_t, 5>{7, 1'000, 1'000, 60'000, 2'592'000'000});
      text += "/" + duration(limits.period);
    }
    options.push_back("rate=" + text);
    if (*limits.rate > 0 && below(random, 2) == 0) {
      limits.burst = one_of(random, std::array<std::uint64_t, 4>{1, 2, 5, 1'000'000});
      options.push_back("burst=" + number(*limits.burst));
    }
  }
  return limits;
}

// So fast that most puts come in.
LimitOptions random_put_rate(std::vector<std::string>& options, Random& random) {
  LimitOptions rate{.rate = one_of(random, std::array<std::uint64_t, 4>{0, 3, 100, 7'000})};
  std::string text = number(*rate.rate);
  if (*rate.rate > 0) {
    rate.period = one_of(random, std::array<std::uint64_t, 3>{7, 100, 1'000});
    text += "/" + duration(rate.period);
  }
  options.push_back("put-rate=" + text);
  if (*rate.rate > 0 && below(random, 2) == 0) {
    rate.burst = one_of(random, std::array<std::uint64_t, 3>{1, 5, 1'000});
    options.push_back("put-burst=" + number(*rate.burst));
  }
  return rate;
}

Command random_set_group(Random& random) {
  Command command{.verb = Verb::kSetTube, .tube = random_tube(random)};
  command.group = random_group(random);
  std::vector<std::string> options = {"group=" + command.group};
  if (below(random, 2) == 0) {
    command.weight = static_cast<std::uint32_t>(1 + below(random, 4));
    options.push_back("weight=" + number(*command.weight));
  }
  if (below(random, 3) == 0) command.limits = random_limits(options, random);
  if (below(random, 3) == 0) {  // nothing is set any more
    command.weight = 1;
    command.limits = {.max_running = 0, .rate = 0};
    options = {"group=" + command.group, "weight=1", "max-running=0", "rate=0"};
  }
  command.bytes = "set-tube " + command.tube + line_of(std::move(options), random);
  return command;
}

}  // namespace

Command random_set_tube(Random& random) {
  if (below(random, 3) == 0) return random_set_group(random);
  Command command{.verb = Verb::kSetTube, .tube = random_tube(random)};
  std::vector<std::string> options;
  command.policy = random_policy(options, random);
  command.limits = random_limits(options, random);
  if (below(random, 4) == 0) command.put_rate = random_put_rate(options, random);
  if (below(random, 4) == 0) {
    command.retention = one_of(random, std::array<std::uint64_t, 5>{0, 1, 300, 5'000, 600'000});
    options.push_back("retention=" + duration(*command.retention));
  }
  const std::uint64_t chance = below(random, 12);
  if (chance < 4) {
    command.refuses_puts = chance == 0;
    options.emplace_back(chance == 0 ? "puts=refused" : "puts=taken");
  }
  if (below(random, 3) == 0) {  // nothing is set any more
    command.policy = {.max_attempts = 0, .backoff = 0, .jitter = 0, .lost_fails = false};
    command.limits = {.max_running = 0, .rate = 0};
    command.put_rate = {.rate = 0};
    command.retention = 0;
    command.refuses_puts = false;
    options = {"max-attempts=0", "backoff=0s", "jitter=0%",  "lost=returns", "max-running=0",
               "rate=0",         "puts=taken", "put-rate=0", "retention=0"};
  }
  command.bytes = "set-tube " + command.tube + line_of(std::move(options), random);
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
  command.bytes = "stats-group " + command.tube + " " + command.group + "\r\n";
  return command;
}

Command touch_job(queue::JobId id) {
  return {.verb = Verb::kTouchJob, .bytes = "touch-job " + number(id) + "\r\n", .id = id};
}

Command story_job(queue::JobId id) {
  return {.verb = Verb::kStoryJob, .bytes = "story-job " + number(id) + "\r\n", .id = id};
}

std::string name_of(ClientNumber client) {
  return "w" + number(client);
}

Command name_client(ClientNumber client) {
  return {.verb = Verb::kNameClient, .bytes = "name-client " + name_of(client) + "\r\n"};
}

}  // namespace carillon::simulator
