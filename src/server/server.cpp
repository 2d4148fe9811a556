// run_server(): opens the sockets and the store, becomes another user if asked, and runs the loop.
#include "server/server.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "carillon/queue/memory_store.h"
#include "carillon/queue/scrubber.h"
#include "server/api/tokens.h"
#include "server/data_directory.h"
#include "server/descriptors.h"
#include "server/event_loop.h"
#include "server/net/forwarder.h"
#include "server/net/memory_reserve.h"
#include "server/net/memory_shares.h"

namespace carillon::server {
namespace {

// Blocks the signals that EventLoop handles, so that one that comes while there is no loop waits
// for it instead of killing the process.
class SignalsHeldBack {
 public:
  SignalsHeldBack() {
    const sigset_t held = handled();
    ::pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  SignalsHeldBack(const SignalsHeldBack&) = delete;
  SignalsHeldBack& operator=(const SignalsHeldBack&) = delete;
  ~SignalsHeldBack() { release(); }

  void hold() {
    const sigset_t held = handled();
    ::pthread_sigmask(SIG_BLOCK, &held, nullptr);
  }
  void release() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  // Waits that long for a signal that ends the process, which must be held back. Returns false if
  // one has come.
  static bool none_within(std::chrono::milliseconds time) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
    const timespec until{.tv_sec = seconds.count(),
                         .tv_nsec = std::chrono::nanoseconds(time - seconds).count()};
    const sigset_t ending = of({SIGTERM, SIGINT});
    const int signal = ::sigtimedwait(&ending, nullptr, &until);
    if (signal < 0) return true;
    spdlog::info("stopping (SIG{}); another node owns the jobs", ::sigabbrev_np(signal));
    return false;
  }

 private:
  static sigset_t of(std::initializer_list<int> signals) {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int signal : signals) ::sigaddset(&set, signal);
    return set;
  }

  static sigset_t handled() { return of({SIGTERM, SIGINT, SIGHUP, SIGUSR1}); }

  sigset_t before_;
};

void bind_http(const ServerOptions& options, std::vector<ListeningSocket>& sockets) try {
  for (const Address& address : options.http_listen) {
    for (ListeningSocket& socket : bind_to(address, options.access)) {
      socket.speak(Speaks::kHttp);
      sockets.push_back(std::move(socket));
    }
  }
} catch (const base::StartError& error) {
  if (options.http_is_named) throw;
  throw base::StartError(fmt::format(
      "{} (for HTTP: --http names other addresses, --http none does without it)", error.what()));
}

// Only inherited sockets listen already.
std::vector<ListeningSocket> bind_sockets(const ServerOptions& options) {
  std::vector<ListeningSocket> sockets = inherited_sockets();
  const auto speaks_http = [](const ListeningSocket& one) { return one.speaks() == Speaks::kHttp; };
  const bool has_http = std::any_of(sockets.begin(), sockets.end(), speaks_http);
  if (sockets.empty()) {
    for (const Address& address : options.listen) {
      for (ListeningSocket& socket : bind_to(address, options.access))
        sockets.push_back(std::move(socket));
    }
  }
  if (!has_http) bind_http(options, sockets);
  return sockets;
}

void become(const std::string& user) {
  const passwd* account = ::getpwnam(user.c_str());
  if (account == nullptr) throw base::StartError(fmt::format("there is no user \"{}\"", user));
  const bool became = ::initgroups(account->pw_name, account->pw_gid) == 0 &&
                      ::setgid(account->pw_gid) == 0 && ::setuid(account->pw_uid) == 0;
  if (!became)
    throw base::StartError(
        fmt::format("cannot become user \"{}\": {}", user, std::strerror(errno)));
}

// Returns the kernel's name for this boot of the machine; empty if the kernel has no name for it.
std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

// The number in the first 16 of its random hexadecimal digits; 0 if it has no digits.
std::uint64_t number_of_boot(std::string id) {
  std::erase(id, '-');
  std::uint64_t number = 0;
  const std::size_t digits = std::min<std::size_t>(id.size(), 16);
  std::from_chars(id.data(), id.data() + digits, number, 16);
  return number;
}

queue::DiskStoreOptions store_options(const ServerOptions& options, const MemoryShares& memory,
                                      std::size_t open_files) {
  return {.recent = memory.recent,
          .read_cache = memory.read_cache,
          .max_open_files = open_files,
          .durable_writes = options.sync.mode == queue::SyncPolicy::Mode::kAlways,
          .boot = number_of_boot(options.engine.boot)};
}

std::string describe(const queue::SyncPolicy& sync) {
  switch (sync.mode) {
    case queue::SyncPolicy::Mode::kAlways:
      return "sync before each reply";
    case queue::SyncPolicy::Mode::kInterval:
      return fmt::format("sync every {} ms", sync.interval.count());
    case queue::SyncPolicy::Mode::kOs:
      return "sync left to the operating system";
  }
  return {};
}

void log_start(const ServerOptions& options, const queue::Engine& engine,
               std::chrono::steady_clock::duration took) {
  if (!options.data_dir) {
    spdlog::info("carillon {}: jobs are kept in memory and end with the process", CARILLON_VERSION);
    return;
  }
  const queue::EngineStats stats = engine.stats();
  const queue::JobCounts& jobs = stats.jobs;
  spdlog::info("carillon {}: data in {}, {}; found {} jobs in {} tubes, in {} ms", CARILLON_VERSION,
               *options.data_dir,
               options.cluster ? "which follows a shared log" : describe(options.sync),
               jobs.ready + jobs.delayed + jobs.reserved + jobs.buried, stats.tubes,
               std::chrono::duration_cast<std::chrono::milliseconds>(took).count());
  if (const std::string why = data_exposure(*options.data_dir); !why.empty())
    spdlog::warn("{} (chmod 700 {})", why, *options.data_dir);
}

// Returns true if that worked. Every reply has left by now.
bool close(queue::Store& store) {
  store.close();
  const std::string why = store.failure();
  if (!why.empty()) spdlog::critical("the store has failed while it was closed: {}", why);
  return why.empty();
}

struct Listening {
  Address address;
  bool loopback;
  Speaks speaks;
};

std::vector<Listening> describe(const std::vector<ListeningSocket>& sockets) {
  std::vector<Listening> all;
  for (const ListeningSocket& socket : sockets)
    all.push_back({socket.bound(), socket.loopback(), socket.speaks()});
  return all;
}

void announce(const std::vector<Listening>& all, const ServerOptions& options) {
  std::vector<Address> beanstalk;
  std::vector<Address> http;
  for (const auto& [address, loopback, speaks] : all) {
    (speaks == Speaks::kHttp ? http : beanstalk).push_back(address);
    const bool has_tls = options.tls && !address.is_unix();
    spdlog::info("listening on {}{}", to_string(address),
                 speaks == Speaks::kHttp ? (has_tls ? " (HTTP, TLS)" : " (HTTP)")
                 : has_tls               ? " (TLS)"
                                         : "");
    if (loopback) continue;
    if (!options.tokens) {
      spdlog::warn(
          "{} can be reached from other machines, and asks for no token: whoever reaches "
          "it may do all",
          to_string(address));
    }
    if (!has_tls) {
      spdlog::warn(
          "{} can be reached from other machines, and nothing is encrypted: whoever sees "
          "the traffic sees {}",
          to_string(address), options.tokens ? "the tokens and the jobs" : "the jobs");
    }
  }
  if (options.on_listening) options.on_listening(beanstalk, http);
}

// A server that other machines can reach must ask for tokens and speak TLS, unless an option allows
// otherwise.
void check_reach(const std::vector<ListeningSocket>& sockets, const ServerOptions& options) {
  for (const ListeningSocket& socket : sockets) {
    if (socket.loopback()) continue;
    const std::string address = to_string(socket.bound());
    if (!options.tokens && !options.allow_anonymous) {
      throw base::StartError(fmt::format(
          "{} can be reached from other machines, and whoever reaches it could read and delete all "
          "jobs: ask for tokens with --tokens FILE (see `carillon token new --help`), or let "
          "everybody in with --allow-anonymous",
          address));
    }
    if (!options.tls && !options.allow_plaintext) {
      throw base::StartError(fmt::format(
          "{} can be reached from other machines, and whoever sees the traffic could read all jobs "
          "and tokens: encrypt it with --tls-cert FILE and --tls-key FILE, or, on a network that "
          "you trust or behind a proxy with TLS, allow it with --allow-plaintext",
          address));
    }
  }
}

// What a server has from its start to its end, however often it serves.
struct Process {
  ServerOptions options;  // fitted to the limits of this machine
  DescriptorShares shares;
  MemoryShares memory;
  std::optional<Tokens> tokens;
  std::optional<TlsContext> tls;
  SignalsHeldBack signals;
};

// Opens the store, serves until the loop ends, and closes the store. `sockets` listen already. A
// node of a cluster must own its shard first; until then `forwarder` has its clients. Returns the
// exit code; none if another node owns the shard now.
std::optional<int> serve(Process& process, std::vector<ListeningSocket> sockets,
                         const cluster::ClusterOptions* cluster, Forwarder* forwarder) {
  ServerOptions options = process.options;
  const auto start = std::chrono::steady_clock::now();
  queue::MemoryStore in_memory;
  std::optional<queue::DiskStore> on_disk;
  if (options.data_dir) {
    const auto how = store_options(options, process.memory, process.shares.open_files);
    if (cluster != nullptr) {
      on_disk.emplace(*options.data_dir, how, cluster::ClusterLogs(*cluster));
    } else {
      on_disk.emplace(*options.data_dir, how);
    }
    for (const std::string& line : on_disk->dropped()) spdlog::warn("{}", line);
    on_disk->on_damage([](const std::string& line) { spdlog::error("{}", line); });
  } else {
    options.beanstalk.stored = [&in_memory] { return in_memory.bytes(); };
    options.beanstalk.max_stored = process.memory.stored;
  }
  queue::Store& store = on_disk ? static_cast<queue::Store&>(*on_disk) : in_memory;
  std::optional<queue::Scrubber> scrubber;
  if (on_disk && options.scrub > 0) {
    scrubber.emplace(*options.data_dir, queue::ScrubberOptions{.bytes_per_second = options.scrub},
                     [](const std::string& line) { spdlog::error("{}", line); });
    options.beanstalk.scrubber = &*scrubber;
    on_disk->on_damage([&scrubber](const std::string& line) {
      scrubber->note_damage(line);
      spdlog::error("{}", line);
    });
  }
  if (forwarder != nullptr) forwarder->stop();
  const std::vector<Listening> listening = describe(sockets);
  EventLoop loop(store, std::move(sockets), options, on_disk ? &*on_disk : nullptr,
                 process.tokens ? &*process.tokens : nullptr,
                 process.tls ? &*process.tls : nullptr);
  process.signals.release();
  log_start(options, loop.engine(), std::chrono::steady_clock::now() - start);
  if (process.tls) log_certificate(*process.tls);
  announce(listening, options);
  const EventLoop::End end = loop.run();
  process.signals.hold();
  if (end == EventLoop::End::kDeposed && !loop.stopping()) return std::nullopt;
  if (end != EventLoop::End::kSignal || !close(store)) return 1;
  spdlog::info("stopped");
  return 0;
}

// Where other machines reach what the sockets with this protocol are for.
std::string address_of(const std::vector<ListeningSocket>& sockets, Speaks protocol,
                       const std::optional<Address>& named) {
  if (named) return to_string(*named);
  for (const ListeningSocket& socket : sockets) {
    if (socket.speaks() == protocol && !socket.is_unix()) return to_string(socket.bound());
  }
  return {};
}

// None also if two nodes have the same address: a node must not pass clients on to itself.
std::optional<Forwarder::Destination> destination_of(const cluster::SharedLog::Node* owner,
                                                     const std::string& own_address) try {
  if (owner == nullptr || owner->address == own_address) return std::nullopt;
  Forwarder::Destination destination{.beanstalk = parse_address(owner->address), .http = {}};
  if (!owner->http.empty()) destination.http = parse_address(owner->http);
  return destination;
} catch (const std::invalid_argument& error) {
  spdlog::error("the node that serves has an address that cannot be read: {}", error.what());
  return std::nullopt;
}

// Throws StartError if other machines cannot reach a node there.
void check_address(const std::string& address) {
  if (address.empty()) {
    throw base::StartError(
        "a node of a cluster needs a TCP address, so that the others can pass clients on to it; "
        "see --listen and --address");
  }
  const std::string host = parse_address(address).host;
  if (host == "0.0.0.0" || host == "::") {
    throw base::StartError(fmt::format(
        "the other nodes cannot reach this one at {}: name an address of this machine with "
        "--address, and --http-address for HTTP",
        address));
  }
  if (host == "127.0.0.1" || host == "::1" || host == "localhost")
    spdlog::warn("only nodes on this machine can reach this one, at {}; see --address", address);
}

std::vector<ListeningSocket> duplicates(const std::vector<ListeningSocket>& sockets) {
  std::vector<ListeningSocket> all;
  for (const ListeningSocket& socket : sockets) all.push_back(socket.duplicate());
  return all;
}

// Serves while it owns the shard, and follows otherwise. The sockets listen all the time: those of
// systemd, and ports below 1024 after --user, could not be opened again.
int run_node(Process& process, const std::vector<ListeningSocket>& sockets) {
  const ServerOptions& options = process.options;
  Forwarder forwarder(options.max_connections / 2);  // each has two descriptors
  const std::string address = address_of(sockets, Speaks::kBeanstalk, options.cluster->address);
  check_address(address);
  const cluster::ClusterOptions cluster{
      .connect = options.cluster->connect,
      .address = address,
      .http = address_of(sockets, Speaks::kHttp, options.cluster->http),
      .wait = SignalsHeldBack::none_within,
      .say = [](const std::string& line) { spdlog::warn("{}", line); },
      .hear =
          [&forwarder, address](const cluster::SharedLog::Node* owner) {
            forwarder.lead_to(destination_of(owner, address));
          }};
  try {
    while (true) {
      spdlog::info("carillon {}: follows the shared log, as {}", CARILLON_VERSION, cluster.address);
      forwarder.start(sockets);
      if (const auto code = serve(process, duplicates(sockets), &cluster, &forwarder)) return *code;
    }
  } catch (const cluster::FollowingEnded&) {
    return 0;
  }
}

}  // namespace

int run_server(const ServerOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a full disk, by EFBIG
  Process process;
  const std::size_t limit = raise_descriptor_limit();
  process.shares = share_descriptors(limit, options.max_connections, options.data_dir.has_value());
  std::vector<ListeningSocket> sockets = bind_sockets(options);
  check_reach(sockets, options);
  if (options.user) become(*options.user);
  if (options.tokens) process.tokens.emplace(*options.tokens);
  if (options.tls) process.tls.emplace(*options.tls);
  // Listens before the store is opened, so that early clients wait instead of being refused.
  for (ListeningSocket& socket : sockets) socket.listen();

  if (process.shares.connections < options.max_connections) {
    spdlog::warn(
        "at most {} connections instead of {}: the process may have {} descriptors (see ulimit -n)",
        process.shares.connections, options.max_connections, limit);
  }
  const std::uint64_t most_memory = options.memory.value_or(memory_limit() / 2);
  const MemoryShares memory = share_memory(most_memory, options.data_dir.has_value());
  MemoryReserve reserve;
  process.memory = memory;
  process.options = options;
  ServerOptions& fitted = process.options;
  fitted.beanstalk.memory = memory.connections;
  fitted.beanstalk.reserve = &reserve;
  fitted.beanstalk.tokens = process.tokens ? &*process.tokens : nullptr;
  fitted.engine.memory_is_short = [&reserve] { return reserve.is_used(); };
  fitted.engine.max_loaded = memory.loaded;
  fitted.engine.max_reserved = memory.reserved;
  fitted.engine.max_tubes = memory.tubes;
  fitted.engine.max_schedule_bytes = memory.schedules;
  fitted.max_connections = process.shares.connections;
  fitted.push.sockets = process.shares.pushes;
  fitted.beanstalk.durable = options.data_dir.has_value();
  fitted.engine.boot = boot_id();

  try {
    if (options.cluster) return run_node(process, sockets);
    return serve(process, std::move(sockets), nullptr, nullptr).value_or(1);
  } catch (const queue::StoreError& error) {
    throw base::StartError(error.what());
  }
}

}  // namespace carillon::server
