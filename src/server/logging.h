// The server's log: where it goes and what its lines look like. `carillon serve` and
// `carillon beanstalkd` set it up before they start the server.
#pragma once

#include <spdlog/common.h>

namespace carillon::server {

// Logs one line per event that matters, on stderr:
// "2026-11-21 02:19:51.865 error what happened".
void log_to_stderr(spdlog::level::level_enum level);

}  // namespace carillon::server
