// The centre's queue as a table in PostgreSQL, polled by a boss: the design of many who have no
// delayed-job server, as one would write it with care.
//
//   - A put is an INSERT with a commit of its own: it belongs to the request that wants the file.
//   - The boss polls at an interval, or, with `notify`, sleeps until the next due time, at most a
//     second, and a producer whose download is due earlier than that wakes it. It takes up to 500
//     due rows in one transaction (FOR UPDATE SKIP LOCKED, so there could be several), marks those
//     that have a place as running, moves the due time of the others, and commits. Then they begin.
//     After a full batch it polls again at once.
//   - Downloads that have ended are deleted in batches, by a connection of their own: whatever has
//     ended while the last batch was on its way.
//   - The index on the due time has only rows that wait, so what runs does not slow the poll down.
//   - There are no leases. A boss that starts would take back what the one before had running:
//     `UPDATE task SET running = false WHERE running`. Leases would cost one more index.
//
// All connections are driven by the thread of the load.

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "../beanstalk/bodies.h"
#include "postgres_connection.h"
#include "task_queue.h"

namespace carillon::bench {
namespace {

constexpr std::uint64_t kBatch = 500;
constexpr std::uint64_t kLongestSleepUs = 1'000'000;  // with `notify`
constexpr std::uint64_t kShortestSleepUs = 10'000;    // so that polls are of batches

constexpr const char* kTable = R"(
DROP TABLE IF EXISTS task;
CREATE TABLE task (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  due timestamptz NOT NULL,
  running boolean NOT NULL DEFAULT false,
  body text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
CREATE INDEX task_waits ON task (due) WHERE NOT running)";

// A table that was made just now has no statistics, so the plans are fixed: the index by due time,
// and the primary key.
constexpr const char* kPlans = "SET enable_seqscan = off; SET enable_bitmapscan = off";

constexpr const char* kPut = R"(
PREPARE put AS INSERT INTO task (due, body) VALUES (to_timestamp($1::float8 / 1e6), $2);
PREPARE put_and_wake AS
  WITH task AS (INSERT INTO task (due, body) VALUES (to_timestamp($1::float8 / 1e6), $2))
  SELECT pg_notify('due', $1::text))";

constexpr const char* kBoss = R"(
PREPARE due AS SELECT id, body FROM task WHERE NOT running AND due <= clock_timestamp()
  ORDER BY due LIMIT $1 FOR UPDATE SKIP LOCKED;
PREPARE run AS UPDATE task SET running = true WHERE id = ANY($1::bigint[]);
PREPARE come_back AS UPDATE task SET due = to_timestamp($2::float8 / 1e6)
  WHERE id = ANY($1::bigint[]);
PREPARE next_due AS SELECT (extract(epoch FROM due) * 1e6)::bigint FROM task WHERE NOT running
  ORDER BY due LIMIT 1)";

constexpr const char* kFinish = "PREPARE finish AS DELETE FROM task WHERE id = ANY($1::bigint[])";

std::string array(const std::vector<Download>& downloads) {
  std::string text = "{";
  for (const Download& each : downloads) text += std::to_string(each.handle) + ",";
  text.back() = '}';
  return text;
}

struct Producer {
  PostgresConnection connection;
  std::uint64_t number = 0;
};

class PostgresQueue final : public TaskQueue {
 public:
  PostgresQueue(const Plan& plan, QueueEvents& events)
      : plan_(plan),
        events_(events),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        boss_(plan.server),
        finisher_(plan.server) {
    boss_.execute("SET client_min_messages = warning");
    boss_.execute(kTable);
    boss_.execute(kPlans);
    boss_.execute(kBoss);
    if (plan.notify) boss_.execute("LISTEN due");
    finisher_.execute(kPlans);
    finisher_.execute(kFinish);
    for (std::size_t i = 0; i < plan.producers; ++i) {
      producers_.push_back({PostgresConnection(plan.server)});
      producers_[i].connection.execute(kPut);
      // Before a drain the puts are not measured, and need not wait for the disk.
      if (plan.drain != 0) producers_[i].connection.execute("SET synchronous_commit = off");
      watch(producers_[i].connection, i);
    }
    watch(boss_, plan.producers);
    watch(finisher_, plan.producers + 1);
  }
  PostgresQueue(const PostgresQueue&) = delete;
  PostgresQueue& operator=(const PostgresQueue&) = delete;
  ~PostgresQueue() override { ::close(epoll_); }

  int epoll() const override { return epoll_; }

  bool put(std::uint64_t number, std::uint64_t now_us, std::uint64_t due_us,
           std::string_view body) override {
    for (Producer& producer : producers_) {
      if (!producer.connection.idle()) continue;
      producer.number = number;
      const bool wake = plan_.notify && due_us < now_us + kLongestSleepUs;
      producer.connection.add(wake ? "put_and_wake" : "put",
                              {std::to_string(due_us), std::string(body)});
      producer.connection.send();
      return true;
    }
    return false;
  }

  void start() override { next_poll_us_ = 1; }

  void finish(Download download) override {
    ended_.push_back(download);
    if (finisher_.idle()) remove_ended();
  }

  void on_input() override {
    epoll_event ready[64];
    const int count = ::epoll_wait(epoll_, ready, 64, 0);
    for (int i = 0; i < count; ++i) {
      const auto index = static_cast<std::size_t>(ready[i].data.u64);
      if (index < plan_.producers) {
        Producer& producer = producers_[index];
        if (producer.connection.step([](const PGresult&) {})) events_.put_answered(producer.number);
      } else if (index == plan_.producers) {
        on_boss();
      } else if (finisher_.step([](const PGresult&) {})) {
        for (const Download& each : removing_) events_.finish_answered(each.number);
        remove_ended();
      }
    }
  }

  std::optional<std::uint64_t> on_time(std::uint64_t now_us) override {
    if (next_poll_us_ == 0 || !boss_.idle()) return std::nullopt;
    if (now_us < next_poll_us_) return next_poll_us_;
    polled_us_ = now_us;
    marking_ = false;
    taken_.clear();
    boss_.add_statement("BEGIN");
    boss_.add("due", {std::to_string(kBatch)});
    boss_.send();
    return std::nullopt;
  }

 private:
  void watch(const PostgresConnection& connection, std::size_t index) const {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = index}};
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.fd(), &event);
  }

  void remove_ended() {
    removing_.clear();
    if (ended_.empty()) return;
    std::swap(removing_, ended_);
    finisher_.add("finish", {array(removing_)});
    finisher_.send();
  }

  void on_boss() {
    const bool all = boss_.step([this](const PGresult& result) { on_result(result); });
    if (all && marking_) {
      for (const Download& each : running_) events_.begin(each);
      plan_next_poll();
    } else if (all) {
      mark();
    }
    boss_.take_notifications([this](const char* due_us) {
      if (next_poll_us_ != 0) wake_at(std::min<std::uint64_t>(next_poll_us_, std::stoull(due_us)));
    });
  }

  // Rows of "due", two columns; or of "next_due", one.
  void on_result(const PGresult& result) {
    const int rows = PQntuples(&result);
    for (int row = 0; row < rows; ++row) {
      const std::uint64_t first = std::stoull(PQgetvalue(&result, row, 0));
      if (PQnfields(&result) == 2) {
        taken_.push_back({Bodies::due_us(PQgetvalue(&result, row, 1)), first});
      } else {
        next_due_us_ = first;
      }
    }
  }

  void mark() {
    running_.clear();
    std::vector<Download> too_many;
    std::uint64_t come_back_us = 0;
    for (const Download& each : taken_) {
      if (events_.take_place(each.number)) {
        running_.push_back(each);
      } else {
        too_many.push_back(each);
        come_back_us = events_.comes_back_us(each.number);
      }
    }
    if (!running_.empty()) boss_.add("run", {array(running_)});
    if (!too_many.empty()) boss_.add("come_back", {array(too_many), std::to_string(come_back_us)});
    boss_.add_statement("COMMIT");
    next_due_us_ = UINT64_MAX;
    if (plan_.notify) boss_.add("next_due");
    boss_.send();
    marking_ = true;
  }

  void plan_next_poll() {
    if (taken_.size() == kBatch) {
      next_poll_us_ = polled_us_;
    } else if (plan_.notify) {
      wake_at(std::min(polled_us_ + kLongestSleepUs, next_due_us_));
    } else {
      next_poll_us_ = polled_us_ + plan_.poll_ms * 1'000;
    }
  }
  void wake_at(std::uint64_t us) { next_poll_us_ = std::max(us, polled_us_ + kShortestSleepUs); }

  const Plan& plan_;
  QueueEvents& events_;
  int epoll_;
  PostgresConnection boss_;
  PostgresConnection finisher_;
  std::vector<Producer> producers_;
  std::uint64_t next_poll_us_ = 0;  // 0: not started
  std::uint64_t polled_us_ = 0;
  std::uint64_t next_due_us_ = UINT64_MAX;
  bool marking_ = false;
  std::vector<Download> taken_, running_;  // by the current poll
  std::vector<Download> ended_, removing_;
};

}  // namespace

std::unique_ptr<TaskQueue> postgres_queue(const Plan& plan, QueueEvents& events) {
  return std::make_unique<PostgresQueue>(plan, events);
}

}  // namespace carillon::bench
