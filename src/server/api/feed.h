// The feed: what the server sends to clients that watch it. Once a second it sends a sample of its
// counts, rates and lateness; and each action of an operator, as it happens.
//
//   feed.listen(client);                                 // from now on it gets news
//   if (feed.work(now)) { ... }                          // once a turn; true: there is news
//   while (const auto* event = feed.after(seen)) { send(event->text); seen = event->number; }
//
// An event is made into text once, and all listeners read the same text from a ring. So a slow
// listener costs no more memory than others. If the next event of a listener has left the ring, the
// listener is closed.
//
// While a client listens, a sample is taken each second. Otherwise it is taken in each second in
// which the server had something to do, so that a later listener can see the past, and an idle
// server sleeps. The ages of jobs, for which the store is read, are only sampled while a client
// listens.
//
// Bounded: kMostEvents events, in kMostBytes, kMostSamples samples, kMostActions actions and
// kMostListeners listeners. Kept bytes count in the memory of all connections (Service::memory()).
// A call of work() takes less than a millisecond.
//
// Thread safety: none; it belongs to the thread of the service.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "carillon/queue/engine_stats.h"
#include "carillon/queue/job.h"
#include "carillon/queue/now.h"
#include "carillon/queue/store.h"
#include "carillon/require.h"
#include "server/api/field.h"
#include "server/net/memory_pool.h"

namespace carillon::server {

class Service;

namespace metrics {
class Scrape;
}

// An operator's action: a change of many jobs, or of a tube, a schedule or another setting.
struct Action {
  Moment at = {};
  std::string who;      // Caller::shown_as()
  std::string action;   // "jobs:cancel"
  std::string target;   // a tube, a schedule
  std::string outcome;  // "changed 12", or why it was refused
};

class Feed {
 public:
  static constexpr std::size_t kMostSamples = 300;
  static constexpr std::size_t kMostEvents = 600;
  static constexpr std::size_t kMostBytes = 1 << 20;
  static constexpr std::size_t kMostActions = 1'000;
  static constexpr std::size_t kMostListeners = 256;

  struct Event {
    std::uint64_t number = 0;
    std::string text;  // as a server-sent event, with its empty line
    bool is_audit = false;
    // The event may leave once the store's appends up to here are durable.
    queue::Sequence durable_at = 0;
  };

  // `service` must outlive it.
  explicit Feed(Service& service);
  ~Feed();

  // listen() REQUIRES: not is_full(). A client must leave before it is destroyed.
  void listen(std::uint64_t client) {
    CARILLON_REQUIRE(!is_full());
    listeners_.insert(client);
  }
  void leave(std::uint64_t client) { listeners_.erase(client); }
  bool is_full() const { return listeners_.size() >= kMostListeners; }
  const std::set<std::uint64_t>& listeners() const { return listeners_; }

  // To be called once a turn. Takes a sample if it is time for one, or goes on with it. Returns
  // true if there are events that the listeners have not got.
  bool work(queue::Now now);
  // When work() has something to do next (ns of the monotonic clock).
  std::uint64_t next_wakeup() const {
    if (scrape_) return 0;
    return was_busy_ || !listeners_.empty() ? next_sample_ : UINT64_MAX;
  }

  void tell(Action action);

  // Returns the first kept event after the one with this number; null if no such event has come
  // yet.
  const Event* after(std::uint64_t number) const;
  // Returns true if the event that comes after this number has left the ring.
  bool has_dropped(std::uint64_t number) const { return number + 1 < oldest(); }
  // The number of the oldest event that is kept; 0: no event has come.
  std::uint64_t oldest() const { return events_.empty() ? 0 : events_.front().number; }
  // The number of the newest event; 0: no event has come.
  std::uint64_t newest() const { return events_.empty() ? 0 : events_.back().number; }
  // Returns the number of the event that has this id; 0 if the id is from another process, so that
  // all kept events are new; none if it is not an id.
  std::optional<std::uint64_t> number_of(std::string_view id) const;

  // How late the jobs were that have gone out since the oldest of the last ten samples. Bounds in
  // ms: half of them, 99 %, and all were at most this late; none if no job has gone out.
  struct RecentLateness {
    std::optional<queue::Millis> half;
    std::optional<queue::Millis> most;
    std::optional<queue::Millis> all;
  };
  RecentLateness lateness() const;

  // The samples, the oldest first: objects of JSON.
  const std::deque<std::string>& samples() const { return samples_; }
  // The actions, the oldest first.
  const std::deque<Action>& actions() const { return actions_; }
  // How many there have been, with those that are not kept any more.
  std::uint64_t actions_told() const { return actions_told_; }
  // The memory of samples, events and actions, which counts in the memory of all connections
  // (bytes).
  std::size_t memory() const { return memory_.bytes(); }

 private:
  // What a sample is compared with.
  struct Mark {
    std::uint64_t mono_ns = 0;
    queue::EngineStats stats;
  };

  void wake(queue::Now now);
  void finish_sample(queue::Now now);
  std::string sample(queue::Now now) const;
  void add_event(std::string_view kind, std::string_view json, queue::Sequence durable_at);

  Service& service_;
  MemoryPool::Share memory_;
  std::size_t bytes_of_events_ = 0;
  std::size_t bytes_of_others_ = 0;  // bytes of samples_ and actions_
  std::uint64_t next_sample_ = 0;
  bool was_busy_ = false;  // a turn has run since the last sample
  std::uint64_t last_event_ = 0;
  std::uint64_t samples_taken_ = 0;
  bool has_news_ = false;
  std::set<std::uint64_t> listeners_;
  std::deque<Event> events_;
  std::deque<std::string> samples_;
  std::deque<Action> actions_;
  std::uint64_t actions_told_ = 0;
  std::deque<Mark> marks_;                   // one for each of the last ten seconds
  std::unique_ptr<metrics::Scrape> scrape_;  // while a sample is being taken
};

}  // namespace carillon::server
