// `carillon backup`: copies the jobs of a running server into a new data directory.

#include <fmt/format.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>

#include "carillon/queue/store.h"
#include "carillon/queue/store_check.h"
#include "cli/api.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/directory_copy.h"
#include "cli/exit_status.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/wait.h"
#include "server/api/status.h"
#include "server/text/duration.h"

namespace carillon::cli {
namespace {

constexpr const char* kBackupExamples =
    R"(The server goes on meanwhile. The backup has every job that was acknowledged
before the command began, and is a data directory of its own. To restore it:
  carillon serve --data DIR

Run it on the server's machine, as the server's user: it copies the files of the
data directory. It needs as much room as the jobs take. DIR must not exist; it
appears when the backup is whole and on the disk, and every checksum in it was
verified. Until then it is DIR.partial. If the server's files are damaged, the
command fails, and the copy is DIR.damaged.

Examples:
  carillon backup /backups/$(date +%F)
  carillon backup /backups/monday --json | jq .bytes
  carillon serve --data /backups/monday --listen 127.0.0.1:11301
      serves a backup beside the running server)";

struct BackupRequest {
  ServerAddress server;
  std::string directory;
  bool json = false;
};

// The checkpoint may be gone if the server has ended: it is removed with the connection, or by the
// next start. A copy counts only if the connection has lasted to its end.
void copy_checkpoint(Api& api, const std::string& path, DirectoryCopy& copy,
                     const StopSignals& signals, ProgressLine& line) {
  line.begin("");
  try {
    copy.begin(path);
    copy.run([&](std::uint64_t done) {
      if (signals.came()) throw Interrupted();
      line.show(done, copy.bytes());
    });
  } catch (const Failure&) {
    api.confirm_connection();
    throw;
  }
  api.confirm_connection();
}

void check_access(Api& api, const std::string& path) {
  if (::access(path.c_str(), R_OK | X_OK) == 0) return;
  const int error = errno;
  api.confirm_connection();
  const std::string_view advice = error == ENOENT   ? "; run the command on the server's machine"
                                  : error == EACCES ? "; run the command as the server's user"
                                                    : "";
  throw Failure(fmt::format("cannot read {}: {}{}", path, error_text(error), advice));
}

// Reads the copy again, from the disk, and verifies each checksum.
void verify(DirectoryCopy& copy, const StopSignals& signals, ProgressLine& line) {
  line.begin("verified: ");
  queue::StoreReport report;
  try {
    report = queue::check_store(copy.partial(), line.until(signals), copy.partial() + "/check");
  } catch (const queue::StoreError& why) {
    if (signals.came()) throw Interrupted();
    throw Failure(fmt::format("the copy cannot be verified: {}", why.what()));
  }
  if (report.damages.empty()) return;
  line.clear();
  const std::string name = copy.name() + ".damaged";
  const std::string kept =
      copy.finish_as_damaged()
          ? fmt::format(
                "The copy is {}: carillon check --data {} --salvage NEW saves what is whole", name,
                name)
          : fmt::format("{} exists already, so this copy is not kept", name);
  throw Failure(
      fmt::format("the server's files are damaged: {}. {}", report.damages.front(), kept));
}

int backup(const BackupRequest& request) {
  const auto began = std::chrono::steady_clock::now();
  const StopSignals signals;  // also while the copy is removed
  DirectoryCopy copy(request.directory);
  std::uint64_t number = 0;
  try {
    ProgressLine line;
    Api api(request.server, signals.fd());
    line.show("the server makes a checkpoint");
    // The server writes to its disk, which may be slow, all that it has in memory.
    api.set_patience(std::chrono::minutes(10));
    const auto checkpoint =
        api.call<server::Checkpoint>("createCheckpoint", server::AskedNothing());
    number = checkpoint.number;
    check_access(api, checkpoint.path);
    copy_checkpoint(api, checkpoint.path, copy, signals, line);
    verify(copy, signals, line);
    copy.finish();
  } catch (const Interrupted&) {
    throw Failure("interrupted; nothing is left of the backup");
  }
  const auto took = time_since(began);
  write_result(request.json,
               {{"directory", copy.name()},
                {"files", copy.files()},
                {"bytes", copy.bytes()},
                {"number", number},
                {"milliseconds", took.count()}},
               fmt::format("{}: {} in {}, all jobs up to change {}, in {}", copy.name(),
                           size_text(copy.bytes()), counted(copy.files(), "file"), number,
                           server::short_duration(took)));
  return kSuccess;
}

}  // namespace

void add_backup(CLI::App& command, int& exit_code) {
  BackupRequest& request = set_action(command, exit_code, kBackupExamples, backup);
  add_value(command, "DIR", request.directory, parse_directory, "The backup's name").required();
  add_json_and_server(command, request, R"(Print {"directory":...,"files":...,"bytes":...,
"number":...,"milliseconds":...})");
}

}  // namespace carillon::cli
