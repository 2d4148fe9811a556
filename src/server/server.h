// `carillon serve`: one process that listens, keeps its jobs in a data directory or in memory, and
// runs until it is told to stop.
//
//   ServerOptions options;
//   options.data_dir = "carillon-data";
//   return run_server(options);          // until SIGTERM, SIGINT or SIGHUP
//
// One thread runs everything but the syncs: it reads what the sockets have, carries out the
// commands, asks for one sync for all of them, and sends the replies that are durable by then.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "carillon/queue/engine.h"
#include "carillon/queue/group_commit.h"
#include "server/address.h"
#include "server/beanstalk/service.h"
#include "server/listening_socket.h"
#include "server/start_error.h"

namespace carillon::server {

inline constexpr std::chrono::milliseconds kLongestTimeout = std::chrono::hours(365 * 24);

struct ServerOptions {
  // Where to listen, unless systemd passes sockets.
  std::vector<Address> listen = {{.host = "127.0.0.1", .port = kBeanstalkPort, .path = {}}};
  std::optional<std::string> data_dir;  // none: in memory, and lost with the process
  queue::SyncPolicy sync = queue::SyncPolicy::always();
  std::uint64_t min_free_disk =
      128 << 20;  // bytes where data_dir is; with less, puts are refused. 0: they are not
  beanstalk::ServiceOptions beanstalk;
  queue::EngineOptions engine;
  std::size_t max_connections =
      10'000;  // more are refused; also bounded by the descriptors that the process may have
  // How long a client may keep the server waiting (stall_watch.h). 0: for ever. REQUIRES: at most
  // kLongestTimeout.
  std::chrono::milliseconds stall_timeout{
      60'000};  // for the rest of a command, or for reading its replies
  std::chrono::milliseconds idle_timeout{0};  // for its next command, if it holds no job
  std::optional<std::string> user;            // whom to become once the sockets are bound
  std::function<void(const std::vector<Address>&)>
      on_listening;  // called once connections are served
};

// Returns the exit code of the process: 0 after SIGTERM, SIGINT or SIGHUP, 1 after a failed sync.
// Throws StartError. SIGUSR1 makes every put be answered DRAINING from then on. SIGPIPE is ignored
// from then on. SIGHUP stays ignored if it was.
int run_server(const ServerOptions& options);

}  // namespace carillon::server
