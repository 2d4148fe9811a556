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
#include "server/net/memory_reserve.h"
#include "server/net/memory_shares.h"

namespace carillon::server {
namespace {

// Blocks the signals that EventLoop handles, so that one that comes during the start waits for the
// loop instead of killing the process.
class SignalsHeldBack {
 public:
  SignalsHeldBack() {
    sigset_t held;
    ::sigemptyset(&held);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) ::sigaddset(&held, signal);
    ::pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  SignalsHeldBack(const SignalsHeldBack&) = delete;
  SignalsHeldBack& operator=(const SignalsHeldBack&) = delete;
  ~SignalsHeldBack() { release(); }

  void release() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
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

std::unique_ptr<queue::DiskStore> open_store(const std::optional<std::string>& directory,
                                             const queue::SyncPolicy& sync,
                                             const MemoryShares& memory, std::size_t open_files) {
  if (!directory) return nullptr;
  const queue::DiskStoreOptions options{
      .recent = memory.recent,
      .read_cache = memory.read_cache,
      .max_open_files = open_files,
      .durable_writes = sync.mode == queue::SyncPolicy::Mode::kAlways,
      .boot = number_of_boot(boot_id())};
  auto store = std::make_unique<queue::DiskStore>(*directory, options);
  for (const std::string& line : store->dropped()) spdlog::warn("{}", line);
  store->on_damage([](const std::string& line) { spdlog::error("{}", line); });
  return store;
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
               *options.data_dir, describe(options.sync),
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

}  // namespace

int run_server(const ServerOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a full disk, by EFBIG
  SignalsHeldBack signals;
  const std::size_t limit = raise_descriptor_limit();
  const DescriptorShares shares =
      share_descriptors(limit, options.max_connections, options.data_dir.has_value());
  std::vector<ListeningSocket> sockets = bind_sockets(options);
  check_reach(sockets, options);
  if (options.user) become(*options.user);
  std::optional<Tokens> tokens;
  if (options.tokens) tokens.emplace(*options.tokens);
  std::optional<TlsContext> tls;
  if (options.tls) tls.emplace(*options.tls);
  // Listens before the store is opened, so that early clients wait instead of being refused.
  for (ListeningSocket& socket : sockets) socket.listen();

  if (shares.connections < options.max_connections) {
    spdlog::warn(
        "at most {} connections instead of {}: the process may have {} descriptors (see ulimit -n)",
        shares.connections, options.max_connections, limit);
  }
  const std::uint64_t most_memory = options.memory.value_or(memory_limit() / 2);
  const MemoryShares memory = share_memory(most_memory, options.data_dir.has_value());
  MemoryReserve reserve;
  queue::MemoryStore in_memory;
  ServerOptions fitted = options;
  fitted.beanstalk.memory = memory.connections;
  fitted.beanstalk.reserve = &reserve;
  fitted.beanstalk.tokens = tokens ? &*tokens : nullptr;
  fitted.engine.memory_is_short = [&reserve] { return reserve.is_used(); };
  fitted.engine.max_loaded = memory.loaded;
  fitted.engine.max_reserved = memory.reserved;
  fitted.engine.max_tubes = memory.tubes;
  fitted.engine.max_schedule_bytes = memory.schedules;
  fitted.max_connections = shares.connections;
  fitted.push.sockets = shares.pushes;
  fitted.beanstalk.durable = options.data_dir.has_value();
  fitted.engine.boot = boot_id();
  if (!options.data_dir) {
    fitted.beanstalk.stored = [&in_memory] { return in_memory.bytes(); };
    fitted.beanstalk.max_stored = memory.stored;
  }

  try {
    const auto start = std::chrono::steady_clock::now();
    const auto on_disk = open_store(options.data_dir, options.sync, memory, shares.open_files);
    queue::Store& store = on_disk ? static_cast<queue::Store&>(*on_disk) : in_memory;
    std::optional<queue::Scrubber> scrubber;
    if (on_disk && options.scrub > 0) {
      scrubber.emplace(*options.data_dir, queue::ScrubberOptions{.bytes_per_second = options.scrub},
                       [](const std::string& line) { spdlog::error("{}", line); });
      fitted.beanstalk.scrubber = &*scrubber;
      on_disk->on_damage([&scrubber](const std::string& line) {
        scrubber->note_damage(line);
        spdlog::error("{}", line);
      });
    }
    const std::vector<Listening> listening = describe(sockets);
    EventLoop loop(store, std::move(sockets), fitted, on_disk.get(), tokens ? &*tokens : nullptr,
                   tls ? &*tls : nullptr);
    signals.release();
    log_start(options, loop.engine(), std::chrono::steady_clock::now() - start);
    if (tls) log_certificate(*tls);
    announce(listening, options);
    if (loop.run() != EventLoop::End::kSignal || !close(store)) return 1;
    spdlog::info("stopped");
    return 0;
  } catch (const queue::StoreError& error) {
    throw base::StartError(error.what());
  }
}

}  // namespace carillon::server
