// `carillon delete`: deletes jobs by their ids.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace carillon::cli {
namespace {

constexpr const char* kExamples =
    R"(Works on ready, delayed and buried jobs. One that a worker holds is not deleted.
The exit code is 1 if any of them could not be deleted; the others are.

Examples:
  carillon delete 7
  carillon delete 7 8 9
  id=$(carillon put --delay 1h "reminder") && carillon delete "$id")";

struct Request {
  ServerAddress server;
  std::vector<std::uint64_t> ids;
};

int delete_jobs(const Request& request) {
  Client client(Stream::connect(request.server));
  int exit_code = kSuccess;
  constexpr std::size_t kAtOnce = 1'000;
  std::vector<std::uint64_t> left = request.ids;
  while (!left.empty()) {
    const auto end = left.begin() + static_cast<std::ptrdiff_t>(std::min(kAtOnce, left.size()));
    const std::vector<std::uint64_t> ids(left.begin(), end);
    const std::vector<bool> deleted = client.delete_jobs(ids);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (deleted[i]) {
        write_out(fmt::format("deleted {}\n", ids[i]));
      } else {
        remark(fmt::format("carillon delete: job {} does not exist, or a worker holds it", ids[i]));
        exit_code = kFailure;
      }
    }
    left.erase(left.begin(), end);
  }
  return exit_code;
}

}  // namespace

void add_delete(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "delete", kExamples);
  add_value(command, "ID", request->ids, parse_job_id, "The jobs to delete")
      .type_name("")
      .required();
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = delete_jobs(*request); });
}

}  // namespace carillon::cli
