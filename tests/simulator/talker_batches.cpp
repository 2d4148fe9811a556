// Random commands about many jobs (talker_parts.h).

#include "simulator/talker_parts.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// What an option says, of which all names differ in their first letters.
void copy_option(std::string_view option, const Command& from, Command& to) {
  const auto is = [option](std::string_view name) { return option.starts_with(name); };
  if (is("pri=")) to.priority = from.priority;
  if (is("ttr=")) to.ttr = from.ttr;
  if (is("delay=")) to.delay = from.delay;
  if (is("due=")) to.due_at = from.due_at;
  if (is("spread=")) to.spread = from.spread;
  if (is("buried=")) to.buried = from.buried;
  if (is("on-conflict=")) to.on_conflict = from.on_conflict;
  if (is("key-window=")) to.key_window = from.key_window;
  if (is("group=")) to.group = from.group;
  if (is("attributes=")) to.attributes = from.attributes;
  if (is("expires-in=")) to.expiry.in = from.expiry.in;
  if (is("expires-at=")) to.expiry.at = from.expiry.at;
  if (is("at-expiry=")) to.expiry.then = from.expiry.then;
  if (is("max-attempts=")) to.policy.max_attempts = from.policy.max_attempts;
  if (is("jitter=")) to.policy.jitter = from.policy.jitter;
  if (is("lost=")) to.policy.lost_fails = from.policy.lost_fails;
  if (!is("backoff=")) return;
  to.policy.backoff = from.policy.backoff;
  to.policy.backoff_max = from.policy.backoff_max;
}

// Two options exclude each other; the put names the other one.
bool names_instead(const Command& put, std::string_view option) {
  if (option.starts_with("delay=")) return names(put, " due=");
  if (option.starts_with("due=")) return names(put, " delay=");
  if (option.starts_with("expires-in=")) return names(put, " expires-at=");
  return option.starts_with("expires-at=") && names(put, " expires-in=");
}

// Returns true if a job may expire before it is due, and so the batch may be refused.
bool clashes(const Command& usual, const std::vector<Command>& jobs) {
  return std::any_of(jobs.begin(), jobs.end(), [&usual](const Command& job) {
    const Command& due = names(job, " delay=") || names(job, " due=") ? job : usual;
    const bool expires = names(job, " expires-in=") || names(job, " expires-at=");
    const ExpiryOptions& expiry = expires ? job.expiry : usual.expiry;
    const queue::Millis later = due.delay + (names(job, " spread=") ? job.spread : usual.spread);
    if (expiry.in) return due.due_at || later >= *expiry.in;
    if (!expiry.at || *expiry.at == queue::kNeverExpires) return false;
    return due.due_at ? *due.due_at + later >= *expiry.at : later > 0;
  });
}

// Options in the line of the batch, for the jobs that do not name them: those of another put.
void choose_defaults(std::vector<Command>& jobs, std::vector<std::string>& options, Random& random,
                     queue::Now now) {
  if (below(random, 3) == 0) return;
  const Command usual = random_put_job(random, now, {});
  if (clashes(usual, jobs)) return;
  std::string_view line = line_of_put(usual);  // which begins with two words
  const std::vector<Command> as_sent = jobs;
  while (line.find(' ') != std::string_view::npos) {
    line.remove_prefix(line.find(' ') + 1);
    const std::string option(line.substr(0, line.find(' ')));
    const std::string name = option.substr(0, option.find('=') + 1);
    // An at-expiry alone says nothing.
    const bool is_left_out = below(random, 4) == 0 && !name.starts_with("expires-");
    if (name.empty() || name == "key=" || is_left_out) continue;
    options.push_back(option);
    for (std::size_t n = 0; n < jobs.size(); ++n) {
      if (!names(as_sent[n], " " + name) && !names_instead(as_sent[n], option))
        copy_option(option, usual, jobs[n]);
    }
  }
}

// Jobs that are ready at once, and have one priority: so their groups take turns for a while.
std::vector<Command> jobs_of_groups(Random& random) {
  std::vector<Command> jobs(6 + below(random, 20));
  for (Command& job : jobs) {
    job = {.verb = Verb::kPutJob, .ttr = 120'000, .body = random_body(random)};
    if (below(random, 8) != 0) job.group = random_group(random);
    job.bytes = "put-job " + number(job.body.size()) + " pri=0 ttr=120s" +
                (job.group.empty() ? "" : " group=" + job.group) + "\r\n" + job.body + "\r\n";
  }
  return jobs;
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
  const bool lets_groups_queue = below(random, 6) == 0;
  Command batch{.verb = Verb::kPutJobs,
                .jobs = lets_groups_queue ? jobs_of_groups(random) : random_jobs(random, now)};
  for (const Command& job : batch.jobs) batch.body += job.bytes.substr(kWord);
  std::vector<std::string> options;
  if (!lets_groups_queue) choose_defaults(batch.jobs, options, random, now);
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
