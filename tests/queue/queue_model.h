// A queue written as simply as possible: the reference that the engine is compared with. It has
// whole milliseconds and no store.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "carillon/queue/engine.h"

namespace carillon::queue {

class QueueModel {
 public:
  struct Job {
    std::string body;
    std::string tube;
    Priority priority = 0;
    UtcMs due = 0;
    Millis ttr = 0;
    JobState state = JobState::kDelayed;
    std::uint64_t holder = 0;
    std::uint64_t reserved_as = 0;  // the larger, the later it was reserved
    std::uint64_t deadline = 0;
    std::uint64_t burial = 0;
    std::string key;
    Millis key_window = 0;
    RetryPolicy retry;
    std::uint32_t attempts = 0;
    Death death = Death::kNone;
    bool cancel_asked = false;
    UtcMs expires = 0;
    AtExpiry at_expiry = AtExpiry::kDrop;
    std::uint64_t ready_as = 0;  // the larger, the later it became ready
    UtcMs ripe_at = 0;           // when it became ready by the clock alone
    UtcMs ended_at = 0;          // when its last attempt has failed
    std::uint64_t armed_as = 0;  // the larger, the later its deadline was set
    bool took_token = false;
  };
  // Each millisecond `rate` parts of tokens come into the bucket; a token has `period` parts.
  struct Bucket {
    Limits limits;
    std::uint64_t parts = 0;

    std::uint64_t full() const { return limits.burst * limits.period + limits.rate - 1; }
    void add(std::uint64_t more) {
      if (limits.rate > 0) parts = std::min(parts + more, full());
    }
  };
  struct Key {
    JobId id = 0;
    UtcMs until = 0;  // 0: the job is there
  };
  struct Token {
    UtcMs until = 0;
    std::string fingerprint;
    std::vector<PutOutcome> answer;
  };
  struct Client {
    std::string tube_in_use = "default";
    std::vector<std::string> watched{"default"};
    std::uint64_t waits_as = 0;  // the larger, the later it began to wait; 0 if it does not wait
    std::uint64_t give_up_at = UINT64_MAX;
  };

  explicit QueueModel(UtcMs utc) : utc_(utc) {}

  std::map<JobId, Job> jobs;
  std::map<std::uint64_t, Client> clients;
  std::map<std::pair<std::string, std::string>, Key> keys;  // by (tube, key)
  std::map<std::string, Token> tokens;                      // of batches
  std::map<std::string, RetryPolicy> policies;              // of tubes
  std::map<std::string, Bucket> buckets;                    // of tubes
  std::vector<std::string> deliveries;                      // "client:body" or "client:WORD"

  UtcMs utc() const { return utc_; }

  void pass_one_ms() {
    ++utc_;
    for (auto& [tube, bucket] : buckets) bucket.add(bucket.limits.rate);
    settle();
  }

  void set_limits(const std::string& tube, const Limits& limits) {
    Bucket& bucket = buckets[tube];
    const Bucket before = std::exchange(bucket, {.limits = limits});
    if (before.limits.rate == 0) {
      bucket.add(UINT64_MAX / 2);
    } else if (before.limits.period == limits.period) {
      bucket.add(before.parts);
    } else {
      bucket.add(std::min(before.parts / before.limits.period, limits.burst) * limits.period);
    }
    serve();
  }

  // One that is buried is so from the start.
  void put(JobId id, Job job) {
    if (job.state == JobState::kBuried) {
      job.burial = ++order_;
    } else {
      give_back(job);
    }
    jobs[id] = job;
    serve();
  }

  // `id` is for the job if it is a new one.
  PutOutcome put(JobId id, Job job, OnConflict on_conflict) {
    using Result = PutOutcome::Result;
    const std::pair name(job.tube, job.key);
    const bool kept = on_conflict == OnConflict::kReject || on_conflict == OnConflict::kIgnore;
    const auto key = keys.find(name);
    if (key != keys.end() && key->second.until > utc_ && kept)
      return {.result = Result::kExists, .id = key->second.id, .owner = KeyOwner::kDone};
    if (key == keys.end() || key->second.until != 0) {
      keys[name] = {.id = id};
      put(id, std::move(job));
      return {.result = Result::kInserted, .id = id};
    }
    const JobId known = key->second.id;
    const Job& other = jobs.at(known);
    const KeyOwner owner = owner_of_key(other);
    const bool is_ending = other.state == JobState::kReserved && other.cancel_asked;
    if (kept && !is_ending) return {.result = Result::kExists, .id = known, .owner = owner};
    if (owner == KeyOwner::kReserved)
      return {.result = Result::kReserved, .id = known, .owner = owner};
    const bool buried = other.state == JobState::kBuried;
    if (on_conflict == OnConflict::kKeepDue && !buried) job.due = other.due;
    if (on_conflict == OnConflict::kDebounce && !buried) job.due = std::max(job.due, other.due);
    put(known, std::move(job));
    return {.result = Result::kReplaced, .id = known};
  }

  // The jobs have these ids, if they are new ones.
  BatchOutcome put_all(const std::vector<Job>& batch, const std::vector<JobId>& ids,
                       const std::vector<OnConflict>& on_conflict, const BatchOrder& order) {
    using Result = BatchOutcome::Result;
    const std::string name(order.once);
    const auto token = tokens.find(name);
    if (token != tokens.end() && token->second.until > utc_) {
      const std::string& first = token->second.fingerprint;
      if (!first.empty() && first != order.fingerprint) return {.result = Result::kOtherBatch};
      return {.result = Result::kAlready, .jobs = token->second.answer};
    }
    const QueueModel before = *this;
    BatchOutcome outcome;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      PutOutcome put{.result = PutOutcome::Result::kInserted, .id = ids[i]};
      if (batch[i].key.empty()) {
        this->put(ids[i], batch[i]);
      } else {
        put = this->put(ids[i], batch[i], on_conflict[i]);
      }
      outcome.jobs.push_back(put);
      const bool ignored =
          put.result == PutOutcome::Result::kExists && on_conflict[i] == OnConflict::kIgnore;
      if (put.done() || ignored) continue;
      *this = before;
      outcome.result = Result::kRefused;
      outcome.stopper = i;
      return outcome;
    }
    if (!name.empty())
      tokens[name] = {utc_ + order.window, std::string(order.fingerprint), outcome.jobs};
    return outcome;
  }

  std::optional<JobId> job_with_key(const std::string& tube, const std::string& key) const {
    const auto found = keys.find({tube, key});
    if (found == keys.end() || found->second.until != 0) return std::nullopt;
    return found->second.id;
  }

  ChangeOutcome::Result cancel(JobId id, bool ask) {
    using Result = ChangeOutcome::Result;
    if (!jobs.contains(id)) return Result::kNone;
    if (jobs[id].state == JobState::kReserved) {
      jobs[id].cancel_asked |= ask;
      return ask ? Result::kAsked : Result::kReserved;
    }
    end(id);
    return Result::kDone;
  }

  FailOutcome fail(std::uint64_t client, JobId id) {
    if (!holds(client, id)) return {};
    const FailOutcome outcome = end_attempt(id);
    serve();
    return outcome;
  }

  ChangeOutcome::Result patch(JobId id, Priority priority, std::optional<Millis> delay,
                              const std::string& body, std::optional<UtcMs> expires) {
    using Result = ChangeOutcome::Result;
    if (!jobs.contains(id)) return Result::kNone;
    if (jobs[id].state == JobState::kReserved) return Result::kReserved;
    Job job = jobs[id];
    job.priority = priority;
    job.body = body;
    if (delay) {
      job.due = utc_ + *delay;
      if (job.state == JobState::kBuried) revive(job);
      job.state = JobState::kDelayed;
    }
    job.expires = expires.value_or(job.expires);
    if (job.state != JobState::kBuried) {
      put(id, job);
    } else {
      jobs[id] = job;
    }
    return Result::kDone;
  }

  ChangeOutcome::Result bury_job(JobId id, std::optional<Priority> priority) {
    using Result = ChangeOutcome::Result;
    if (!jobs.contains(id)) return Result::kNone;
    Job& job = jobs[id];
    if (job.state == JobState::kReserved) return Result::kReserved;
    if (job.state == JobState::kBuried) return Result::kDone;
    job.priority = priority.value_or(job.priority);
    job.state = JobState::kBuried;
    job.burial = ++order_;
    return Result::kDone;
  }

  // Returns the body of a job, or a word, if the client is answered at once.
  std::optional<std::string> reserve(std::uint64_t client, std::optional<Millis> timeout) {
    if (const auto best = best_ready(client)) return take(client, *best);
    if (deadline_soon(client)) return "DEADLINE_SOON";
    if (timeout == 0) return "TIMED_OUT";
    clients[client].waits_as = ++order_;
    clients[client].give_up_at = timeout ? utc_ + *timeout : UINT64_MAX;
    return std::nullopt;
  }

  bool reserve_job(std::uint64_t client, JobId id) {
    if (!jobs.contains(id) || jobs[id].state == JobState::kReserved) return false;
    if (jobs[id].state == JobState::kBuried) {
      jobs[id].due = utc_;
      revive(jobs[id]);
    } else if (has_expired(jobs[id])) {
      return false;
    }
    take(client, id);
    return true;
  }

  bool release(std::uint64_t client, JobId id, Priority priority, Millis delay) {
    if (!holds(client, id)) return false;
    Job& job = jobs[id];
    if (!gone_if_asked(id)) {
      job.priority = priority;
      job.due = delay > 0 ? utc_ + delay : std::min(job.due, utc_);
      give_back(job);
    }
    serve();
    return true;
  }

  std::vector<bool> release_all(std::uint64_t client, const std::vector<JobId>& ids,
                                std::optional<Priority> priority, Millis delay) {
    std::vector<bool> done;
    for (const JobId id : ids) {
      done.push_back(holds(client, id));
      if (!done.back() || gone_if_asked(id)) continue;
      Job& job = jobs[id];
      job.priority = priority.value_or(job.priority);
      job.due = delay > 0 ? utc_ + delay : std::min(job.due, utc_);
      job.state = delay > 0 ? JobState::kDelayed : JobState::kReady;
    }
    serve();
    return done;
  }

  bool bury(std::uint64_t client, JobId id, Priority priority) {
    if (!holds(client, id)) return false;
    if (!gone_if_asked(id)) {
      jobs[id].priority = priority;
      jobs[id].state = JobState::kBuried;
      jobs[id].burial = ++order_;
    }
    serve();
    return true;
  }

  bool touch(std::uint64_t client, JobId id, std::optional<Millis> ttr = std::nullopt) {
    if (!holds(client, id)) return false;
    jobs[id].deadline = utc_ + std::max(kMinTtr, ttr.value_or(jobs[id].ttr));
    jobs[id].armed_as = ++order_;
    return true;
  }

  bool give_back(std::uint64_t client, JobId id) {
    if (!holds(client, id)) return false;
    Bucket& bucket = buckets[jobs[id].tube];
    if (jobs[id].took_token) bucket.add(bucket.limits.period);
    if (!gone_if_asked(id)) give_back(jobs[id]);
    serve();
    return true;
  }

  bool remove(std::uint64_t client, JobId id) { return remove_all(client, {id}).front(); }

  std::vector<bool> remove_all(std::uint64_t client, const std::vector<JobId>& ids) {
    std::vector<bool> done;
    for (const JobId id : ids) {
      const bool there = jobs.contains(id);
      done.push_back(there && (jobs[id].state != JobState::kReserved || holds(client, id)));
      if (done.back()) end(id, is_done(jobs[id]));
    }
    serve();
    return done;
  }

  std::uint64_t kick(std::uint64_t client, std::uint64_t bound) {
    std::vector<JobId> kicked = in_order(clients[client].tube_in_use, JobState::kBuried);
    if (kicked.empty()) kicked = in_order(clients[client].tube_in_use, JobState::kDelayed);
    if (kicked.size() > bound) kicked.resize(bound);
    for (const JobId id : kicked) {
      make_ready(id);
      serve();
    }
    return kicked.size();
  }

  bool kick_job(JobId id) {
    if (!jobs.contains(id)) return false;
    if (jobs[id].state != JobState::kBuried && jobs[id].state != JobState::kDelayed) return false;
    make_ready(id);
    serve();
    return true;
  }

  void pause(const std::string& tube, Millis duration) {
    paused_until_[tube] = utc_ + duration;
    serve();
  }

  void disconnect(std::uint64_t client) {
    std::vector<JobId> held;
    for (const auto& [id, job] : jobs) {
      if (holds(client, id)) held.push_back(id);
    }
    std::sort(held.begin(), held.end(),
              [this](JobId a, JobId b) { return jobs[a].reserved_as < jobs[b].reserved_as; });
    clients.erase(client);
    std::vector<JobId> ended;
    for (const JobId id : held) {
      if (jobs[id].cancel_asked || policy_of(jobs[id]).lost_fails) {
        ended.push_back(id);
        continue;
      }
      give_back(jobs[id]);
      serve();
    }
    for (const JobId id : ended) end_attempt(id);
    serve();
  }

  void crash() {
    clients.clear();
    paused_until_.clear();
    deliveries.clear();
    for (auto& [tube, bucket] : buckets) bucket.parts = 0;
    std::vector<JobId> alive;
    for (auto& [id, job] : jobs) {
      if (job.state != JobState::kBuried) alive.push_back(id);
    }
    const auto rank = [this](JobId id) { return std::pair(jobs[id].due, id); };
    std::sort(alive.begin(), alive.end(), [&](JobId a, JobId b) { return rank(a) < rank(b); });
    for (const JobId id : alive) give_back(jobs[id]);
    end_doomed();
  }

  // Returns a tube's jobs in one state: ready ones by (priority, id), delayed ones by (due, id),
  // buried ones in the order of their burials.
  std::vector<JobId> in_order(const std::string& tube, JobState state) {
    std::vector<JobId> ids;
    for (const auto& [id, job] : jobs) {
      if (job.tube == tube && job.state == state) ids.push_back(id);
    }
    const auto rank = [this, state](JobId id) {
      const Job& job = jobs[id];
      if (state == JobState::kReady) return std::pair<std::uint64_t, JobId>(job.priority, id);
      return std::pair<std::uint64_t, JobId>(state == JobState::kDelayed ? job.due : job.burial,
                                             id);
    };
    std::sort(ids.begin(), ids.end(), [&rank](JobId a, JobId b) { return rank(a) < rank(b); });
    return ids;
  }

 private:
  const RetryPolicy& policy_of(const Job& job) {
    return job.retry != RetryPolicy() ? job.retry : policies[job.tube];
  }
  void revive(Job& job) const {
    if (job.death != Death::kNone) job.attempts = 0;
    if (job.death == Death::kExpired && has_expired(job)) job.expires = 0;
    job.death = Death::kNone;
  }
  bool has_expired(const Job& job) const { return job.expires != 0 && job.expires <= utc_; }
  bool gone_if_asked(JobId id) {
    const bool asked = jobs[id].cancel_asked;
    if (asked) end(id);
    return asked;
  }
  // No job whose cancel was asked for, or that has expired, is ready. Those that die are buried in
  // the order in which the engine meets them: as they become ready by the clock, then as they have
  // been ready, then as they come back from their workers, then as their attempts have failed.
  void end_doomed() {
    std::vector<JobId> ending;
    for (const auto& [id, job] : jobs) {
      if (job.state == JobState::kReady && (job.cancel_asked || has_expired(job)))
        ending.push_back(id);
    }
    const auto rank = [this](JobId id) {
      const Job& job = jobs[id];
      if (job.ended_at == utc_) return std::pair(3, job.ready_as);
      if (job.ripe_at == utc_) return std::pair(0, job.ready_as);
      return std::pair(job.ready_as > settled_from_ ? 2 : 1, job.ready_as);
    };
    std::sort(ending.begin(), ending.end(), [&](JobId a, JobId b) { return rank(a) < rank(b); });
    for (const JobId id : ending) {
      if (jobs[id].cancel_asked || jobs[id].at_expiry == AtExpiry::kDrop) {
        end(id);
        continue;
      }
      jobs[id].death = Death::kExpired;
      jobs[id].state = JobState::kBuried;
      jobs[id].burial = ++order_;
    }
  }
  FailOutcome end_attempt(JobId id) {
    if (gone_if_asked(id)) return {.result = FailOutcome::Result::kCancelled};
    Job& job = jobs[id];
    const RetryPolicy& policy = policy_of(job);
    FailOutcome outcome{.result = FailOutcome::Result::kAgain, .attempts = ++job.attempts};
    job.ended_at = utc_;
    if (policy.max_attempts > 0 && job.attempts >= policy.max_attempts) {
      outcome.result = FailOutcome::Result::kDead;
      job.death = Death::kAttempts;
      job.state = JobState::kBuried;
      job.burial = ++order_;
      return outcome;
    }
    outcome.delay = delay_after(policy, id, job.attempts);
    job.due = outcome.delay > 0 ? utc_ + outcome.delay : std::min(job.due, utc_);
    give_back(job);
    return outcome;
  }
  // Whether a client that deletes it says so.
  static bool is_done(const Job& job) {
    const bool may_be = job.state == JobState::kReserved || job.state == JobState::kReady;
    return may_be && !job.cancel_asked;
  }
  static KeyOwner owner_of_key(const Job& job) {
    switch (job.state) {
      case JobState::kDelayed:
        return KeyOwner::kDelayed;
      case JobState::kReady:
        return KeyOwner::kReady;
      case JobState::kReserved:
        return KeyOwner::kReserved;
      case JobState::kBuried:
        break;
    }
    return job.death == Death::kNone ? KeyOwner::kBuried : KeyOwner::kDead;
  }
  void end(JobId id, bool is_done = false) {
    const Job& job = jobs.at(id);
    if (!job.key.empty()) {
      const auto key = keys.find({job.tube, job.key});
      key->second.until = utc_ + job.key_window;
      if (job.key_window == 0 || !is_done) keys.erase(key);
    }
    jobs.erase(id);
  }
  bool holds(std::uint64_t client, JobId id) {
    return jobs.contains(id) && jobs[id].state == JobState::kReserved && jobs[id].holder == client;
  }
  bool watches(const Client& client, const std::string& tube) const {
    return std::find(client.watched.begin(), client.watched.end(), tube) != client.watched.end();
  }
  bool paused(const std::string& tube) { return paused_until_[tube] > utc_; }
  // Returns true if a job of the tube may go out now.
  bool open(const std::string& tube) {
    const Bucket& bucket = buckets[tube];
    const auto running = std::count_if(jobs.begin(), jobs.end(), [&](const auto& job) {
      return job.second.tube == tube && job.second.state == JobState::kReserved;
    });
    const Limits& limits = bucket.limits;
    if (limits.max_running > 0 && static_cast<std::uint64_t>(running) >= limits.max_running)
      return false;
    return !paused(tube) && (limits.rate == 0 || bucket.parts >= limits.period);
  }

  void give_back(Job& job) {
    job.state = job.due <= utc_ ? JobState::kReady : JobState::kDelayed;
    job.ready_as = ++order_;
  }

  void make_ready(JobId id) {
    if (jobs[id].state == JobState::kBuried) revive(jobs[id]);
    jobs[id].due = utc_;
    give_back(jobs[id]);
    end_doomed();
  }

  std::optional<JobId> best_ready(std::uint64_t client) {
    std::optional<JobId> best;
    for (const auto& [id, job] : jobs) {
      if (job.state != JobState::kReady || !open(job.tube) || !watches(clients[client], job.tube))
        continue;
      if (!best || job.priority < jobs[*best].priority) best = id;
    }
    return best;
  }

  bool deadline_soon(std::uint64_t client) {
    return std::any_of(jobs.begin(), jobs.end(), [this, client](const auto& job) {
      return holds(client, job.first) && job.second.deadline <= utc_ + kSafetyMargin;
    });
  }

  std::string take(std::uint64_t client, JobId id) {
    Job& job = jobs[id];
    job.state = JobState::kReserved;
    job.holder = client;
    job.reserved_as = ++order_;
    job.deadline = utc_ + job.ttr;
    job.armed_as = ++order_;
    Bucket& bucket = buckets[job.tube];
    job.took_token = bucket.limits.rate > 0 && bucket.parts >= bucket.limits.period;
    if (job.took_token) bucket.parts -= bucket.limits.period;
    return job.body;
  }

  // Gives ready jobs to waiting clients: the lowest (priority, id) first, to the client that has
  // waited longest for its tube.
  void serve() {
    end_doomed();
    while (true) {
      std::optional<JobId> best;
      std::uint64_t best_client = 0;
      std::map<std::string, bool> opens;
      for (const auto& [id, job] : jobs) {
        if (job.state != JobState::kReady) continue;
        if (!opens.contains(job.tube)) opens[job.tube] = open(job.tube);
        if (!opens[job.tube]) continue;
        if (best && job.priority >= jobs[*best].priority) continue;
        std::uint64_t first = 0;
        for (const auto& [name, client] : clients) {
          if (client.waits_as == 0 || !watches(client, job.tube)) continue;
          if (first == 0 || client.waits_as < clients[first].waits_as) first = name;
        }
        if (first == 0) continue;
        best = id;
        best_client = first;
      }
      if (!best) return;
      clients[best_client].waits_as = 0;
      deliveries.push_back(std::to_string(best_client) + ":" + take(best_client, *best));
    }
  }

  void settle() {
    settled_from_ = order_;
    std::vector<JobId> over;
    for (auto& [id, job] : jobs) {
      if (job.state == JobState::kDelayed && job.due <= utc_) {  // all of them are due now
        give_back(job);
        job.ripe_at = utc_;
      }
      if (job.state == JobState::kReserved && job.deadline <= utc_) over.push_back(id);
    }
    std::sort(over.begin(), over.end(),
              [this](JobId a, JobId b) { return jobs[a].armed_as < jobs[b].armed_as; });
    for (const JobId id : over) {
      if (jobs[id].cancel_asked || policy_of(jobs[id]) != RetryPolicy()) {
        end_attempt(id);
      } else {
        give_back(jobs[id]);
      }
    }
    serve();
    std::vector<std::uint64_t> waiting;
    for (const auto& [name, client] : clients) {
      if (client.waits_as > 0) waiting.push_back(name);
    }
    std::sort(waiting.begin(), waiting.end(), [this](std::uint64_t a, std::uint64_t b) {
      return clients[a].waits_as < clients[b].waits_as;
    });
    for (const std::uint64_t name : waiting) {
      const bool soon = deadline_soon(name);
      if (!soon && clients[name].give_up_at > utc_) continue;
      clients[name].waits_as = 0;
      deliveries.push_back(std::to_string(name) + (soon ? ":DEADLINE_SOON" : ":TIMED_OUT"));
    }
  }

  UtcMs utc_;
  std::uint64_t order_ = 0;
  std::uint64_t settled_from_ = 0;
  std::map<std::string, UtcMs> paused_until_;
};

}  // namespace carillon::queue
