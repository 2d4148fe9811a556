// What `carillon check` examines, and what it finds. Each function adds findings, and changes
// nothing.
//
//   Findings findings;
//   check_data("/var/lib/carillon", signals, findings);
//   findings.warn("clock", "is not synchronised", "start chrony or systemd-timesyncd");
//   write_out(findings.text());        // at most 80 columns
//   return findings.exit_code();       // 0: all well, 1: warnings, 2: something fails
//
// Thread safety: none. Functions that take StopSignals throw Interrupted (wait.h) once a signal
// comes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/server_address.h"
#include "cli/wait.h"

namespace carillon::cli {

enum class Level : std::uint8_t {
  kOk,
  kWarn,  // it works, but worse than it could, or not for ever
  kFail,  // it does not work, or jobs are in danger
};

struct Finding {
  Level level = Level::kOk;
  std::string subject;  // one word: "clock"
  std::string found;
  std::string advice;  // what to do; empty: nothing
};

class Findings {
 public:
  void ok(std::string subject, std::string found);
  void warn(std::string subject, std::string found, std::string advice);
  void fail(std::string subject, std::string found, std::string advice);

  // A line for each finding, wrapped at 80 columns; advice follows on lines of its own.
  std::string text() const;
  // {"result":...,"findings":[{"level":...,"subject":...,"found":...,"advice":...}]} on one line.
  std::string json() const;
  // The worst level, as a number.
  int exit_code() const;

  const std::vector<Finding>& all() const { return findings_; }

 private:
  Level worst() const;

  std::vector<Finding> findings_;
};

// The data directory: who may read and write it, its file system, free space, and how long a
// durable write takes. If the directory is not there yet, the one in which it will be made.
void check_data(const std::string& directory, const StopSignals& signals, Findings& findings);

// Returns true if there is a store in the directory.
bool has_store(const std::string& directory);
// The store in a data directory that no server uses: whether each checksum is right. It takes as
// long as it takes to read all files.
void check_store(const std::string& directory, const StopSignals& signals, Findings& findings);
// Makes the directory `to` with the jobs that are whole, and the file `to`.lost with a line of JSON
// for each other one.
void salvage_store(const std::string& directory, const std::string& to, const StopSignals& signals,
                   Findings& findings);

// Returns the process that uses the data directory, or none.
std::optional<pid_t> user_of(const std::string& directory);

// Returns the wall clock minus the steady one, in nanoseconds.
std::int64_t clock_offset();
// Checks that the clock is synchronised, and was not set since clock_offset() was `before`.
void check_clock(std::int64_t before, Findings& findings);

// Descriptors: of the process `server`, or those that a server started here would have.
void check_descriptors(std::optional<pid_t> server, Findings& findings);
// Memory of the machine or control group, overcommit and swap.
void check_memory(std::optional<pid_t> server, Findings& findings);
// Checks that the system gives the port away to no outgoing connection.
void check_port(const server::Address& address, Findings& findings);

struct RunningServer {
  bool answers = false;
  std::optional<pid_t> pid;  // if it is a process of this machine
};

// The server at this address: whether it answers, version, jobs that need a person. `user` is who
// uses the data directory.
RunningServer check_server(const ServerAddress& address, std::optional<pid_t> user,
                           const StopSignals& signals, Findings& findings);
// The same server over HTTP: how long its syncs take by /metrics, to which its token is shown, if
// there is one. REQUIRES: it runs.
void check_http(const ServerAddress& address, const StopSignals& signals, Findings& findings);

// The files of `carillon serve --tls-cert`, `--tls-key` and `--tokens`: whether the server could
// use them, who else may, and how long the certificate holds. A file that is not named is
// not checked.
struct SecretFiles {
  std::optional<std::string> certificate;
  std::optional<std::string> key;
  std::optional<std::string> tokens;
};
void check_secrets(const SecretFiles& files, Findings& findings);

}  // namespace carillon::cli
