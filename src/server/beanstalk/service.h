// What all beanstalk connections of one server share: the engine, the clock, the limits, and the
// counters that `stats` shows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "carillon/queue/engine.h"
#include "carillon/queue/now.h"
#include "server/beanstalk/command.h"
#include "server/disk_space.h"
#include "server/log_throttle.h"

namespace carillon::server::beanstalk {

// beanstalkd's default, and the most that its -z allows.
inline constexpr std::uint32_t kDefaultMaxJobSize = 65'535;
inline constexpr std::uint32_t kLargestMaxJobSize = 1u << 30;

struct ServiceOptions {
  std::uint32_t max_job_size = kDefaultMaxJobSize;  // bytes of a body; a larger one is JOB_TOO_BIG
  std::size_t max_unsent =
      1 << 20;  // bytes of replies that one connection may leave unread before it is not read
  std::size_t steps_per_turn =
      1'000;            // lines and bodies of one connection, before the others get their turn
  bool durable = true;  // whether the store outlives the process: what the binlog-… stats mean
};

// Who the server is, as `stats` tells.
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
  std::array<std::uint64_t, kVerbs> commands{};
  std::uint64_t connections = 0;  // now open
  std::uint64_t producers = 0;    // of those, the ones that have sent a put
  std::uint64_t workers = 0;      // of those, the ones that have sent a reserve
  std::uint64_t total_connections = 0;
  std::uint64_t closed_stalled = 0;  // by the server, because the client stalled
  std::uint64_t closed_idle = 0;     // by the server, because the client sent no command

  std::uint64_t& of(Verb verb) { return commands[static_cast<std::size_t>(verb)]; }
  std::uint64_t of(Verb verb) const { return commands[static_cast<std::size_t>(verb)]; }
};

// Thread safety: none; it belongs to the thread that owns the engine.
class Service {
 public:
  // `clock` is read once for each command. `engine` must outlive the service.
  Service(queue::Engine& engine, std::function<queue::Now()> clock, const ServiceOptions& options,
          DiskSpace disk = {});
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  queue::Engine& engine() { return engine_; }
  queue::Now now() const { return clock_(); }
  const ServiceOptions& options() const { return options_; }
  const Identity& identity() const { return identity_; }
  Counters& counters() { return counters_; }
  std::uint64_t started_ns() const { return started_ns_; }

  // From then on every put is answered DRAINING. There is no way back.
  void drain() { draining_ = true; }
  bool draining() const { return draining_; }

  // Whether every put is to be answered OUT_OF_MEMORY, at this time.
  bool refuses_puts(queue::Now now) { return disk_.low(now.mono_ns); }

  // Logs that the store failed in a command, loudly, but once a second at most.
  void report_store_failure(std::string_view error);

 private:
  queue::Engine& engine_;
  std::function<queue::Now()> clock_;
  ServiceOptions options_;
  Identity identity_;
  Counters counters_;
  std::uint64_t started_ns_;
  bool draining_ = false;
  DiskSpace disk_;
  LogThrottle failures_;
};

}  // namespace carillon::server::beanstalk
