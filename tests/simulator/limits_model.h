// The model of the limits of tubes: how many of their jobs may run at once, and how fast they may
// go out (model.h).
//
//   LimitsModel limits(history);
//   limits.set("mail", {.rate = 100, .period = 60'000, .burst = 5}, first, last);
//   limits.start("mail", running, first, last);  // a job has gone out; throws Violation
//   limits.lets_start("mail", running, now);     // true: whoever asks must get a job
//
// It does not do as the engine does. What must not happen is judged by the promise: in any t ms
// fewer than burst + rate * (t + 1) / period jobs go out, over restarts too. What must happen is
// judged by a bucket that has no more tokens than the real one: of each moment that is not known
// exactly it counts the end for what it takes, and the beginning for what it has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "carillon/queue/limits.h"
#include "carillon/queue/now.h"
#include "simulator/history.h"

namespace carillon::simulator {

class LimitsModel {
 public:
  // The name by which these functions know a group of the tube.
  static std::string lane(const std::string& tube, const std::string& group) {
    return group.empty() ? tube : tube + '\n' + group;
  }

  // `which`: the jobs that go out, or, by `put_rate`, those that clients put.
  explicit LimitsModel(const HistoryStore& history,
                       queue::Limits queue::TubeSettings::*which = &queue::TubeSettings::limits)
      : history_(history), which_(which) {}

  // The server has started, at some time between: it has the limits that the history has, and empty
  // buckets; those of puts are full.
  void restart(queue::Now first, queue::Now last);
  // A client has set them. `first` and `last`, here and below: as in Model::Times.
  void set(const std::string& tube, const queue::Limits& limits, queue::Now first, queue::Now last);
  const queue::Limits& of(const std::string& tube) const;

  // A job of the tube has gone out to a client that asked for any job, while at least `running`
  // others were with workers.
  void start(const std::string& tube, std::size_t running, queue::Now first, queue::Now last);
  // To a client that asked for this job: then no limit is in the way.
  void start_anyway(const std::string& tube, queue::Now first, queue::Now last);
  // Jobs may have gone out without a client knowing it.
  void lose_tokens(const std::string& tube, queue::Now now);
  // Returns true if one more job must go out beside the `running` ones, which are the most that may
  // be with workers. It has been so for `slack` ns.
  bool lets_start(const std::string& tube, std::size_t running, queue::Now now,
                  std::uint64_t slack) const;
  // Returns true if a put of this many jobs must succeed then. most(): how many may at the most.
  bool lets_put(const std::string& tube, std::uint64_t jobs, queue::Now now) const;
  std::uint64_t most(const std::string& tube) const;

 private:
  // Between these two, in ms of the monotonic clock.
  struct Start {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  struct Entry {
    queue::Limits limits;
    std::deque<Start> starts = {};  // the last ones, since these limits apply
    // Since the server has started with an empty bucket: when that was at the earliest, and how
    // many jobs have gone out.
    std::optional<std::uint64_t> empty_at = {};
    std::uint64_t started = 0;
    // The bucket has had at least this many parts of tokens at `at` (ms).
    std::uint64_t parts = 0;
    std::uint64_t at = 0;
    std::uint64_t set_at = 0;  // ns, monotonic: since when these limits apply
  };

  static std::uint64_t parts_at(const Entry& entry, std::uint64_t ms);
  static void take_token(Entry& entry, queue::Now first, queue::Now last);
  static void expect_rate(const std::string& tube, const Entry& entry);

  const HistoryStore& history_;
  queue::Limits queue::TubeSettings::*which_;
  std::map<std::string, Entry> entries_;  // tubes that have limits
};

}  // namespace carillon::simulator
