// Random histories, with crashes, against the plain model: the same answers, deliveries and states,
// whether jobs are in memory or in the store.
// Row Q22 of the product's table.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "queue/queue_model.h"
#include "queue/seed.h"
#include "queue/virtual_queue.h"

namespace carillon::queue {
namespace {

// ms
constexpr Millis kLongestOutage = 2'000;

struct HistoryOptions {
  EngineOptions engine;
  Millis farthest = 3'000;  // delays are up to 1 s more
  // Whether at random times reads fail for a while. If so, jobs are loaded early enough that the
  // longest outage makes no job late.
  bool outages = false;
};

class History {
 public:
  History(std::uint64_t seed, const HistoryOptions& options)
      : random_(seed), options_(options), queue_(options.engine), model_(queue_.utc()) {
    connect(4);
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      step();
      compare();
    }
    drain();
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  Engine& engine() { return queue_.engine(); }
  Now now() const { return queue_.now(); }

  std::string a_tube() { return std::vector<std::string>{"default", "a", "b"}[below(3)]; }
  JobId a_job() {
    return ids_.empty() || one_in(20)
               ? 1 + below(50)
               : ids_[ids_.size() - 1 - below(std::min<std::size_t>(ids_.size(), 30))];
  }
  // Most are near, some are far beyond `load_ahead`.
  Millis a_delay() {
    return std::vector<Millis>{0, 0, 1 + below(20), 1 + below(300),
                               1'000 + below(options_.farthest)}[below(5)];
  }

  void connect(int n) {
    for (int i = 0; i < n; ++i) clients_.push_back(engine().connect());
    for (const ClientId id : clients_) model_.clients.try_emplace(id);
  }

  void pass(Millis ms) {
    for (Millis i = 0; i < ms; ++i) {
      if (queue_.utc() == outage_end_) end_outage();
      allowing_failures([&] { queue_.pass(1); });
      model_.pass_one_ms();
      finish_steps();
      take_deliveries();
    }
  }

  // While the jobs are there: one may be gone when its client has held it too long.
  void take_deliveries() {
    for (const std::string& delivery : queue_.deliveries()) deliveries_.push_back(delivery);
  }

  // Jobs that no command asked for could not be read: the engine says so, and tries again.
  template <class Advance>
  void allowing_failures(Advance advance) try {
    advance();
  } catch (const StoreError& error) {
    EXPECT_TRUE(had_outage_) << error.what();
  }

  void begin_outage() {
    had_outage_ = true;
    outage_end_ = queue_.utc() + 1 + below(one_in(3) ? kLongestOutage : 100);
    queue_.store().faults = {.records = true};
  }

  void end_outage() {
    outage_end_.reset();
    queue_.store().faults = {};
  }

  // `step` may have cut the work short: goes on until there is nothing to do now.
  void finish_steps() {
    while (const auto wake = engine().next_wakeup()) {
      if (*wake > now().mono_ns) return;
      allowing_failures([&] { engine().advance(now()); });
    }
  }

  // Returns a random client if it does not wait.
  std::optional<ClientId> a_free_client() {
    const ClientId id = clients_[below(clients_.size())];
    if (model_.clients[id].waits_as != 0) return std::nullopt;
    return id;
  }

  void crash() {
    end_outage();
    queue_.restart();  // without a boot, which puts the time since the last append in doubt
    model_.crash();
    clients_.clear();
    connect(4);
    engine().advance(now());
    finish_steps();
  }

  void step() {
    if (options_.outages && !outage_end_ && one_in(30)) begin_outage();
    if (one_in(3)) return pass(1 + below(one_in(10) ? 2'000 : 10));
    if (one_in(200)) return crash();
    const auto client = a_free_client();
    if (!client) return;
    command(*client);
    finish_steps();
  }

  void command(ClientId client) {
    const JobId id = a_job();
    switch (below(26)) {
      case 0:
      case 1:
      case 2:
        return put(client);
      case 3:
      case 4:
        return reserve(client);
      case 5:
        return agree([&] { return engine().reserve_job(client, now(), id).has_value(); },
                     [&] { return model_.reserve_job(client, id); });
      case 6: {
        const auto priority = static_cast<Priority>(below(4));
        const Millis delay = a_delay();
        return agree([&] { return engine().release(client, now(), id, priority, delay).done; },
                     [&] { return model_.release(client, id, priority, delay); });
      }
      case 7: {
        const auto priority = static_cast<Priority>(below(4));
        return agree([&] { return engine().bury(client, now(), id, priority).done; },
                     [&] { return model_.bury(client, id, priority); });
      }
      case 8: {
        const auto ttr = one_in(2) ? std::nullopt : std::optional<Millis>(below(3'000));
        return agree([&] { return engine().touch(client, now(), id, ttr).done; },
                     [&] { return model_.touch(client, id, ttr); });
      }
      case 9:
        return agree([&] { return engine().remove(client, now(), id).done; },
                     [&] { return model_.remove(client, id); });
      case 10: {
        const std::uint64_t bound = below(4);
        std::uint64_t kicked = 0;  // while reads fail, perhaps fewer than there are
        return agree([&] { return kicked = kick_all(engine(), client, now(), bound); },
                     [&] { return model_.kick(client, outage_end_ ? kicked : bound); });
      }
      case 11:
        return agree([&] { return engine().kick_job(now(), id).done; },
                     [&] { return model_.kick_job(id); });
      case 12:
        return tubes(client);
      case 13:
        return agree([&] { return engine().give_back(client, now(), id); },
                     [&] { return model_.give_back(client, id); });
      case 15:
      case 16:
        return put_with_key(client);
      case 17:
        cancel(id);
        return agree(
            [&] { return engine().job_with_key(client, "key 1"); },
            [&] { return model_.job_with_key(model_.clients[client].tube_in_use, "key 1"); });
      case 18:
        return patch(id);
      case 19:
      case 20:
        return agree(
            [&] {
              const FailOutcome outcome = engine().fail(client, now(), id, {.error = "why"});
              return std::tuple(outcome.result, outcome.attempts, outcome.delay);
            },
            [&] {
              const FailOutcome outcome = model_.fail(client, id);
              return std::tuple(outcome.result, outcome.attempts, outcome.delay);
            });
      case 21:
        return set_tube();
      case 22:
        return put_all(client);
      case 23:
        return release_all(client);
      case 24:
        return remove_all(client);
      case 25: {
        const auto priority =
            one_in(2) ? std::nullopt : std::optional(static_cast<Priority>(below(4)));
        return agree([&] { return engine().bury_job(now(), id, priority).result; },
                     [&] { return model_.bury_job(id, priority); });
      }
      case 14:
        if (!one_in(4)) return;
        engine().disconnect(client, now());
        model_.disconnect(client);
        std::erase(clients_, client);
        connect(1);
        return;
      default:
        return;
    }
  }

  // Asks both. What the engine cannot read has no effect.
  template <class Ask, class AskModel>
  void agree(Ask ask, AskModel ask_model) {
    try {
      const auto got = ask();
      EXPECT_EQ(got, ask_model());
    } catch (const StoreError& error) {
      EXPECT_TRUE(outage_end_) << error.what();
    }
  }

  // A failed attempt reads the job's story. While reads fail, it would end later than in the model.
  RetryPolicy a_policy() {
    if (options_.outages || !one_in(3)) return {};
    return {.max_attempts = static_cast<std::uint32_t>(below(4)),
            .backoff = one_in(3) ? 0 : below(300),
            .backoff_max = one_in(2) ? 0 : below(2'000),
            .jitter = static_cast<std::uint32_t>(below(101)),
            .lost_fails = one_in(2)};
  }

  // After the delay, as a put or a patch must name it.
  std::optional<UtcMs> an_expiry(Millis delay) {
    if (!one_in(3)) return std::nullopt;
    return queue_.utc() + delay + 1 + below(one_in(2) ? 10 : 1'000);
  }
  // In which order jobs that expire in the same millisecond are buried, depends on the steps.
  AtExpiry an_end() {
    return options_.engine.step > 100 && one_in(2) ? AtExpiry::kDead : AtExpiry::kDrop;
  }

  void set_tube() {
    const std::string tube = a_tube();
    const RetryPolicy policy = one_in(2) ? RetryPolicy() : a_policy();
    set_tube(tube, {.retry = policy, .limits = some_limits()});
  }

  void set_tube(const std::string& tube, const TubeSettings& settings) {
    engine().set_tube(now(), tube, settings);
    model_.policies[tube] = settings.retry;
    model_.set_limits(tube, settings.limits);
  }

  Limits some_limits() {
    Limits limits{.max_running = one_in(2) ? 0 : 1 + below(3)};
    if (one_in(2)) return limits;
    limits.rate = 1 + below(5);
    limits.period = 1 + below(one_in(4) ? 3'000 : 100);
    limits.burst = 1 + below(3);
    return limits;
  }

  void cancel(JobId id) {
    const bool ask = one_in(2);
    agree([&] { return engine().cancel(now(), id, ask).result; },
          [&] { return model_.cancel(id, ask); });
  }

  void put(ClientId client) {
    const Millis delay = a_delay();
    const PutOrder order{.priority = static_cast<Priority>(below(4)),
                         .due_in = delay,
                         .due_at = {},
                         .ttr = 1'000 + below(2'000),
                         .retry = a_policy(),
                         .expires_at = an_expiry(delay),
                         .at_expiry = an_end(),
                         .buried = one_in(16)};
    const std::string body = "job " + std::to_string(ids_.size());
    const JobId id = queue_.put(client, body, order);
    EXPECT_TRUE(ids_.empty() || id > ids_.back()) << "ids rise, and are never given twice";
    ids_.push_back(id);
    QueueModel::Job job;
    job.body = body;
    job.tube = model_.clients[client].tube_in_use;
    job.priority = order.priority;
    job.due = model_.utc() + delay;
    job.ttr = order.ttr;
    job.retry = order.retry;
    job.expires = order.expires_at.value_or(0);
    if (order.expires_at) job.at_expiry = order.at_expiry;
    if (order.buried) job.state = JobState::kBuried;
    model_.put(id, job);
  }

  PutOrder an_order(std::string_view key) {
    const Millis delay = a_delay();
    return {.priority = static_cast<Priority>(below(4)),
            .due_in = delay,
            .ttr = 1'000 + below(2'000),
            .key = key,
            .on_conflict = static_cast<OnConflict>(below(5)),
            .key_window = key.empty() || one_in(2) ? 0 : below(1'000),
            .retry = a_policy(),
            .expires_at = an_expiry(delay),
            .at_expiry = an_end(),
            .buried = one_in(16)};
  }

  QueueModel::Job as_job(ClientId client, const PutOrder& order, const std::string& body) {
    QueueModel::Job job;
    job.body = body;
    job.tube = model_.clients[client].tube_in_use;
    job.priority = order.priority;
    job.due = model_.utc() + order.due_in;
    job.ttr = order.ttr;
    job.retry = order.retry;
    job.expires = order.expires_at.value_or(0);
    if (order.expires_at) job.at_expiry = order.at_expiry;
    if (order.buried) job.state = JobState::kBuried;
    job.key = order.key;
    job.key_window = order.key_window;
    return job;
  }

  void put_with_key(ClientId client) {
    const std::string key = "key " + std::to_string(below(4));
    const std::string body = "job " + std::to_string(ids_.size()) + " with " + key;
    const PutOrder order = an_order(key);
    const QueueModel::Job job = as_job(client, order, body);
    agree(
        [&] {
          const PutOutcome put = engine().put(client, now(), order, body);
          if (put.result == PutOutcome::Result::kInserted) ids_.push_back(put.id);
          return std::tuple(put.result, put.id, put.owner);
        },
        [&] {
          const PutOutcome put = model_.put(ids_.empty() ? 0 : ids_.back(), job, order.on_conflict);
          return std::tuple(put.result, put.id, put.owner);
        });
  }

  // Up to four jobs, some of them with keys.
  void put_all(ClientId client) {
    static constexpr std::string_view kKeys[] = {"key 0", "key 1", "key 2", "key 3"};
    std::vector<std::string> bodies;
    std::vector<PutOrder> orders;
    std::vector<QueueModel::Job> jobs;
    std::vector<OnConflict> on_conflict;
    for (std::size_t i = below(5); i > 0; --i) {
      bodies.push_back("batch " + std::to_string(ids_.size()) + " " + std::to_string(i));
      orders.push_back(an_order(one_in(2) ? kKeys[i - 1] : ""));
      on_conflict.push_back(orders.back().on_conflict);
      jobs.push_back(as_job(client, orders.back(), bodies.back()));
    }
    std::vector<NewJob> batch;
    for (std::size_t i = 0; i < bodies.size(); ++i) batch.push_back({orders[i], bodies[i]});
    constexpr std::string_view kFingerprints[] = {"", "a", "b"};
    const std::string token = one_in(3) ? "token " + std::to_string(below(3)) : "";
    const BatchOrder order{
        .once = token, .window = below(1'000), .fingerprint = kFingerprints[below(3)]};
    std::vector<JobId> ids;
    const auto told = [](const BatchOutcome& outcome) {
      std::vector<std::tuple<PutOutcome::Result, JobId, KeyOwner>> puts;
      // The ids of what was not put are not the model's.
      const bool refused = outcome.result == BatchOutcome::Result::kRefused;
      for (const PutOutcome& put : outcome.jobs)
        puts.emplace_back(put.result, refused && put.done() ? 0 : put.id, put.owner);
      return std::tuple(outcome.result, outcome.stopper, puts);
    };
    agree(
        [&] {
          const BatchOutcome outcome = engine().put_all(client, now(), batch, order);
          for (const PutOutcome& put : outcome.jobs) ids.push_back(put.id);
          const bool is_put = outcome.result == BatchOutcome::Result::kPut;
          for (const PutOutcome& put : outcome.jobs) {
            if (is_put && put.result == PutOutcome::Result::kInserted) ids_.push_back(put.id);
          }
          return told(outcome);
        },
        [&] {
          ids.resize(jobs.size());
          return told(model_.put_all(jobs, ids, on_conflict, order));
        });
  }

  std::vector<JobId> some_jobs() {
    std::vector<JobId> ids(below(6));
    for (JobId& id : ids) id = a_job();
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    std::shuffle(ids.begin(), ids.end(), random_);
    return ids;
  }

  static std::vector<bool> done(const std::vector<Outcome>& outcomes) {
    std::vector<bool> done;
    for (const Outcome& outcome : outcomes) done.push_back(outcome.done);
    return done;
  }

  void release_all(ClientId client) {
    const std::vector<JobId> ids = some_jobs();
    const auto priority = one_in(2) ? std::nullopt : std::optional(static_cast<Priority>(below(4)));
    const Millis delay = a_delay();
    agree([&] { return done(engine().release_all(client, now(), ids, priority, delay)); },
          [&] { return model_.release_all(client, ids, priority, delay); });
  }

  void remove_all(ClientId client) {
    const std::vector<JobId> ids = some_jobs();
    agree([&] { return done(engine().remove_all(client, now(), ids)); },
          [&] { return model_.remove_all(client, ids); });
  }

  void patch(JobId id) {
    const auto priority = static_cast<Priority>(below(4));
    const std::optional<Millis> delay = one_in(2) ? std::nullopt : std::optional(a_delay());
    const std::string body = "patch " + std::to_string(below(1'000'000));
    const std::optional<UtcMs> expires = one_in(2) ? std::nullopt : an_expiry(delay.value_or(0));
    agree(
        [&] {
          return engine()
              .patch(now(), id,
                     {.priority = priority, .due_in = delay, .body = body, .expires_at = expires})
              .result;
        },
        [&] { return model_.patch(id, priority, delay, body, expires); });
  }

  void reserve(ClientId client) {
    const std::optional<Millis> timeout =
        one_in(3) ? std::nullopt : std::optional<Millis>(below(3) * 100);
    const auto delivery = engine().reserve(client, now(), timeout);
    EXPECT_EQ(delivery ? queue_.word(*delivery) : "waits",
              model_.reserve(client, timeout).value_or("waits"));
  }

  void tubes(ClientId client) {
    const std::string tube = a_tube();
    auto& watched = model_.clients[client].watched;
    switch (below(4)) {
      case 0:
        engine().use(client, tube);
        model_.clients[client].tube_in_use = tube;
        return;
      case 1:
        engine().watch(client, tube);
        if (std::find(watched.begin(), watched.end(), tube) == watched.end())
          watched.push_back(tube);
        return;
      case 2:
        engine().ignore(client, tube);
        if (watched.size() > 1) std::erase(watched, tube);
        return;
      default: {
        if (!one_in(4)) return;
        const Millis duration = below(3) * 50;
        if (engine().pause(now(), tube, duration)) model_.pause(tube, duration);
      }
    }
  }

  void compare() {
    take_deliveries();
    EXPECT_EQ(std::exchange(deliveries_, {}), std::exchange(model_.deliveries, {}));
    if (!one_in(10)) return;
    const auto faults = std::exchange(queue_.store().faults, {});
    compare_states();
    queue_.store().faults = faults;
  }

  void compare_states() {
    engine().check_invariants();
    for (const auto& [id, job] : model_.jobs) {
      const auto stats = engine().job_stats(now(), id);
      ASSERT_TRUE(stats) << "job " << id << " is lost";
      EXPECT_EQ(static_cast<int>(stats->state), static_cast<int>(job.state)) << id;
      EXPECT_EQ(stats->record.priority, job.priority) << id;
      EXPECT_EQ(stats->tube, job.tube) << id;
      EXPECT_EQ(stats->record.extras->attempts, job.attempts) << id;
      EXPECT_EQ(static_cast<int>(stats->record.extras->death), static_cast<int>(job.death)) << id;
      EXPECT_EQ(stats->record.extras->cancel_asked, job.cancel_asked) << id;
    }
    const bool nothing_is_set =
        std::all_of(model_.policies.begin(), model_.policies.end(),
                    [](const auto& policy) { return policy.second == RetryPolicy(); }) &&
        std::all_of(model_.buckets.begin(), model_.buckets.end(),
                    [](const auto& bucket) { return bucket.second.limits == Limits(); });
    const std::vector<KeyRecord> ended = queue_.store().scan_ended_keys(0, SIZE_MAX);
    const bool no_key_counts = std::all_of(
        ended.begin(), ended.end(), [](const KeyRecord& key) { return key.tube == kTokens; });
    EXPECT_EQ(queue_.store().recover().tubes.empty(),
              model_.jobs.empty() && no_key_counts && nothing_is_set);
    for (const ClientId client : clients_) {
      const std::string& tube = model_.clients[client].tube_in_use;
      const auto first = [&](JobState state) {
        const auto ids = model_.in_order(tube, state);
        return ids.empty() ? 0 : ids.front();
      };
      const auto seen = [](const std::optional<JobView>& view) { return view ? view->id : 0; };
      EXPECT_EQ(seen(engine().peek_ready(client, now())), first(JobState::kReady));
      EXPECT_EQ(seen(peek_delayed(engine(), client, now())), first(JobState::kDelayed));
      EXPECT_EQ(seen(engine().peek_buried(client, now())), first(JobState::kBuried));
    }
  }

  // Every job comes out, once, in the model's order.
  void drain() {
    end_outage();
    for (const ClientId id : std::exchange(clients_, {})) {
      engine().disconnect(id, now());
      model_.disconnect(id);
      finish_steps();  // attempts that have ended with the connection
    }
    connect(1);
    pass(100);  // the pauses end
    for (const char* const tube : {"default", "a", "b"}) set_tube(tube, {});
    const ClientId client = clients_[0];
    auto& watched = model_.clients[client].watched;
    watched = {"default", "a", "b"};
    for (const std::string& tube : watched) {
      engine().watch(client, tube);
      engine().use(client, tube);
      model_.clients[client].tube_in_use = tube;
      for (int i = 0; i < 4; ++i) {  // the buried and the delayed ones, and after each of them
        EXPECT_EQ(kick_all(engine(), client, now(), SIZE_MAX), model_.kick(client, SIZE_MAX));
        finish_steps();  // those that were buried because they had expired
      }
    }
    while (!model_.jobs.empty()) {
      const auto got = engine().reserve(client, now(), 0);
      ASSERT_EQ(queue_.word(*got), model_.reserve(client, 0));
      ASSERT_EQ(static_cast<int>(got->kind), static_cast<int>(Delivery::Kind::kReserved));
      EXPECT_TRUE(engine().remove(client, now(), got->job.id).done);
      EXPECT_TRUE(model_.remove(client, got->job.id));
    }
    EXPECT_EQ(queue_.reserve(client), "TIMED_OUT");
    finish_steps();
    EXPECT_EQ(engine().stats().jobs.loaded, 0u);
  }

  std::mt19937_64 random_;
  HistoryOptions options_;
  VirtualQueue queue_;
  QueueModel model_;
  std::vector<ClientId> clients_;
  std::vector<JobId> ids_;
  std::vector<std::string> deliveries_;
  std::optional<UtcMs> outage_end_;
  bool had_outage_ = false;
};

class EngineModel : public testing::TestWithParam<int> {};

TEST_P(EngineModel, DoesWhatThePlainModelDoes) {
  const std::uint64_t seed = seed_or(static_cast<std::uint64_t>(GetParam()));
  SCOPED_TRACE("CARILLON_SEED=" + std::to_string(seed));
  const EngineOptions options{.load_ahead = seed % 3 == 0 ? 60'000 : 1 + seed * 37 % 500,
                              .max_loaded_per_tube = 1'000'000,
                              .step = seed % 2 == 0 ? 1'000u : 3u};
  History(seed, {.engine = options}).run(2'500);
}

// Nothing is buried or lost, and each job comes out once, in order and in time.
TEST_P(EngineModel, DoesSoWhileReadsFailForAWhileAtRandomTimes) {
  const std::uint64_t seed = seed_or(static_cast<std::uint64_t>(GetParam()));
  SCOPED_TRACE("CARILLON_SEED=" + std::to_string(seed));
  const EngineOptions options{.load_ahead = kLongestOutage + 1'500 + seed * 37 % 500,
                              .max_loaded_per_tube = 1'000'000,
                              .step = seed % 2 == 0 ? 1'000u : 3u};
  History(seed, {.engine = options, .farthest = 20'000, .outages = true}).run(2'500);
}

INSTANTIATE_TEST_SUITE_P(Seeds, EngineModel, testing::Range(1, 13));

}  // namespace
}  // namespace carillon::queue
