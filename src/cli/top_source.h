// What `carillon top` shows: the counts of a server and its tubes, and how they have changed since
// they were last asked for.
//
//   TopSource source(server, stop.fd());
//   for (;;) { show(source.take()); sleep(1s); }
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/api.h"
#include "cli/client.h"
#include "cli/server_address.h"

namespace carillon::cli {

// Jobs by state.
struct TopJobs {
  std::uint64_t delayed = 0;
  std::uint64_t ready = 0;
  std::uint64_t reserved = 0;
  std::uint64_t buried = 0;

  std::uint64_t all() const { return delayed + ready + reserved + buried; }
};

struct TopTube {
  std::string name;
  TopJobs jobs;
  std::uint64_t waiting = 0;  // workers
  std::uint64_t puts = 0;     // since the tube was made
  std::uint64_t deletes = 0;
  // Per second; none if the tube was not there before.
  std::optional<double> put_rate = {};
  std::optional<double> delete_rate = {};
  bool paused = false;
};

// A minute in which many of a tube's jobs are due.
struct TopStorm {
  std::string tube;
  std::uint64_t from = 0;  // UTC ms
  std::uint64_t jobs = 0;
  bool estimated = false;
};

struct TopSnapshot {
  std::uint64_t at = 0;  // UTC ms
  std::string server;    // its address
  std::string version;
  std::string host;          // empty: the server does not say
  std::uint64_t uptime = 0;  // s
  bool draining = false;
  TopJobs jobs;
  std::uint64_t connections = 0;
  std::uint64_t waiting = 0;
  // Per second; none at first, and if the server does not count them.
  std::optional<double> put_rate = {};
  std::optional<double> fired_rate = {};
  std::optional<double> delete_rate = {};
  // Upper bounds in ms, of the last ten seconds; none if no job went out.
  std::optional<std::uint64_t> late_half = {};
  std::optional<std::uint64_t> late_99 = {};
  std::optional<std::uint64_t> late_all = {};
  std::vector<TopStorm> storms;  // the nearest first
  std::vector<TopTube> tubes;    // some of them, if there are many
  std::uint64_t all_tubes = 0;
};

class TopSource {
 public:
  // So many tubes are asked for; and of so many, those with the most delayed jobs, when jobs are
  // due.
  static constexpr std::size_t kMostTubes = 200;
  static constexpr std::size_t kMostWithStorms = 5;

  // A wait for the server throws Interrupted once `interrupt_fd` is readable.
  TopSource(ServerAddress server, int interrupt_fd)
      : server_(std::move(server)), interrupt_fd_(interrupt_fd) {}

  // Connects if it is not connected. Throws Unavailable if the server does not answer: the next
  // call connects anew. Throws Failure if that will not help.
  TopSnapshot take();

 private:
  using Clock = std::chrono::steady_clock;
  struct Totals {
    std::string server_id;
    Clock::time_point at = {};
    std::uint64_t puts = 0;
    std::optional<std::uint64_t> fired = {};
    std::optional<std::uint64_t> deletes = {};
    std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> tubes = {};
  };

  void look_at_server(TopSnapshot& shot, Totals& totals);
  void look_at_tubes(TopSnapshot& shot, Totals& totals);
  void look_for_storms(TopSnapshot& shot);
  void add_rates(TopSnapshot& shot, const Totals& totals) const;

  const ServerAddress server_;
  const int interrupt_fd_;
  std::optional<Client> client_;
  std::optional<Api> api_;  // for storms
  Totals before_;
  // What is not asked for each time.
  Clock::time_point looked_ = {};
  std::vector<std::string> names_;
  std::uint64_t all_tubes_ = 0;
  std::vector<TopStorm> storms_;
};

}  // namespace carillon::cli
