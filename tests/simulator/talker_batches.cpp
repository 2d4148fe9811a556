// Random commands about many jobs (talker_batches.h).

#include "simulator/talker_batches.h"

#include <array>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/talker_keys.h"
#include "simulator/talker_words.h"

namespace carillon::simulator {

namespace {

// The line of a put-job.
std::string_view line_of_put(const Command& put) {
  return std::string_view(put.bytes).substr(0, put.bytes.find('\r'));
}

bool names(const Command& put, std::string_view option) {
  return line_of_put(put).find(option) != std::string_view::npos;
}

// Options in the line of the batch, for the jobs that do not name them.
void choose_defaults(std::vector<Command>& jobs, std::vector<std::string>& options,
                     Random& random) {
  if (below(random, 2) == 0) {
    const queue::Priority priority = random_priority(random);
    options.push_back("pri=" + number(priority));
    for (Command& job : jobs) {
      if (!names(job, " pri=")) job.priority = priority;
    }
  }
  if (below(random, 3) == 0) {
    const queue::Millis delay = below(random, 2'000);
    options.push_back("delay=" + duration(delay));
    for (Command& job : jobs) {
      if (!names(job, " delay=") && !names(job, " due=")) job.delay = delay;
    }
  }
  if (below(random, 2) == 0) {
    options.emplace_back("on-conflict=ignore");
    for (Command& job : jobs) {
      if (!names(job, " on-conflict=")) job.on_conflict = queue::OnConflict::kIgnore;
    }
  }
}

std::vector<Command> random_jobs(Random& random, queue::Now now) {
  std::vector<Command> jobs;
  std::set<std::string> keys;
  const std::uint64_t wanted = below(random, 8) == 0 ? below(random, 25) : below(random, 5);
  while (jobs.size() < wanted) {
    Command job = random_put_job(random, now, random_body(random));
    // One key in three: else most batches would be refused.
    if (!job.key.empty() && (below(random, 3) != 0 || !keys.insert(job.key).second)) continue;
    jobs.push_back(std::move(job));
  }
  return jobs;
}

void choose_token(Command& batch, std::vector<std::string>& options, Random& random) {
  constexpr queue::Millis kUsualWindow = 86'400'000;
  batch.once = "t" + number(below(random, 3));
  batch.window = kUsualWindow;
  options.push_back("once=" + batch.once);
  if (below(random, 4) == 0) return;
  batch.window = one_of(random, std::array<std::uint64_t, 4>{1, 700, 20'000, 3'600'000});
  options.push_back("window=" + duration(batch.window));
}

// A few jobs that the client holds, some others, and now and then many ids that no job has.
std::vector<queue::JobId> random_ids(const Model& model, ClientNumber client, Random& random) {
  constexpr queue::JobId kNoJob = 1'000'000'000;
  std::vector<queue::JobId> ids;
  const std::uint64_t many = below(random, 16) == 0 ? 60 + below(random, 80) : 0;
  for (std::uint64_t n = 0; n < many; ++n) ids.push_back(kNoJob + n);
  for (const queue::JobId id : model.held_by(client)) {
    if (below(random, 3) != 0) ids.push_back(id);
  }
  for (std::uint64_t n = below(random, 4); n > 0; --n) ids.push_back(some_id(model, random));
  for (std::size_t i = ids.size(); i > 1; --i) std::swap(ids[i - 1], ids[below(random, i)]);
  return ids;
}

Command on_jobs(Verb verb, const std::string& word, std::vector<queue::JobId> ids,
                const std::string& options) {
  Command command{.verb = verb, .ids = std::move(ids)};
  for (const queue::JobId id : command.ids)
    command.body += (command.body.empty() ? "" : " ") + number(id);
  command.bytes =
      word + " " + number(command.body.size()) + options + "\r\n" + command.body + "\r\n";
  return command;
}

}  // namespace

Command random_put_jobs(const Model& model, Random& random, queue::Now now) {
  if (model.last_batch() && below(random, 3) == 0) return *model.last_batch();
  constexpr std::size_t kWord = std::string_view("put-job ").size();
  Command batch{.verb = Verb::kPutJobs, .jobs = random_jobs(random, now)};
  for (const Command& job : batch.jobs) batch.body += job.bytes.substr(kWord);
  std::vector<std::string> options;
  choose_defaults(batch.jobs, options, random);
  if (below(random, 2) == 0) choose_token(batch, options, random);
  const std::string line = line_of(std::move(options), random);
  batch.batch = std::hash<std::string>()(line + batch.body);
  batch.bytes = "put-jobs " + number(batch.body.size()) + line + batch.body + "\r\n";
  return batch;
}

Command random_reserve_jobs(Random& random) {
  Command command{.verb = Verb::kReserveJobs, .bound = 1 + below(random, 12)};
  command.bytes = "reserve-jobs " + number(command.bound);
  if (below(random, 4) != 0) {
    command.timeout = below(random, 2) * below(random, 2'000);
    command.bytes += " timeout=" + duration(*command.timeout);
  }
  command.bytes += "\r\n";
  return command;
}

Command random_delete_jobs(const Model& model, ClientNumber client, Random& random) {
  return on_jobs(Verb::kDeleteJobs, "delete-jobs", random_ids(model, client, random), "");
}

Command random_release_jobs(const Model& model, ClientNumber client, Random& random) {
  std::string options;
  std::optional<queue::Priority> priority;
  queue::Millis delay = 0;
  if (below(random, 2) == 0) {
    priority = random_priority(random);
    options += " pri=" + number(*priority);
  }
  if (below(random, 2) == 0) {
    delay = below(random, 3'000);
    options += " delay=" + duration(delay);
  }
  Command command =
      on_jobs(Verb::kReleaseJobs, "release-jobs", random_ids(model, client, random), options);
  command.patch.priority = priority;
  command.delay = delay;
  return command;
}

}  // namespace carillon::simulator
