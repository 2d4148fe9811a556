// `carillon cancel`: deletes jobs that nobody works on.

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "server/beanstalk/command.h"

namespace carillon::cli {
namespace {

constexpr const char* kExamples =
    R"(Works on ready, delayed and buried jobs. One that a worker holds is left alone;
with --ask it is deleted when its worker is done with it, whatever comes of it.
The exit code is 1 if any of them is left; the others are cancelled.

Examples:
  carillon cancel 7 8
  carillon cancel --key invoice-7 --tube mail
  carillon cancel --ask 7)";

struct Request {
  server::Address server;
  std::vector<std::uint64_t> ids;
  std::string key;
  std::string tube{kDefaultTube};
  bool ask = false;
};

std::string parse_key(const std::string& text) {
  if (server::beanstalk::is_key(text)) return text;
  throw std::invalid_argument(
      fmt::format("\"{}\": a key has 1 to 200 bytes, and no space or control character", text));
}

// Cancels one job, and says what came of it. Returns false if it is left.
bool cancel(Client& client, const std::string& job, const std::string& name, bool ask) {
  switch (client.cancel(job, ask)) {
    case CancelAnswer::kCancelled:
      write_out(fmt::format("cancelled {}\n", name));
      return true;
    case CancelAnswer::kAsked:
      write_out(fmt::format("asked for {}\n", name));
      return true;
    case CancelAnswer::kReserved:
      remark(fmt::format("carillon cancel: a worker holds {}; see --ask", name));
      return false;
    case CancelAnswer::kNone:
      remark(fmt::format("carillon cancel: there is no {}", name));
      return false;
  }
  return false;
}

int cancel(const Request& request) {
  if (request.ids.empty() == request.key.empty())
    throw UsageError("give the jobs' IDs, or the --key of one");
  Client client(Stream::connect(request.server));
  client.use(request.tube);
  bool all = true;
  for (const std::uint64_t id : request.ids)
    all = cancel(client, std::to_string(id), fmt::format("job {}", id), request.ask) && all;
  if (!request.key.empty()) {
    const std::string name = fmt::format("job with key {} in tube {}", request.key, request.tube);
    all = cancel(client, "key=" + request.key, name, request.ask);
  }
  return all ? kSuccess : kFailure;
}

}  // namespace

void add_cancel(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "cancel", kExamples);
  const Argument ids =
      add_value(command, "ID", request->ids, parse_job_id, "The jobs to cancel").type_name("");
  add_value(command, "--key", request->key, parse_key, "The job with this key")
      .type_name("KEY")
      .excludes(ids);
  add_tube_option(command, request->tube, "Of this tube (default: default)").excludes(ids);
  add_flag(command, "--ask", request->ask, "Of a job that a worker holds: when it is done");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = cancel(*request); });
}

}  // namespace carillon::cli
