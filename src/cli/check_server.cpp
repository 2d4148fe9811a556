// A running server, as `carillon check` examines it: over the beanstalk protocol and over HTTP.

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "cli/api.h"
#include "cli/checks.h"
#include "cli/client.h"
#include "cli/counted.h"
#include "cli/stats_fields.h"
#include "cli/stream.h"

namespace carillon::cli {
namespace {

constexpr double kSlowCommit = 0.1;  // seconds
constexpr std::chrono::seconds kHttpPatience{10};

bool is_carillon(pid_t pid) {
  std::string name;
  std::ifstream(fmt::format("/proc/{}/comm", pid)) >> name;
  return name == "carillon";
}

// Over the beanstalk protocol a version has two parts.
bool is_our_version(const std::string& version) {
  return std::string_view(CARILLON_VERSION).starts_with(version + ".");
}

void check_version(const StatsFields& stats, const server::Address& address, Findings& findings) {
  const std::string& version = stats.text("version");
  const std::string text = fmt::format("answers at {}, version {}, up for {} s",
                                       server::to_string(address), version, stats.text("uptime"));
  if (is_our_version(version)) return findings.ok("server", text);
  findings.warn("server", fmt::format("{}; this command has version {}", text, CARILLON_VERSION),
                "restart the server after an upgrade");
}

void check_jobs(const StatsFields& stats, Findings& findings) {
  if (stats.text("draining") == "true") {
    findings.warn("puts", "are refused: the server is draining (SIGUSR1)",
                  "restart the server when it shall take jobs again");
  }
  const std::uint64_t buried = stats.number("current-jobs-buried");
  if (buried == 0) return findings.ok("buried", "no job is dead or buried");
  const std::string found =
      buried == 1 ? "1 job is dead or buried, and nobody gets it"
                  : fmt::format("{} jobs are dead or buried, and nobody gets them", buried);
  findings.warn("buried", found,
                "carillon list shows the tubes; carillon list TUBE --state buried the jobs; "
                "carillon retry TUBE gives them back");
}

// A unix socket is opened to others by --socket-mode alone.
void check_socket(const server::Address& address, Findings& findings) {
  struct stat entry {};
  if (!address.is_unix() || ::stat(address.path.c_str(), &entry) != 0) return;
  const std::string text = fmt::format("{} has mode {:03o}", address.path, entry.st_mode & 0777u);
  if ((entry.st_mode & 0002) == 0) return findings.ok("socket", text);
  findings.warn("socket", text + ": every user may connect",
                "carillon serve --socket-group GROUP, without --socket-mode");
}

// The upper bounds of the buckets in which the median and the 99th percentile lie.
struct Commits {
  double median = 0;
  double p99 = 0;
  std::uint64_t count = 0;
};

double bound_of(const std::vector<std::pair<double, std::uint64_t>>& buckets, double part) {
  const auto wanted = part * static_cast<double>(buckets.back().second);
  for (const auto& [bound, count] : buckets) {
    if (static_cast<double>(count) >= wanted) return bound;
  }
  return buckets.back().first;
}

Commits read_commits(const std::string& metrics) {
  constexpr std::string_view kBucket = "carillon_commit_duration_seconds_bucket{le=\"";
  std::vector<std::pair<double, std::uint64_t>> buckets;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kBucket)) continue;
    const double bound = std::strtod(line.c_str() + kBucket.size(), nullptr);  // "+Inf" too
    buckets.emplace_back(bound, std::strtoull(line.c_str() + line.rfind(' ') + 1, nullptr, 10));
  }
  if (buckets.empty() || buckets.back().second == 0) return {};
  return {bound_of(buckets, 0.5), bound_of(buckets, 0.99), buckets.back().second};
}

}  // namespace

RunningServer check_server(const ServerAddress& address, std::optional<pid_t> user,
                           const StopSignals& signals, Findings& findings) {
  try {
    Client client(Stream::connect(address, signals.fd()));
    const StatsFields stats = client.stats();
    if (!stats.has("current-jobs-loaded")) {
      findings.fail("server", server::to_string(address) + " is a beanstalkd, not Carillon",
                    "stop it, or use another port: carillon serve --listen");
      return {};
    }
    check_version(stats, address, findings);
    check_socket(address, findings);
    check_jobs(stats, findings);
    const auto pid = static_cast<pid_t>(stats.number("pid"));
    return {.answers = true, .pid = is_carillon(pid) ? std::optional(pid) : std::nullopt};
  } catch (const Unavailable& error) {
    if (user) {
      findings.fail("server",
                    fmt::format("process {} uses the data directory, but: {}", *user, error.what()),
                    "name its address with --server");
    } else {
      findings.ok("server", fmt::format("none answers: {}", error.what()));
    }
  } catch (const Forbidden& error) {
    findings.fail("server", error.what(), "show a token with the scope read: --token-file FILE");
  } catch (const Failure& error) {
    findings.fail("server", error.what(), "another program may have the port: ss -ltnp");
  }
  return {};
}

void check_http(const ServerAddress& address, const StopSignals& signals, Findings& findings) {
  try {
    Api api(address, signals.fd());
    api.set_patience(kHttpPatience);
    const Commits commits = read_commits(api.fetch("GET", "/metrics"));
    const std::string at = "answers at " + server::to_string(address.http_address());
    if (commits.count == 0) return findings.ok("http", at + "; no change has been synced yet");
    const std::string text =
        fmt::format("{}; {} for syncs: half within {:g} ms, 99 % within {:g} ms", at,
                    counted(commits.count, "wait"), commits.median * 1e3, commits.p99 * 1e3);
    if (commits.p99 <= kSlowCommit) return findings.ok("http", text);
    findings.warn("http", text, "the disk is slow, or busy with something else");
  } catch (const Failure& error) {
    findings.warn("http", error.what(),
                  "name the address with --http, or --http none if HTTP is not wanted");
  }
}

}  // namespace carillon::cli
