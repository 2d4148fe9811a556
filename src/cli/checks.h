// What `carillon check` looks at. Each function adds findings and changes nothing.
//
// Thread safety: none. Those that take StopSignals throw Interrupted (wait.h) once a signal comes.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "cli/findings.h"
#include "cli/server_address.h"
#include "cli/stop_signals.h"

namespace carillon::cli {

// The data directory: who may read and write it, its file system, free space, and how long a
// durable write takes. If the directory is not there yet, the one in which it will be made.
void check_data(const std::string& directory, const StopSignals& signals, Findings& findings);

// Whether there is a store in the directory.
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

// How far the wall clock is ahead of the steady one, in nanoseconds.
std::int64_t clock_offset();
// Whether the clock is synchronised, and whether it has been set since clock_offset() was `before`.
void check_clock(std::int64_t before, Findings& findings);

// Descriptors: of the process `server`, or those that a server started here would have.
void check_descriptors(std::optional<pid_t> server, Findings& findings);
// Memory of the machine or control group, overcommit and swap.
void check_memory(std::optional<pid_t> server, Findings& findings);
// Whether the system may give the port away to an outgoing connection.
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
// use them, who else may, and how long the certificate holds. None: they are not looked at.
struct SecretFiles {
  std::optional<std::string> certificate;
  std::optional<std::string> key;
  std::optional<std::string> tokens;
};
void check_secrets(const SecretFiles& files, Findings& findings);

}  // namespace carillon::cli
