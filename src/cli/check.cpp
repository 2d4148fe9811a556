// `carillon check`: examines a deployment, before or while it serves, and prints what it finds.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "cli/arguments.h"
#include "cli/checks.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/wait.h"

namespace carillon::cli {
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

constexpr const char* kExamples =
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

struct Request {
  std::string directory = "./carillon-data";
  ServerAddress server;
  SecretFiles secrets;
  std::optional<std::string> salvage;
  bool json = false;
};

std::string parse_directory(std::string_view text) {
  if (text.empty()) throw std::invalid_argument("\"\": not a directory's name");
  return std::string(text);
}

// The clock first and last: so a step meanwhile is seen.
Findings look(const Request& request, const StopSignals& signals) {
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

int check(const Request& request) {
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

void add_check(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "check", kExamples);
  add_value(command, "--data", request->directory, parse_directory,
            "The server's data directory (./carillon-data)")
      .type_name("DIR");
  add_text(
      command, "--salvage",
      [request](const std::string& text) { request->salvage = parse_directory(text); },
      "Nothing else: copy what is whole of the data\ndirectory into a new one, and list the "
      "jobs that\nare not in DIR.lost, a line of JSON each")
      .type_name("DIR");
  const auto add_file = [&](const std::string& name, std::optional<std::string>& file,
                            const std::string& description) {
    add_text(
        command, name, [&file](const std::string& text) { file = text; }, description)
        .type_name("FILE");
  };
  add_file("--tls-cert", request->secrets.certificate,
           "Its certificate: does it fit the key, until when\ndoes it hold");
  add_file("--tls-key", request->secrets.key, "The key of the certificate: who may read it");
  add_file("--tokens", request->secrets.tokens, "Its tokens: are they good, who may read them");
  add_flag(command, "--json", request->json,
           R"(Print {"result":...,"findings":[{"level":...,
"subject":...,"found":...,"advice":...},...]})");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = check(*request); });
}

}  // namespace carillon::cli
