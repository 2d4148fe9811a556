// Random commands about the jobs of a tube (talker_parts.h).

#include "simulator/talker_parts.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "carillon/queue/job_bulk.h"
#include "simulator/requests.h"
#include "simulator/talker_words.h"

namespace carillon::simulator {

namespace {

using queue::bit_of;
using queue::JobState;
using queue::Millis;

void choose_states(queue::JobFilter& filter, bool of_retry, Random& random) {
  constexpr std::array<std::uint32_t, 5> kStates = {
      bit_of(JobState::kDelayed), bit_of(JobState::kBuried), queue::kDeadJobs,
      bit_of(JobState::kReady), bit_of(JobState::kReserved)};
  constexpr std::uint64_t kToRetry = 3;
  if (of_retry) filter.states = bit_of(JobState::kBuried);
  if (below(random, 2) == 0) return;
  const std::uint64_t choices = of_retry ? kToRetry : kStates.size();
  filter.states = kStates[below(random, choices)];
  const std::uint32_t other = kStates[below(random, choices)];
  if (below(random, 2) == 0) filter.states |= other;
}

// Most windows have a job, and some of them have come.
void choose_spread(Command& command, const Model& model, Random& random, queue::Now now) {
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
}

void choose_filter(Command& command, const Model& model, Random& random, queue::Now now) {
  queue::JobFilter& filter = command.filter;
  const bool spreads = command.verb == Verb::kSpreadJobs;
  if (spreads) choose_spread(command, model, random, now);
  if (!spreads) choose_states(filter, command.verb == Verb::kRetryJobs, random);
  const auto moment = [&] { return now.utc_ns / 1'000'000 + below(random, 100'000) - 20'000; };
  if (below(random, 4) == 0) filter.key_prefix = below(random, 2) == 0 ? "order" : "1";
  if (below(random, 6) == 0) filter.group = random_group(random);
  if (spreads) return;
  if (below(random, 4) == 0) filter.due_from = moment();
  if (below(random, 4) == 0) filter.due_before = moment();
}

}  // namespace

Command random_list(const Model& model, Random& random, queue::Now now) {
  if (model.next_page() && below(random, 2) == 0) return *model.next_page();
  Command command{.verb = Verb::kListJobs, .bound = 100, .tube = random_tube(random)};
  choose_filter(command, model, random, now);
  if (below(random, 2) == 0) command.bound = 1 + below(random, 30);
  write_request(command);
  return command;
}

Command random_due_counts(Random& random) {
  constexpr std::array<queue::Millis, 3> kWidths = {0, 3'600'000, 86'400'000};
  Command command{.verb = Verb::kDueCounts,
                  .bound = below(random, 4),
                  .tube = random_tube(random),
                  .over = kWidths[below(random, kWidths.size())]};
  write_request(command);
  return command;
}

Command random_list_groups(Random& random) {
  Command command{.verb = Verb::kListGroups, .bound = 100, .tube = random_tube(random)};
  if (below(random, 2) == 0) command.bound = 1 + below(random, 4);
  write_request(command);
  return command;
}

Command random_bulk(const Model& model, Random& random, queue::Now now) {
  if (model.next_of_many() && below(random, 3) == 0) return *model.next_of_many();
  constexpr std::array<Verb, 4> kVerbs = {Verb::kCancelJobs, Verb::kRetryJobs, Verb::kMoveJobs,
                                          Verb::kSpreadJobs};
  constexpr std::uint64_t kUsualLimit = 10'000;
  Command command{.verb = kVerbs[below(random, kVerbs.size())],
                  .bound = kUsualLimit,
                  .tube = random_tube(random)};
  choose_filter(command, model, random, now);
  if (below(random, 3) != 0) command.bound = 1 + below(random, 40);
  command.dry_run = below(random, 4) == 0;
  if (command.verb == Verb::kMoveJobs) {
    do {
      command.to = random_tube(random);
    } while (command.to == command.tube);
  }
  write_request(command);
  return command;
}

}  // namespace carillon::simulator
