// `carillon put`: puts one job and prints its id.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "carillon/queue/job.h"
#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/job_json.h"
#include "cli/output.h"
#include "server/duration.h"
#include "server/timestamp.h"

namespace carillon::cli {
namespace {

constexpr const char* kExamples = R"(The body is BODY byte for byte, or all of standard input.
DURATION: 250ms, 3s, 1.5h, 1h30m, 40d. TIME: RFC 3339 with its offset from UTC;
a time in the past is now. Due times end with the year 9999.

Examples:
  carillon put --delay 3s "hello"
  carillon put --at 2030-01-01T09:00:00+02:00 --tube mail "new year"
  carillon put --tube images --ttr 10m --pri 0 < job.json
  carillon put --json --delay 40d -- "-a body that starts with a dash")";

// The server accepts a shorter ttr, but raises it to 1 s.
constexpr std::chrono::milliseconds kShortestTtr{queue::kMinTtr};
constexpr std::chrono::milliseconds kLongestTtr{queue::kMaxTtr};

std::chrono::milliseconds parse_ttr(const std::string& text) {
  const auto ttr = server::parse_duration(text);
  if (ttr < kShortestTtr)
    throw std::invalid_argument(fmt::format("\"{}\": the shortest is 1s", text));
  if (ttr <= kLongestTtr) return ttr;
  throw std::invalid_argument(fmt::format("\"{}\": the longest is 4294967295s (49710 days)", text));
}

struct Request {
  server::Address server;
  std::optional<std::string> body;
  std::string tube{kDefaultTube};
  PutOptions options;
  bool json = false;
};

std::string body_of(const Request& request) {
  if (request.body && *request.body != "-") return *request.body;
  if (::isatty(STDIN_FILENO) == 1) remark("reading the body from the terminal; end it with Ctrl-D");
  return read_standard_input(kLargestBody);
}

std::uint64_t utc_now_ms() {
  using std::chrono::milliseconds;
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::floor<milliseconds>(since_epoch).count());
}

// Prints `text`, the id or its JSON. If that fails, the error names the id, so that the user does
// not put the job again.
void print(const std::string& text, std::uint64_t id) {
  try {
    write_out(text);
  } catch (const Failure& error) {
    throw Failure(fmt::format("job {} was put, but its id was not printed: {}", id, error.what()));
  }
}

int put(const Request& request) {
  const std::string body = body_of(request);
  Client client(Stream::connect(request.server));
  client.use(request.tube);
  const std::uint64_t sent_at = utc_now_ms();
  const std::uint64_t id = client.put(body, request.options);
  if (!request.json) {
    print(std::to_string(id) + "\n", id);
    return kSuccess;
  }
  // No overflow: the server has accepted the delay, so the sum is not after the year 9999.
  const auto delay = static_cast<std::uint64_t>(request.options.delay.count());
  const std::uint64_t due = std::max(sent_at, request.options.due_at.value_or(sent_at + delay));
  print(put_json(id, request.tube, due), id);
  return kSuccess;
}

}  // namespace

void add_put(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "put", kExamples);
  add_value(
      command, "BODY", request->body, [](const std::string& text) { return text; },
      "What the worker gets; - or nothing: read it from\nstandard input")
      .type_name("");
  const Argument delay = add_value(command, "--delay", request->options.delay,
                                   server::parse_duration, "Not before this long from now")
                             .type_name("DURATION");
  add_value(command, "--at", request->options.due_at, server::parse_timestamp,
            "Not before this time, by the server's clock")
      .type_name("TIME")
      .excludes(delay);
  add_value(command, "--pri", request->options.priority, parse_priority,
            "0 (most urgent) to 4294967295; default: 65536")
      .type_name("N");
  add_value(command, "--ttr", request->options.ttr, parse_ttr,
            "How long a worker may hold it; 1s to 49710d,\ndefault: 1m")
      .type_name("DURATION");
  add_tube_option(command, request->tube, "Where to put it (default: default)");
  add_flag(command, "--json", request->json, "Print {\"id\":...,\"tube\":...,\"due\":...}");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = put(*request); });
}

}  // namespace carillon::cli
