// Random commands about the jobs of a tube (talker_lists.h).

#include "simulator/talker_lists.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "carillon/queue/job_bulk.h"
#include "simulator/talker_words.h"

namespace carillon::simulator {

namespace {

using queue::bit_of;
using queue::JobState;
using queue::Millis;

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

// Most windows have a job, and some of them have come.
void choose_spread(Command& command, std::vector<std::string>& options, const Model& model,
                   Random& random, queue::Now now) {
  queue::JobFilter& filter = command.filter;
  filter.states = bit_of(JobState::kDelayed);
  const Millis window = 1 + below(random, below(random, 2) == 0 ? 3'000 : 120'000);
  filter.due_from = now.utc_ns / 1'000'000 + below(random, 4'000) - 2'000;
  if (const auto id = model.any_job(random); id && below(random, 4) != 0) {
    const KnownJob& job = model.known(*id);
    command.tube = job.tube;
    filter.due_from = job.record.due - below(random, std::min<Millis>(window, job.record.due));
  }
  filter.due_before = filter.due_from + window;
  command.over = window + 1 + below(random, 4 * window);
  if (below(random, 8) == 0) command.over = queue::kLongestSpread;
  options.push_back("due-after=" + number(filter.due_from));
  options.push_back("due-before=" + number(filter.due_before));
  options.push_back("over=" + duration(command.over));
}

void choose_filter(Command& command, std::vector<std::string>& options, const Model& model,
                   Random& random, queue::Now now) {
  queue::JobFilter& filter = command.filter;
  const bool spreads = command.verb == Verb::kSpreadJobs;
  if (spreads) choose_spread(command, options, model, random, now);
  if (!spreads) choose_states(filter, options, command.verb == Verb::kRetryJobs, random);
  const auto moment = [&] { return now.utc_ns / 1'000'000 + below(random, 100'000) - 20'000; };
  if (below(random, 4) == 0) {
    filter.key_prefix = below(random, 2) == 0 ? "order" : "1";
    options.push_back("key-prefix=" + filter.key_prefix);
  }
  if (below(random, 6) == 0) {
    filter.group = random_group(random);
    options.push_back("group=" + filter.group);
  }
  if (spreads) return;
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

Command random_list(const Model& model, Random& random, queue::Now now) {
  if (model.next_page() && below(random, 2) == 0) return *model.next_page();
  constexpr std::uint64_t kUsualLimit = 100;
  Command command{.verb = Verb::kListJobs, .bound = kUsualLimit, .tube = random_tube(random)};
  std::vector<std::string> options;
  choose_filter(command, options, model, random, now);
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

Command random_list_groups(Random& random) {
  constexpr std::uint64_t kUsualLimit = 100;
  Command command{.verb = Verb::kListGroups, .bound = kUsualLimit, .tube = random_tube(random)};
  command.bytes = "list-groups " + command.tube;
  if (below(random, 2) == 0) {
    command.bound = 1 + below(random, 4);
    command.bytes += " limit=" + number(command.bound);
  }
  command.bytes += "\r\n";
  return command;
}

Command random_bulk(const Model& model, Random& random, queue::Now now) {
  if (model.next_of_many() && below(random, 3) == 0) return *model.next_of_many();
  constexpr std::array<Verb, 4> kVerbs = {Verb::kCancelJobs, Verb::kRetryJobs, Verb::kMoveJobs,
                                          Verb::kSpreadJobs};
  constexpr std::array<const char*, 4> kWords = {"cancel-jobs ", "retry-jobs ", "move-jobs ",
                                                 "spread-jobs "};
  constexpr std::uint64_t kUsualLimit = 10'000;
  const std::uint64_t which = below(random, kVerbs.size());
  Command command{.verb = kVerbs[which], .bound = kUsualLimit, .tube = random_tube(random)};
  std::vector<std::string> options;
  choose_filter(command, options, model, random, now);
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
