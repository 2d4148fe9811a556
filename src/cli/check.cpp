// `carillon check`: examines a deployment, before or while it serves, and prints what it finds.
// First comes what it asks a running server, over the beanstalk protocol and over HTTP.

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "cli/api.h"
#include "cli/arguments.h"
#include "cli/checks.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/stats_fields.h"
#include "cli/stream.h"
#include "cli/wait.h"

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
  const std::string& told = stats.text("version");
  const bool is_ours = is_our_version(told);
  const std::string version = is_ours ? CARILLON_VERSION : told;
  const std::string text = fmt::format("answers at {}, version {}, up for {} s",
                                       server::to_string(address), version, stats.text("uptime"));
  if (is_ours) return findings.ok("server", text);
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
                "carillon retry TUBE --all gives them back");
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
  } catch (const Refusal& refused) {
    findings.warn("http", refused.what(), "show a token with the scope read: --token-file FILE");
  } catch (const Failure& error) {
    findings.warn("http", error.what(),
                  "name the address with --http, or --http none if HTTP is not wanted");
  }
}

// --- The texts of findings, for people and as JSON; the command.

namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kIndent = 20;  // where the text begins

std::string_view name_of(Level level) {
  switch (level) {
    case Level::kOk:
      return "ok";
    case Level::kWarn:
      return "warn";
    case Level::kFail:
      return "fail";
  }
  return "";
}

// Appends the words to `text`, whose last line has `column` columns. A word that is wider than a
// line stands alone.
void append_wrapped(std::string& text, std::size_t column, std::size_t indent,
                    std::string_view words) {
  bool first = true;
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    words.remove_prefix(std::min(words.size(), word.size() + 1));
    if (!first && column + 1 + word.size() > kWidth) {
      text += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      text += ' ';
      ++column;
    }
    text += word;
    column += word.size();
    first = false;
  }
  text += '\n';
}

}  // namespace

void Findings::ok(std::string subject, std::string found) {
  findings_.push_back({Level::kOk, std::move(subject), std::move(found), ""});
}

void Findings::warn(std::string subject, std::string found, std::string advice) {
  findings_.push_back({Level::kWarn, std::move(subject), std::move(found), std::move(advice)});
}

void Findings::fail(std::string subject, std::string found, std::string advice) {
  findings_.push_back({Level::kFail, std::move(subject), std::move(found), std::move(advice)});
}

std::string Findings::text() const {
  std::string text;
  for (const Finding& finding : findings_) {
    text += fmt::format("{:<6}{:<14}", name_of(finding.level), finding.subject);
    append_wrapped(text, kIndent, kIndent, finding.found);
    if (finding.advice.empty()) continue;
    text += std::string(kIndent, ' ') + "-> ";
    append_wrapped(text, kIndent + 3, kIndent + 3, finding.advice);
  }
  return text;
}

std::string Findings::json() const {
  boost::json::array list;
  for (const Finding& finding : findings_) {
    boost::json::object object{
        {"level", name_of(finding.level)}, {"subject", finding.subject}, {"found", finding.found}};
    if (!finding.advice.empty()) object["advice"] = finding.advice;
    list.push_back(std::move(object));
  }
  const boost::json::object whole{{"result", name_of(worst())}, {"findings", std::move(list)}};
  return boost::json::serialize(whole) + "\n";
}

Level Findings::worst() const {
  Level worst = Level::kOk;
  for (const Finding& finding : findings_) worst = std::max(worst, finding.level);
  return worst;
}

int Findings::exit_code() const {
  return static_cast<int>(worst());
}

namespace {

constexpr const char* kCheckExamples =
    R"(Run it on the server's machine, as the server's user, before the server starts
or while it serves. It changes nothing. While no server uses the data directory,
all of its files are read and every checksum is verified, which takes as long
as the disk needs for that; else two seconds at most. Each finding is ok, warn
or fail; what begins with -> tells what to do.

Exit code: 0 if all is well, 1 if there are warnings, 2 if something fails.
With --salvage DIR: 0 if everything was whole, 1 if DIR has what is, 2 if there
is no DIR. The jobs that are not whole are listed in DIR.lost, and so are
settings of tubes, schedules and endpoints that are lost.

Examples:
  carillon check --data /var/lib/carillon
  sudo -u carillon carillon check --data /var/lib/carillon
  carillon check --data broken --salvage mended
  carillon check --server unix:/run/carillon/c.sock --http none
  carillon check --json | jq '.findings[] | select(.level != "ok")')";

struct CheckRequest {
  std::string directory = "./carillon-data";
  ServerAddress server;
  SecretFiles secrets;
  std::optional<std::string> salvage;
  bool json = false;
};

// The clock first and last: so a step meanwhile is seen.
Findings look(const CheckRequest& request, const StopSignals& signals) {
  Findings findings;
  const std::int64_t before = clock_offset();
  check_data(request.directory, signals, findings);
  const std::optional<pid_t> user = user_of(request.directory);
  if (!user && has_store(request.directory)) check_store(request.directory, signals, findings);
  const RunningServer server = check_server(request.server, user, signals, findings);
  if (server.answers && request.server.has_http) check_http(request.server, signals, findings);
  check_secrets(request.secrets, findings);
  check_port(request.server, findings);
  if (request.server.has_http) check_port(request.server.http_address(), findings);
  const std::optional<pid_t> process = server.pid ? server.pid : user;
  check_descriptors(process, findings);
  check_memory(process, findings);
  check_clock(before, findings);
  return findings;
}

int check(const CheckRequest& request) {
  if (request.secrets.certificate.has_value() != request.secrets.key.has_value())
    throw UsageError("--tls-cert and --tls-key go together");
  constexpr int kInterrupted = 2;
  const StopSignals signals;
  try {
    Findings findings;
    if (request.salvage) {
      salvage_store(request.directory, *request.salvage, signals, findings);
    } else {
      findings = look(request, signals);
    }
    write_out(request.json ? findings.json() : findings.text());
    return findings.exit_code();
  } catch (const Interrupted&) {
    remark("carillon check: interrupted; nothing is left of the check");
    return kInterrupted;
  }
}

}  // namespace

void add_check(CLI::App& command, int& exit_code) {
  CheckRequest& request = set_action(command, exit_code, kCheckExamples, check);
  add_value(command, "--data DIR", request.directory, parse_directory,
            "The server's data directory (./carillon-data)");
  add_value(command, "--salvage DIR", request.salvage, parse_directory,
            "Nothing else: copy what is whole of the data directory into a new one, and list the "
            "jobs that are not in DIR.lost, a line of JSON each");
  add_text(command, "--tls-cert FILE", request.secrets.certificate,
           "Its certificate: does it fit the key, until when does it hold");
  add_text(command, "--tls-key FILE", request.secrets.key,
           "The key of the certificate: who may read it");
  add_text(command, "--tokens FILE", request.secrets.tokens,
           "Its tokens: are they good, who may read them");
  add_json_and_server(command, request, R"(Print {"result":...,"findings":[{"level":...,
"subject":...,"found":...,"advice":...},...]})");
}

}  // namespace carillon::cli
