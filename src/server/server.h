// run_server(): the whole server process, as `carillon serve` and `carillon beanstalkd` run it. It
// listens, keeps its jobs in a data directory or in memory, and runs until it is told to stop.
//
//   ServerOptions options;
//   options.data_dir = "carillon-data";
//   return run_server(options);          // until SIGTERM or SIGINT
//
// One thread does everything except slow syncs and reads of bodies from the disk (event_loop.h).
// The path of a put through it:
//   Connection::on_read    bytes from the socket              server/net/connection.cpp
//   parse_command          the line, into a Command           server/beanstalk/command.cpp
//   Session::dispatch      the Command, to begin_put()        server/beanstalk/session_verbs.cpp
//   Session::take_body     the body, to Engine::put()         server/beanstalk/session_puts.cpp
//   EventLoop::commit      one sync for all commands of a turn
//   Connection::flush      the reply, once the put is durable
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/start_error.h"
#include "carillon/queue/engine.h"
#include "carillon/queue/group_commit.h"
#include "cluster/cluster_log.h"
#include "server/net/listening_socket.h"
#include "server/net/tls_context.h"
#include "server/push/push_options.h"
#include "server/service.h"
#include "server/text/address.h"

namespace carillon::server {

inline constexpr std::chrono::milliseconds kLongestTimeout = std::chrono::hours(365 * 24);

// While the disk is slow, up to three times DiskStoreOptions::recent (64 MiB) waits for a flush.
// The log has these changes, and keeps them until the flush is done, now or after the next start.
inline constexpr std::uint64_t kMinFreeDisk = 256 << 20;

// The server is a node of a cluster: it serves while it owns the shard, and follows otherwise.
struct ClusterMembership {
  // Makes a way to the shared log (ClusterOptions::connect).
  std::function<std::unique_ptr<cluster::SharedLog>()> connect;
  // Where clients and other nodes reach this one. None: at the first TCP address where it listens.
  std::optional<Address> address = {};
  // The same for HTTP. None: beside `address`, or at the first TCP address where it listens.
  std::optional<Address> http = {};
};

struct ServerOptions {
  // Where to listen, unless systemd passes sockets.
  std::vector<Address> listen = {{.host = "127.0.0.1", .port = kBeanstalkPort, .path = {}}};
  // Where to answer HTTP; empty: nowhere. If systemd passes sockets, those that it calls http do,
  // and these count only if it calls none so.
  std::vector<Address> http_listen = {};
  // The user has named these. Else they follow from `listen`, and an error has to say what to do.
  bool http_is_named = true;
  // The names, besides localhost, by which HTTP clients may call the server (http/session.h).
  std::vector<std::string> http_names = {};
  // The access to the Unix sockets among them.
  SocketAccess access;
  // None: jobs are kept in memory and lost with the process.
  std::optional<std::string> data_dir;
  queue::SyncPolicy sync = queue::SyncPolicy::always();
  // Bytes that must be free where data_dir is; with less, puts are refused. 0: they never are.
  std::uint64_t min_free_disk = kMinFreeDisk;
  // Bytes per second that are read of all files, again and again, to find damage; 0: none.
  std::size_t scrub = 1 << 20;
  ServiceOptions beanstalk;
  // Where jobs may be pushed to.
  push::PushOptions push;
  queue::EngineOptions engine;
  // Bytes of memory that the process may use. None: half of what it can have.
  std::optional<std::uint64_t> memory;
  // Connections beyond this number are refused. The descriptors that the process may have are a
  // limit too.
  std::size_t max_connections = 10'000;
  // How long a client may keep the server waiting (stall_watch.h): for the rest of a command or for
  // reading its replies, and for its next command if it holds no job. 0: for ever. REQUIRES: at
  // most kLongestTimeout.
  std::chrono::milliseconds stall_timeout{60'000};
  std::chrono::milliseconds idle_timeout{0};
  // The file of the tokens; each client must show one of them (tokens.h). None: clients need no
  // token.
  std::optional<std::string> tokens;
  // Without tokens, listen also where other machines can reach the server.
  bool allow_anonymous = false;
  // The files of a certificate: with them all TCP ports speak TLS (tls_context.h). None: no port
  // does.
  std::optional<TlsFiles> tls;
  // Without TLS, listen also where other machines can reach the server.
  bool allow_plaintext = false;
  // The user to become once the sockets are bound.
  std::optional<std::string> user;
  // None: the server has its jobs alone. REQUIRES: data_dir, and SyncPolicy::always().
  std::optional<ClusterMembership> cluster;
  // Called with the addresses once connections are served.
  std::function<void(const std::vector<Address>& beanstalk, const std::vector<Address>& http)>
      on_listening;
};

// Returns the exit code of the process: 0 after SIGTERM or SIGINT, 1 after a failed sync. Throws
// StartError. After SIGUSR1 every put is answered DRAINING. Sets SIGPIPE and SIGXFSZ to be ignored.
// At SIGHUP the tokens and the certificate are read again. Without both SIGHUP is like SIGTERM,
// unless it was ignored at the start.
// A node of a cluster that does not own the shard passes its clients on to the node that does. When
// it is deposed, it closes all connections, and follows.
int run_server(const ServerOptions& options);

}  // namespace carillon::server
