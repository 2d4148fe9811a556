// Random histories, with crashes, against the plain model: the same answers, deliveries and states,
// whether jobs are in memory or in the store.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "queue/queue_model.h"
#include "queue/seed.h"
#include "queue/virtual_queue.h"

namespace carillon::queue {
namespace {

class History {
 public:
  History(std::uint64_t seed, EngineOptions options)
      : random_(seed), queue_(options), model_(queue_.utc()) {
    connect(4);
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      step();
      compare();
    }
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
    return std::vector<Millis>{0, 0, 1 + below(20), 1 + below(300), 1'000 + below(3'000)}[below(5)];
  }

  void connect(int n) {
    for (int i = 0; i < n; ++i) clients_.push_back(engine().connect());
    for (const ClientId id : clients_) model_.clients.try_emplace(id);
  }

  void pass(Millis ms) {
    for (Millis i = 0; i < ms; ++i) {
      queue_.pass(1);
      model_.pass_one_ms();
      finish_steps();
    }
  }

  // `step` may have cut the work short: goes on until there is nothing to do now.
  void finish_steps() {
    while (const auto wake = engine().next_wakeup()) {
      if (*wake > now().mono_ns) return;
      engine().advance(now());
    }
  }

  // Returns a random client if it does not wait.
  std::optional<ClientId> a_free_client() {
    const ClientId id = clients_[below(clients_.size())];
    if (model_.clients[id].waits_as != 0) return std::nullopt;
    return id;
  }

  void crash() {
    queue_.crash();
    model_.crash();
    clients_.clear();
    connect(4);
    engine().advance(now());
    finish_steps();
  }

  void step() {
    if (one_in(3)) return pass(1 + below(one_in(10) ? 2'000 : 10));
    if (one_in(200)) return crash();
    const auto client = a_free_client();
    if (!client) return;
    command(*client);
    finish_steps();
  }

  void command(ClientId client) {
    const JobId id = a_job();
    switch (below(14)) {
      case 0:
      case 1:
      case 2:
        return put(client);
      case 3:
      case 4:
        return reserve(client);
      case 5: {
        const auto got = engine().reserve_job(client, now(), id);
        EXPECT_EQ(got.has_value(), model_.reserve_job(client, id)) << id;
        return;
      }
      case 6: {
        const auto priority = static_cast<Priority>(below(4));
        const Millis delay = a_delay();
        EXPECT_EQ(engine().release(client, now(), id, priority, delay).done,
                  model_.release(client, id, priority, delay))
            << id;
        return;
      }
      case 7: {
        const auto priority = static_cast<Priority>(below(4));
        EXPECT_EQ(engine().bury(client, now(), id, priority).done,
                  model_.bury(client, id, priority))
            << id;
        return;
      }
      case 8:
        EXPECT_EQ(engine().touch(client, now(), id).done, model_.touch(client, id)) << id;
        return;
      case 9:
        EXPECT_EQ(engine().remove(client, now(), id).done, model_.remove(client, id)) << id;
        return;
      case 10: {
        const std::uint64_t bound = below(4);
        EXPECT_EQ(engine().kick(client, now(), bound).kicked, model_.kick(client, bound));
        return;
      }
      case 11:
        EXPECT_EQ(engine().kick_job(now(), id).done, model_.kick_job(id)) << id;
        return;
      case 12:
        return tubes(client);
      case 13:
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

  void put(ClientId client) {
    const Millis delay = a_delay();
    const PutOrder order{.priority = static_cast<Priority>(below(4)),
                         .due_in = delay,
                         .due_at = {},
                         .ttr = 1'000 + below(2'000)};
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
    model_.put(id, job);
  }

  void reserve(ClientId client) {
    const std::optional<Millis> timeout =
        one_in(3) ? std::nullopt : std::optional<Millis>(below(3) * 100);
    const auto got = engine().reserve(client, now(), timeout);
    const auto expected = model_.reserve(client, timeout);
    EXPECT_EQ(got ? VirtualQueue::word(*got) : "waits", expected.value_or("waits"));
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
    EXPECT_EQ(queue_.deliveries(), std::exchange(model_.deliveries, {}));
    if (!one_in(10)) return;
    engine().check_invariants();
    for (const auto& [id, job] : model_.jobs) {
      const auto stats = engine().job_stats(now(), id);
      ASSERT_TRUE(stats) << "job " << id << " is lost";
      EXPECT_EQ(static_cast<int>(stats->state), static_cast<int>(job.state)) << id;
      EXPECT_EQ(stats->record.priority, job.priority) << id;
      EXPECT_EQ(stats->tube, job.tube) << id;
    }
    EXPECT_EQ(queue_.store().recover().tubes.empty(), model_.jobs.empty());
    for (const ClientId client : clients_) {
      const std::string& tube = model_.clients[client].tube_in_use;
      const auto first = [&](JobState state) {
        const auto ids = model_.in_order(tube, state);
        return ids.empty() ? 0 : ids.front();
      };
      const auto seen = [](const std::optional<JobView>& view) { return view ? view->id : 0; };
      EXPECT_EQ(seen(engine().peek_ready(client, now())), first(JobState::kReady));
      EXPECT_EQ(seen(engine().peek_delayed(client, now())), first(JobState::kDelayed));
      EXPECT_EQ(seen(engine().peek_buried(client, now())), first(JobState::kBuried));
    }
  }

  std::mt19937_64 random_;
  VirtualQueue queue_;
  QueueModel model_;
  std::vector<ClientId> clients_;
  std::vector<JobId> ids_;
};

class EngineModel : public testing::TestWithParam<int> {};

TEST_P(EngineModel, DoesWhatThePlainModelDoes) {
  const std::uint64_t seed = seed_or(static_cast<std::uint64_t>(GetParam()));
  SCOPED_TRACE("CARILLON_SEED=" + std::to_string(seed));
  const EngineOptions options{.load_ahead = seed % 3 == 0 ? 60'000 : 1 + seed * 37 % 500,
                              .max_loaded_per_tube = 1'000'000,
                              .step = seed % 2 == 0 ? 1'000u : 3u};
  History(seed, options).run(2'500);
}

INSTANTIATE_TEST_SUITE_P(Seeds, EngineModel, testing::Range(1, 13));

}  // namespace
}  // namespace carillon::queue
