// Random commands about the jobs of a tube (talker_lists.h).

#include "simulator/talker_lists.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "simulator/talker_words.h"

namespace carillon::simulator {

namespace {

using queue::bit_of;
using queue::JobState;

struct State {
  const char* name;
  std::uint32_t bit;
};

void choose_states(queue::JobFilter& filter, std::vector<std::string>& options, bool of_retry,
                   Random& random) {
  constexpr std::array<State, 5> kStates = {{{"delayed", bit_of(JobState::kDelayed)},
                                             {"buried", bit_of(JobState::kBuried)},
                                             {"dead", queue::kDeadJobs},
                                             {"ready", bit_of(JobState::kReady)},
                                             {"reserved", bit_of(JobState::kReserved)}}};
  constexpr std::uint64_t kToRetry = 3;
  if (of_retry) filter.states = bit_of(JobState::kBuried);
  if (below(random, 2) == 0) return;
  const std::uint64_t choices = of_retry ? kToRetry : kStates.size();
  const State& one = kStates[below(random, choices)];
  const State& other = kStates[below(random, choices)];
  filter.states = one.bit;
  std::string text = one.name;
  if (below(random, 2) == 0 && other.bit != one.bit) {
    filter.states |= other.bit;
    text += std::string(",") + other.name;
  }
  options.push_back("state=" + text);
}

void choose_filter(Command& command, std::vector<std::string>& options, Random& random,
                   queue::Now now) {
  queue::JobFilter& filter = command.filter;
  choose_states(filter, options, command.verb == Verb::kRetryJobs, random);
  const auto moment = [&] { return now.utc_ns / 1'000'000 + below(random, 100'000) - 20'000; };
  if (below(random, 4) == 0) {
    filter.key_prefix = below(random, 2) == 0 ? "order" : "1";
    options.push_back("key-prefix=" + filter.key_prefix);
  }
  if (below(random, 6) == 0) {
    filter.group = random_group(random);
    options.push_back("group=" + filter.group);
  }
  if (below(random, 4) == 0) {
    filter.due_from = moment();
    options.push_back("due-after=" + number(filter.due_from));
  }
  if (below(random, 4) == 0) {
    filter.due_before = moment();
    options.push_back("due-before=" + number(filter.due_before));
  }
}

}  // namespace

Command random_list(Random& random, queue::Now now) {
  constexpr std::uint64_t kUsualLimit = 100;
  Command command{.verb = Verb::kListJobs, .bound = kUsualLimit, .tube = random_tube(random)};
  std::vector<std::string> options;
  choose_filter(command, options, random, now);
  if (below(random, 2) == 0) {
    command.bound = 1 + below(random, 30);
    options.push_back("limit=" + number(command.bound));
  }
  if (below(random, 4) == 0) options.emplace_back("bodies=yes");
  command.bytes = "list-jobs " + command.tube + line_of(std::move(options), random);
  return command;
}

Command random_due_counts(Random& random) {
  constexpr std::array<const char*, 4> kOptions = {"", " by=hour", " by=day spans=2", " spans=3"};
  Command command{.verb = Verb::kDueCounts, .tube = random_tube(random)};
  command.bytes = "due-counts " + command.tube + kOptions[below(random, kOptions.size())] + "\r\n";
  return command;
}

Command random_bulk(Random& random, queue::Now now) {
  constexpr std::array<Verb, 3> kVerbs = {Verb::kCancelJobs, Verb::kRetryJobs, Verb::kMoveJobs};
  constexpr std::array<const char*, 3> kWords = {"cancel-jobs ", "retry-jobs ", "move-jobs "};
  constexpr std::uint64_t kUsualLimit = 10'000;
  const std::uint64_t which = below(random, kVerbs.size());
  Command command{.verb = kVerbs[which], .bound = kUsualLimit, .tube = random_tube(random)};
  std::vector<std::string> options;
  choose_filter(command, options, random, now);
  if (below(random, 3) != 0) {
    command.bound = 1 + below(random, 40);
    options.push_back("limit=" + number(command.bound));
  }
  command.dry_run = below(random, 4) == 0;
  if (command.dry_run) options.emplace_back("dry-run=yes");
  if (command.verb == Verb::kMoveJobs) {
    do {
      command.to = random_tube(random);
    } while (command.to == command.tube);
    options.push_back("to=" + command.to);
  }
  command.bytes = kWords[which] + command.tube + line_of(std::move(options), random);
  return command;
}

}  // namespace carillon::simulator
