// `carillon serve`: starts the server.

#include <fmt/format.h>
#include <grp.h>
#include <spdlog/common.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/exit_status.h"
#include "cluster/postgres/postgres_log.h"
#include "cluster/postgres/weaknesses.h"
#include "server/logging.h"
#include "server/net/memory_shares.h"
#include "server/server.h"
#include "server/text/address.h"
#include "server/text/duration.h"
#include "server/text/whole_number.h"

namespace carillon::cli {
namespace {

// --- The values of the options. All parsers throw std::invalid_argument for a wrong value: its
// message says what is allowed. A size is a number of bytes, alone or in units of 1024 (k), 1024^2
// (M) or 1024^3 (G).

// Returns a number of bytes, at most `most`. The text is a number, alone or in units of 1024 (k),
// 1024^2 (M) or 1024^3 (G).
std::uint64_t parse_size(std::string_view text, std::uint64_t most) {
  constexpr std::string_view kUnits = "kMG";
  const std::size_t unit = text.empty() ? text.npos : kUnits.find(text.back());
  const bool has_unit = unit != text.npos;
  const unsigned shift = has_unit ? 10 * (static_cast<unsigned>(unit) + 1) : 0;
  const auto number =
      server::whole_number<std::uint64_t>(text.substr(0, text.size() - (has_unit ? 1 : 0)));
  if (!number || *number > (most >> shift)) {
    throw std::invalid_argument(
        fmt::format("\"{}\": not a size from 0 to {}; use e.g. 65535, 64k, 10M, 1G", text, most));
  }
  return *number << shift;
}

queue::SyncPolicy parse_sync(std::string_view text) {
  if (text == "always") return queue::SyncPolicy::always();
  if (text == "os") return queue::SyncPolicy::os();
  constexpr std::chrono::hours kLongest{24};
  try {
    const auto interval = server::parse_duration(text);
    if (interval.count() > 0 && interval <= kLongest) return queue::SyncPolicy::every(interval);
  } catch (const std::invalid_argument&) {
  }
  throw std::invalid_argument(
      fmt::format("\"{}\": write always, os, or a duration from 1ms to 24h", text));
}

std::uint32_t parse_job_size(std::string_view text) {
  return static_cast<std::uint32_t>(parse_size(text, server::kLargestMaxJobSize));
}

std::uint64_t parse_disk_size(std::string_view text) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
  return parse_size(text, kMost);
}

std::uint64_t parse_memory(std::string_view text) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
  const std::uint64_t bytes = parse_size(text, kMost);
  if (bytes >= server::kLeastMemory) return bytes;
  throw std::invalid_argument(fmt::format("\"{}\": the least is 128M", text));
}

std::string parse_file(std::string_view text) {
  if (text.empty()) throw std::invalid_argument("\"\": not the name of a file");
  return std::string(text);
}

std::optional<server::Address> parse_http(const std::string& text) {
  if (text == "none") return std::nullopt;
  return server::parse_address(text, server::kHttpPort);
}

std::string parse_host_name(std::string_view text) {
  constexpr std::string_view kBytes =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
  if (!text.empty() && text.find_first_not_of(kBytes) == std::string_view::npos)
    return std::string(text);
  throw std::invalid_argument(fmt::format("\"{}\": not the name of a host", text));
}

queue::Millis parse_load_ahead(std::string_view text) {
  // The time from 1970 to the last due time, in whole days: from now, no job is due later than
  // that.
  constexpr std::chrono::days kLongest{2'932'896};
  static_assert(kLongest <= std::chrono::milliseconds(queue::kLastDue));
  const std::chrono::milliseconds load_ahead = server::parse_duration(text);
  if (load_ahead <= kLongest) return static_cast<queue::Millis>(load_ahead.count());
  throw std::invalid_argument(fmt::format("\"{}\": the longest is {}d", text, kLongest.count()));
}

mode_t parse_socket_mode(std::string_view text) {
  const auto mode = server::whole_number<unsigned>(text, 8);
  if (mode && *mode <= 0777) return *mode;
  throw std::invalid_argument(fmt::format(
      "\"{}\": not a mode from 0 to 777, in octal digits; use e.g. 600, 660, 666", text));
}

server::SocketGroup parse_socket_group(const std::string& text) {
  if (const group* found = ::getgrnam(text.c_str())) return {.name = text, .id = found->gr_gid};
  const auto id = server::whole_number<gid_t>(text);
  // chown() takes the largest number for "leave it".
  if (id && *id != static_cast<gid_t>(-1)) return {.name = text, .id = *id};
  throw std::invalid_argument(fmt::format("\"{}\": this machine has no such group", text));
}

std::size_t parse_max_connections(std::string_view text) {
  return parse_number(text, 1, 1'000'000);
}

std::chrono::milliseconds parse_connection_timeout(std::string_view text) {
  constexpr std::chrono::seconds kShortest{1};
  const std::chrono::milliseconds timeout = server::parse_duration(text);
  if (timeout.count() == 0 || (timeout >= kShortest && timeout <= server::kLongestTimeout))
    return timeout;
  throw std::invalid_argument(
      fmt::format("\"{}\": write 0 (never), or a duration from 1s to 365d", text));
}

spdlog::level::level_enum parse_log_level(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, spdlog::level::level_enum>, 5> kLevels = {
      {{"debug", spdlog::level::debug},
       {"info", spdlog::level::info},
       {"warn", spdlog::level::warn},
       {"error", spdlog::level::err},
       {"off", spdlog::level::off}}};
  const auto found = std::find_if(kLevels.begin(), kLevels.end(),
                                  [&](const auto& level) { return level.first == text; });
  if (found == kLevels.end()) {
    throw std::invalid_argument(
        fmt::format("\"{}\": write one of debug, info, warn, error, off", text));
  }
  return found->second;
}

server::LogFormat parse_log_format(std::string_view text) {
  if (text == "text") return server::LogFormat::kText;
  if (text == "json") return server::LogFormat::kJson;
  throw std::invalid_argument(fmt::format("\"{}\": write text or json", text));
}

std::string parse_url(std::string_view text) {
  if (text.starts_with("postgresql://") || text.starts_with("postgres://"))
    return std::string(text);
  throw std::invalid_argument("not a URL of PostgreSQL; use postgresql://USER@HOST/DATABASE");
}

server::Address parse_reachable(const std::string& text, std::uint16_t port) {
  server::Address address = server::parse_address(text, port);
  if (!address.is_unix() && address.port != 0) return address;
  throw std::invalid_argument(
      fmt::format("\"{}\": other machines cannot reach that; use HOST:PORT", text));
}

std::string parse_weak_setting(std::string_view text) {
  const std::vector<std::string>& known = cluster::postgres::weak_settings();
  if (std::find(known.begin(), known.end(), text) != known.end()) return std::string(text);
  throw std::invalid_argument(fmt::format("\"{}\": write one of {}", text, fmt::join(known, ", ")));
}

constexpr std::string_view kServeExamples = R"(Examples:
  carillon serve                                    data in ./carillon-data
  carillon serve --data /var/lib/carillon           data somewhere else
  carillon serve --listen unix:/run/carillon/c.sock --socket-group www-data
      no port, a Unix socket for the users of a group
  carillon serve --listen 127.0.0.1:11300 --listen '[::1]:11300'
  carillon serve --listen 127.0.0.1:11400 --http none
  carillon serve --sync 50ms
      faster where syncs are slow; a crash of the machine may take back the last
      50 ms of what was acknowledged
  carillon serve --cluster postgresql://carillon@db1,db2/carillon
      on each of several machines: one serves, and if it is lost another does
      (see carillon cluster --help)

Signals:
  SIGTERM, SIGINT   answer what is in flight, make it durable, stop
  SIGHUP            with --tokens or --tls-cert: read their files again; else
                    the same as SIGTERM, unless it was ignored at the start
                    (nohup)
  SIGUSR1           refuse new jobs from now on (DRAINING), serve the others)";

struct ServeRequest {
  server::ServerOptions options;
  std::vector<server::Address> listen;
  std::vector<std::optional<server::Address>> http;  // none: "none"
  spdlog::level::level_enum log_level = spdlog::level::info;
  server::LogFormat log_format = server::LogFormat::kText;
  std::optional<std::string> tls_cert;
  std::optional<std::string> tls_key;
  std::optional<std::string> tls_client_ca;
  std::optional<std::string> cluster_url;
  std::optional<server::Address> address;
  std::optional<server::Address> http_address;
  std::vector<std::string> allowed_weak;
};

// The options that a client needs beside the address.
struct ClientNeeds {
  bool tls = false;
  bool token = false;
};

// Prints commands to try in a second terminal, with the server's address and the name by which this
// program was called. A certificate has a name that the server does not know.
void print_what_to_try(const std::vector<server::Address>& addresses,
                       const std::vector<server::Address>& http, ClientNeeds needs) {
  const auto shown = [&](const server::Address& address) {
    return needs.tls && !address.is_unix() ? fmt::format("NAME:{}", address.port)
                                           : server::to_string(address);
  };
  const server::Address& address = addresses.front();
  const bool has_tls = needs.tls && !address.is_unix();
  const std::string name = shown(address);
  std::string to = name == "127.0.0.1:11300" ? "" : " --server " + name;
  if (name.front() == '[') to = " --server '" + name + "'";
  if (has_tls) to += " --tls";
  if (needs.token) to += " --token-file FILE";
  fmt::print("Carillon listens on {}. Try, in another terminal{}{}:\n\n",
             server::to_string(address), has_tls ? ", with the NAME in its certificate" : "",
             !needs.token ? ""
             : has_tls    ? " and a token in FILE"
                          : ", with a token in FILE");
  fmt::print(
      "  {0} put{1} --delay 3s \"hello\"      # prints the job's id\n"
      "  {0} reserve{1} --delete            # waits, and prints it 3 s after the put\n",
      ::program_invocation_name, to);
  if (!has_tls && !needs.token) {
    fmt::print("  printf 'put 0 2 60 5\\r\\nhello\\r\\nreserve\\r\\nquit\\r\\n' | nc {}\n",
               address.is_unix() ? "-U " + address.path
                                 : fmt::format("{} {}", address.host, address.port));
  }
  if (!http.empty() && !http.front().is_unix()) {
    const std::string url =
        fmt::format("{}://{}", needs.tls ? "https" : "http", shown(http.front()));
    fmt::print("  curl -d hello {}{}/v1/tubes/mail/jobs       # {}/docs has the rest\n",
               needs.token ? "-H \"Authorization: Bearer TOKEN\" " : "", url, url);
  }
  fmt::print("\nCtrl-C stops it; the jobs stay.\n");
  std::fflush(stdout);
}

// Throws UsageError if an address was given twice: listening on it a second time would fail with a
// misleading error. Port 0 is a different port each time, so it may be repeated.
void check_no_address_twice(const std::vector<server::Address>& addresses,
                            std::string_view option) {
  std::set<std::string> seen;
  for (const server::Address& address : addresses) {
    const std::string name = server::to_string(address);
    const bool is_any_port = !address.is_unix() && address.port == 0;
    if (!is_any_port && !seen.insert(name).second) {
      throw UsageError(fmt::format("{} \"{}\" was given twice; once is enough", option, name));
    }
  }
}

// HTTP is answered beside each other address, unless addresses for it are named.
void complete_addresses(ServeRequest& request) {
  server::ServerOptions& options = request.options;
  if (!request.listen.empty()) options.listen = request.listen;
  check_no_address_twice(options.listen, "--listen");
  if (request.http.empty()) {
    options.http_is_named = false;
    for (const server::Address& address : options.listen) try {
        options.http_listen.push_back(server::http_beside(address));
      } catch (const std::invalid_argument& error) {
        throw UsageError(fmt::format("--listen {}", error.what()));
      }
    return;
  }
  for (const auto& address : request.http)
    if (address) options.http_listen.push_back(*address);
  if (options.http_listen.size() != request.http.size() && request.http.size() > 1)
    throw UsageError("--http none was given with other addresses");
  check_no_address_twice(options.http_listen, "--http");
}

// Without a mode, only the user may connect, or the user and the group, whatever the umask is.
void complete_access(server::ServerOptions& options) {
  const auto any_of = [](const std::vector<server::Address>& addresses) {
    return std::any_of(addresses.begin(), addresses.end(),
                       [](const server::Address& address) { return address.is_unix(); });
  };
  const bool any_unix = any_of(options.listen) || any_of(options.http_listen);
  server::SocketAccess& access = options.access;
  if (!any_unix && (access.mode || access.group)) {
    throw UsageError(fmt::format("{} is for a Unix socket; write also --listen unix:PATH",
                                 access.mode ? "--socket-mode" : "--socket-group"));
  }
  if (!access.mode) access.mode = access.group ? 0660 : 0600;
}

void complete_tls(ServeRequest& request) {
  if (!request.tls_cert && !request.tls_key) {
    if (request.tls_client_ca) throw UsageError("--tls-client-ca needs --tls-cert and --tls-key");
    return;
  }
  if (!request.tls_cert || !request.tls_key) {
    throw UsageError(fmt::format("{} needs {}", request.tls_cert ? "--tls-cert" : "--tls-key",
                                 request.tls_cert ? "--tls-key" : "--tls-cert"));
  }
  request.options.tls = server::TlsFiles{.certificate = *request.tls_cert,
                                         .key = *request.tls_key,
                                         .client_ca = request.tls_client_ca};
}

void complete_cluster(ServeRequest& request) {
  if (!request.cluster_url) {
    if (request.address) throw UsageError("--address needs --cluster");
    if (request.http_address) throw UsageError("--http-address needs --cluster");
    if (!request.allowed_weak.empty()) throw UsageError("--allow-weak-cluster needs --cluster");
    return;
  }
  if (request.options.sync.mode != queue::SyncPolicy::Mode::kAlways)
    throw UsageError("--cluster needs --sync always: every reply waits for the shared log");
  request.options.cluster =
      server::ClusterMembership{.connect =
                                    [url = *request.cluster_url] {
                                      return std::make_unique<cluster::postgres::PostgresLog>(url);
                                    },
                                .address = request.address,
                                .http = request.http_address};
}

// Refuses a log that a node must not start on.
void check_cluster(const ServeRequest& request) try {
  if (!request.cluster_url) return;
  cluster::postgres::PostgresLog(*request.cluster_url)
      .check({request.allowed_weak.begin(), request.allowed_weak.end()});
} catch (const queue::LogUnavailable& error) {
  throw Failure(error.what());
}

int serve(ServeRequest& request) {
  complete_addresses(request);
  complete_tls(request);
  complete_access(request.options);
  complete_cluster(request);
  server::log_to_stderr(request.log_level, request.log_format);
  if (request.log_format == server::LogFormat::kText)
    request.options.on_listening =
        [needs = ClientNeeds{.tls = request.options.tls.has_value(),
                             .token = request.options.tokens.has_value()}](
            const auto& addresses, const auto& http) { print_what_to_try(addresses, http, needs); };
  try {
    check_cluster(request);
    return server::run_server(request.options);
  } catch (const base::StartError& error) {
    throw Failure(error.what());
  }
}

// --- The options, by what they are about.

void add_storage(CLI::App& command, server::ServerOptions& options) {
  add_value(command, "--data DIR", options.data_dir, parse_directory,
            "Directory of the jobs; made if it is not there (./carillon-data)");
  add_value(command, "--sync MODE", options.sync, parse_sync,
            "When what is acknowledged is on the disk: always (before the reply), 50ms (that much "
            "later at the latest), os (when the system writes it) (always)");
  add_value(command, "--max-job-size BYTES", options.beanstalk.max_job_size, parse_job_size,
            "Largest body, up to 64M (65535)");
  add_value(command, "--min-free-disk BYTES", options.min_free_disk, parse_disk_size,
            "With less space left for the data, refuse puts, so that jobs can be deleted and the "
            "server can start, for which less than 256M may not do; 0: do not (256M)");
  add_value(command, "--scrub BYTES", options.scrub, parse_disk_size,
            "Bytes per second that are read of all files to find damage before a client does; 0: "
            "none (1M)");
  add_value(command, "--load-ahead DURATION", options.engine.load_ahead, parse_load_ahead,
            "Jobs due later than this stay on disk and take no memory (60s)");
}

void add_network(CLI::App& command, ServeRequest& request) {
  server::ServerOptions& options = request.options;
  add_value(
      command, "--listen ADDR", request.listen,
      [](const std::string& text) { return server::parse_address(text); },
      "HOST:PORT, [V6]:PORT or unix:PATH; may be given several times (127.0.0.1:11300). Beyond "
      "this machine --tokens and --tls-cert are needed");
  add_value(command, "--http ADDR", request.http, parse_http,
            "Where to answer HTTP, or none; may be given several times (beside each --listen, at "
            "the port + 80: 127.0.0.1:11380; beside unix:PATH at PATH.http)");
  add_value(command, "--http-name NAME", options.http_names, parse_host_name,
            "A name of this server that HTTP requests may use as their host, besides localhost");
}

void add_cluster(CLI::App& command, ServeRequest& request) {
  add_value(command, "--cluster URL", request.cluster_url, parse_url,
            "Share the jobs with other machines, by a log in this PostgreSQL database: one serves, "
            "and if it is lost another does");
  add_value(
      command, "--address ADDR", request.address,
      [](const std::string& text) { return parse_reachable(text, server::kBeanstalkPort); },
      "Where the other machines of the cluster reach this one (the first address of --listen)");
  add_value(
      command, "--http-address ADDR", request.http_address,
      [](const std::string& text) { return parse_reachable(text, server::kHttpPort); },
      "The same for HTTP (the first address of --http)");
  add_value(command, "--allow-weak-cluster SETTING", request.allowed_weak, parse_weak_setting,
            "Start though this setting of PostgreSQL may lose what was acknowledged; may be given "
            "several times");
}

void add_security(CLI::App& command, ServeRequest& request) {
  server::ServerOptions& options = request.options;
  add_value(
      command, "--tokens FILE", options.tokens, parse_file,
      "Ask each client for one of the tokens in this file, as `carillon token new` makes them");
  add_flag(
      command, "--allow-anonymous", options.allow_anonymous,
      "Without --tokens, listen also where other machines can reach the server: they may do all");
  add_value(command, "--tls-cert FILE", request.tls_cert, parse_file,
            "Speak TLS at all TCP ports, with the certificate in this file, and those that lead to "
            "a known one (PEM)");
  add_value(command, "--tls-key FILE", request.tls_key, parse_file,
            "Its key (PEM, without a password)");
  add_value(command, "--tls-client-ca FILE", request.tls_client_ca, parse_file,
            "Clients must show a certificate that one in this file has signed (PEM)");
  add_flag(command, "--allow-plaintext", options.allow_plaintext,
           "Without TLS, listen also where other machines can reach the server: who sees the "
           "traffic sees all");
  add_value(command, "--socket-mode MODE", options.access.mode, parse_socket_mode,
            "Who may connect to the Unix socket, as for chmod (600; with --socket-group: 660)");
  add_value(command, "--socket-group GROUP", options.access.group, parse_socket_group,
            "Group of the Unix socket, a name or a number");
}

void add_limits(CLI::App& command, server::ServerOptions& options) {
  add_value(command, "--memory BYTES", options.memory, parse_memory,
            "What the process may use, from 128M on; beyond it jobs stay on disk, reserves wait, "
            "and what needs more is refused (half of this machine's, or of its cgroup's)");
  add_value(command, "--max-connections N", options.max_connections, parse_max_connections,
            "More are refused (10000)");
  add_value(command, "--stall-timeout DURATION", options.stall_timeout, parse_connection_timeout,
            "Close a connection that does not end a line or a header it has begun, sends no more "
            "of a body, or reads none of its replies, for this time; 0: never (60s)");
  add_value(command, "--idle-timeout DURATION", options.idle_timeout, parse_connection_timeout,
            "Close a connection that sends no command for this time, and neither holds a job nor "
            "waits for one; 0: never (0)");
}

void add_push(CLI::App& command, server::ServerOptions& options) {
  add_value(
      command, "--push-allow CIDR", options.push.allowed,
      [](const std::string& text) { return server::push::parse_network(text); },
      "Push jobs to this network as well, though it is not public; may be given several times");
  add_value(
      command, "--push-ca FILE", options.push.ca_file, [](const std::string& text) { return text; },
      "Certificates (PEM) that are trusted when jobs are pushed over https (those of the system)");
}

void add_log(CLI::App& command, ServeRequest& request) {
  add_value(command, "--log-level LEVEL", request.log_level, parse_log_level,
            "debug, info, warn, error or off (info)");
  add_value(command, "--log-format FORMAT", request.log_format, parse_log_format,
            "text, or json: an object in each line (text)");
}

}  // namespace

void add_serve(CLI::App& command, int& exit_code) {
  ServeRequest& request = set_action(command, exit_code, kServeExamples, serve);
  request.options.data_dir = "./carillon-data";
  add_storage(command, request.options);
  add_network(command, request);
  add_cluster(command, request);
  add_security(command, request);
  add_limits(command, request.options);
  add_push(command, request.options);
  add_log(command, request);
}

}  // namespace carillon::cli
