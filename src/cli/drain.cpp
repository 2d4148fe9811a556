// `carillon drain`: lets a tube run empty.

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/wait.h"

namespace carillon::cli {
namespace {

constexpr const char* kExamples =
    R"(From now on the server answers DRAINING to every put into the tube, also after a
restart, until --end. Workers go on, and get what is there. Schedules go on too:
carillon schedule pause stops them. Prints how many jobs are left; with --wait
waits until no job is ready, delayed or reserved. Buried jobs stay.
(To refuse all puts of a server, send it SIGUSR1.)

Examples:
  carillon drain mail
  carillon drain mail --wait              then switch the workers off
  carillon drain mail --end               the tube takes jobs again
  carillon drain new --create             a tube that has no jobs yet)";

constexpr std::chrono::milliseconds kLook{200};
constexpr std::chrono::seconds kTell{2};

struct Request {
  ServerAddress server;
  std::string tube;
  bool wait = false;
  bool end = false;
  bool create = false;
  bool json = false;
};

struct Left {
  std::uint64_t ready = 0;
  std::uint64_t delayed = 0;
  std::uint64_t reserved = 0;
  std::uint64_t buried = 0;

  explicit Left(const StatsFields& stats)
      : ready(stats.number("current-jobs-ready")),
        delayed(stats.number("current-jobs-delayed")),
        reserved(stats.number("current-jobs-reserved")),
        buried(stats.number("current-jobs-buried")) {}

  bool none() const { return ready + delayed + reserved == 0; }
  std::string text() const {
    return fmt::format("{} ready, {} delayed, {} reserved, {} buried", ready, delayed, reserved,
                       buried);
  }
};

Left what_is_left(Client& client, const std::string& tube) {
  if (const auto stats = client.stats_tube(tube)) return Left(*stats);
  throw Failure(fmt::format("tube {} is gone: somebody has set it anew", tube));
}

void print(const Request& request, const Left& left) {
  if (!request.json) return write_out(fmt::format("tube {}: {}\n", request.tube, left.text()));
  write_out(
      fmt::format("{{\"tube\":\"{}\",\"puts\":\"refused\",\"ready\":{},\"delayed\":{},"
                  "\"reserved\":{},\"buried\":{}}}\n",
                  request.tube, left.ready, left.delayed, left.reserved, left.buried));
}

Left wait_until_empty(const Request& request, Client& client) {
  auto tell_at = std::chrono::steady_clock::now() + kTell;
  std::string told;
  while (true) {
    const Left left = what_is_left(client, request.tube);
    if (left.none()) return left;
    if (std::chrono::steady_clock::now() >= tell_at) {
      if (left.text() != told) {
        told = left.text();
        remark(fmt::format("carillon drain: tube {}: {}", request.tube, told));
      }
      tell_at += kTell;
    }
    wait_for(-1, 0, kLook);
  }
}

int drain(const Request& request) {
  Client client(Stream::connect(request.server));
  // A name that was mistyped would refuse puts for good, and the tube that was meant would not; and
  // with --end the other way round. A tube that refuses puts exists.
  if (!request.create && !client.stats_tube(request.tube)) {
    throw Failure(
        fmt::format("tube {} does not exist: it has no jobs, and nobody uses or watches "
                    "it{}",
                    request.tube, request.end ? "" : "; to drain it all the same: --create"));
  }
  if (request.end) {
    client.set_tube(request.tube, "puts=taken");
    write_out(request.json ? fmt::format("{{\"tube\":\"{}\",\"puts\":\"taken\"}}\n", request.tube)
                           : fmt::format("tube {} takes jobs again\n", request.tube));
    return kSuccess;
  }
  client.set_tube(request.tube, "puts=refused");
  print(request,
        request.wait ? wait_until_empty(request, client) : what_is_left(client, request.tube));
  return kSuccess;
}

}  // namespace

void add_drain(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "drain", kExamples);
  add_value(command, "TUBE", request->tube, parse_tube, "The tube").type_name("").required();
  const Argument wait =
      add_flag(command, "--wait", request->wait, "Wait until it is empty; tell how far it is");
  const Argument end =
      add_flag(command, "--end", request->end, "Let the tube take jobs again").excludes(wait);
  add_flag(command, "--create", request->create, "Also if there is no such tube yet").excludes(end);
  add_flag(command, "--json", request->json, "Print {\"tube\":...,\"puts\":...,\"ready\":...}");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = drain(*request); });
}

}  // namespace carillon::cli
