// What all sessions of one server share, whatever their protocol: the engine, the clock, the
// limits, and the counters that `stats` shows. The event loop owns one Service and gives it to each
// connection.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/histogram.h"
#include "base/log_throttle.h"
#include "carillon/queue/engine.h"
#include "carillon/queue/now.h"
#include "server/api/feed.h"
#include "server/api/idempotency_cache.h"
#include "server/api/leases.h"
#include "server/api/long_changes.h"
#include "server/api/requests_in_flight.h"
#include "server/api/tokens.h"
#include "server/beanstalk/command.h"
#include "server/data_directory.h"
#include "server/net/barrier.h"
#include "server/net/bodies.h"
#include "server/net/checkpoint_lease.h"
#include "server/net/memory_pool.h"
#include "server/net/memory_reserve.h"

namespace carillon::queue {
class Scrubber;
}

namespace carillon::server {

namespace push {
class Pusher;
}

// How much of the memory of all connections each may take without asking, in bytes, for replies and
// for a body that comes in. So it can go on whatever the others take.
inline constexpr std::size_t kOwnReplies = 8 << 10;
inline constexpr std::size_t kOwnBody = 4 << 10;

// beanstalkd's default, and the largest that its -z allows (bytes).
inline constexpr std::uint32_t kDefaultMaxJobSize = 65'535;
inline constexpr std::uint32_t kLargestMaxJobSize = 64u << 20;

struct ServiceOptions {
  // Bytes of a body. A put of a larger one is answered JOB_TOO_BIG.
  std::uint32_t max_job_size = kDefaultMaxJobSize;
  // Bytes of replies that a client may leave unread, at most. Beyond it, nothing is read from the
  // client.
  std::size_t max_unsent = 1 << 20;
  // Bytes that all connections may take together.
  std::size_t memory = SIZE_MAX;
  // If jobs are kept in memory: how many bytes they take, and may take. Beyond it puts are refused.
  std::function<std::size_t()> stored = {};
  std::size_t max_stored = SIZE_MAX;
  // While it is used, puts and other commands that fill the queue are refused. Null: the server has
  // no reserve.
  MemoryReserve* reserve = nullptr;
  // The tokens, one of which clients must show. Null: clients need no token. Must outlive the
  // service.
  const Tokens* tokens = nullptr;
  // The thread that reads all files slowly. Null: no such thread. Must outlive the service.
  const queue::Scrubber* scrubber = nullptr;
  // Whether the store outlives the process. If not, `stats` shows 0 as binlog-records-written.
  bool durable = true;
};

// Why a command is answered OUT_OF_MEMORY, for the log.
inline constexpr std::string_view kMemoryIsUsed = "connections use all that they may";
inline constexpr std::string_view kSystemGivesNone = "the system gives no more memory";

// The fields of `stats` that identify the server.
struct Identity {
  int pid = 0;
  std::string version;  // "x.y"
  std::string id;       // 16 hexadecimal digits, random with each start
  std::string hostname;
  std::string os;
  std::string platform;

  static Identity of_this_process();
};

struct Counters {
  std::array<std::uint64_t, beanstalk::kVerbs> commands{};
  std::uint64_t connections = 0;  // open now
  std::uint64_t producers = 0;    // open connections that have sent a put
  std::uint64_t workers = 0;      // open connections that have sent a reserve
  std::uint64_t total_connections = 0;
  std::uint64_t closed_stalled = 0;  // by the server, because the client stalled
  std::uint64_t closed_idle = 0;     // by the server, because the client sent no command
  std::uint64_t closed_foreign = 0;  // by the server, because the client speaks another protocol
  std::uint64_t wrong_tokens = 0;    // shown by clients

  std::uint64_t& of(beanstalk::Verb verb) { return commands[static_cast<std::size_t>(verb)]; }
  std::uint64_t of(beanstalk::Verb verb) const { return commands[static_cast<std::size_t>(verb)]; }
};

// Thread safety: none; it belongs to the thread that owns the engine.
class Service {
 public:
  // `clock` is read once for each command. `engine`, its `store` and `bodies` must outlive the
  // service, and so must `on_disk`, of which checkpoints are made; null: jobs are kept in memory.
  Service(queue::Engine& engine, queue::Store& store, BodyQueue& bodies,
          std::function<queue::Now()> clock, const ServiceOptions& options, DiskSpace disk = {},
          queue::DiskStore* on_disk = nullptr);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  queue::Engine& engine() { return engine_; }
  const queue::Store& store() const { return store_; }
  // Returns true if a command that appends need not wait for the disk (Store::has_room()), or will
  // be refused.
  bool store_has_room() { return refuses_commands() || store_.has_room(); }
  BodyQueue& bodies() { return bodies_; }
  queue::Now now() { return last_now_ = clock_(); }
  // Returns what now() returned last.
  queue::Now last_now() const { return last_now_; }
  const ServiceOptions& options() const { return options_; }
  const Tokens* tokens() const { return options_.tokens; }
  const Identity& identity() const { return identity_; }
  Counters& counters() { return counters_; }
  Leases& leases() { return leases_; }
  LongChanges& long_changes() { return long_changes_; }
  RequestsInFlight& requests_in_flight() { return requests_in_flight_; }
  IdempotencyCache& idempotency_cache() { return first_answers_; }
  // Returns the last change that is durable: replies may leave that report changes up to it. Until
  // set_durable() every change counts as durable.
  queue::Sequence durable() const { return durable_ ? durable_() : UINT64_MAX; }
  void set_durable(std::function<queue::Sequence()> durable) { durable_ = std::move(durable); }
  // What every reply waits for. Null: the log of the store is not shared.
  Barrier* barrier() { return barrier_ ? &*barrier_ : nullptr; }
  const Barrier* barrier() const { return barrier_ ? &*barrier_ : nullptr; }
  // Since when, by the monotonic clock, the shared log takes nothing; none: it does.
  void set_unavailable_since(std::optional<std::uint64_t> ns) { unavailable_since_ = ns; }
  // Since when a change waits for the shared log; none: no change does. A log that does not answer
  // is not known to be unavailable yet.
  void set_waiting_since(std::optional<std::uint64_t> ns) { waiting_since_ = ns; }
  bool is_unavailable() const { return unavailable_since_.has_value(); }
  // Returns true if new commands must be refused, because the log has taken nothing for 2 s. They
  // may be tried again.
  bool refuses_commands() {
    const auto since = waiting_since_ ? waiting_since_ : unavailable_since_;
    return since && now().mono_ns >= *since + kPatienceNs;
  }
  // Null: nothing is pushed (in tests).
  push::Pusher* pusher() { return pusher_; }
  void set_pusher(push::Pusher* pusher) { pusher_ = pusher; }
  const LongChanges& long_changes() const { return long_changes_; }
  Feed& feed() { return feed_; }
  const Feed& feed() const { return feed_; }
  CheckpointLease& checkpoint() { return checkpoint_; }
  const CheckpointLease& checkpoint() const { return checkpoint_; }
  std::uint64_t started_ns() const { return started_ns_; }
  // How long replies have waited until changes were durable.
  base::Histogram& commits() { return commits_; }

  // After this call every put is answered DRAINING. It cannot be undone.
  void drain() { draining_ = true; }
  bool draining() const { return draining_; }

  // Returns true if a put at `now` must be answered OUT_OF_MEMORY: the disk is nearly full, or the
  // memory in which jobs are kept.
  bool refuses_puts(queue::Now now) { return disk_.low(now.mono_ns) || store_is_full(); }

  // While the disk is nearly full, makes the store give back space. Call it once a turn.
  void save_space(std::uint64_t mono_ns);
  // Returns when save_space() must be called next, whether or not there is anything else to do.
  std::uint64_t next_save() const {
    return saves_space_ || disk_.was_low() ? next_save_ns_ : UINT64_MAX;
  }

  // Returns true if every put is refused now, for whatever reason.
  bool takes_no_jobs() { return draining_ || is_out_of_memory() || refuses_puts(last_now()); }

  // The memory of all connections.
  MemoryPool& memory() { return memory_; }
  // Bytes of it that may be taken now. If the system gives no more memory, at most a quarter of the
  // reserve: workers still get bodies, and the rest of the process has the other three.
  std::size_t free_memory() const;
  // Bytes of it that one body or list may take now. An eighth of the free bytes: so each leaves
  // most of them to the others.
  std::size_t most_for_one() const { return free_memory() / 8; }
  // Returns true if one client may not leave this many bytes of replies unread now. A string that
  // grows takes up to twice its bytes.
  bool are_too_many_unsent(std::size_t bytes) const {
    return bytes > options_.max_unsent || (bytes > kOwnReplies && 2 * bytes > most_for_one());
  }

  // Returns true if the system gives no more memory.
  bool is_out_of_memory() const {
    return options_.reserve != nullptr && options_.reserve->is_used();
  }
  // Call it once a turn.
  void renew_reserve();

  // Logs as a warning, at most once a second, that a command was answered OUT_OF_MEMORY, and why.
  void report_out_of_memory(std::string_view why);
  // Logs as an error, at most once a second, that the store failed in a command.
  void report_store_failure(std::string_view error);
  // Logs as a warning, at most once a second, that a connection was closed in the middle of a
  // reply, and why.
  void report_cut_reply(std::string_view why);

 private:
  static constexpr std::uint64_t kPatienceNs = 2'000'000'000;

  bool store_is_full();

  queue::Engine& engine_;
  queue::Store& store_;
  BodyQueue& bodies_;
  std::function<queue::Now()> clock_;
  queue::Now last_now_;
  ServiceOptions options_;
  Identity identity_;
  Counters counters_;
  base::Histogram commits_;
  std::uint64_t started_ns_;
  bool draining_ = false;
  DiskSpace disk_;
  queue::DiskStore* on_disk_;
  bool saves_space_ = false;  // the store is saving space, or has not stopped yet
  std::uint64_t next_save_ns_ = 0;
  CheckpointLease checkpoint_;
  MemoryPool memory_;
  Leases leases_;
  LongChanges long_changes_;
  RequestsInFlight requests_in_flight_;
  IdempotencyCache first_answers_;
  std::function<queue::Sequence()> durable_;
  std::optional<Barrier> barrier_;
  std::optional<std::uint64_t> unavailable_since_;
  std::optional<std::uint64_t> waiting_since_;
  Feed feed_;
  push::Pusher* pusher_ = nullptr;
  // What was used of memory_ in the last turn before the reserve was given up.
  std::size_t used_with_reserve_ = 0;
  base::LogThrottle failures_;
  base::LogThrottle refusals_;
  base::LogThrottle cut_replies_;
};

}  // namespace carillon::server
