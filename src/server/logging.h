// The server's log: where it goes and what its lines look like. `carillon serve` and
// `carillon beanstalkd` set it up before they start the server.
#pragma once

#include <spdlog/common.h>

#include <cstdint>

namespace carillon::server {

// "2026-11-21 02:19:51.865 error what happened", or for programs
// {"time":"2026-11-21T02:19:51.865Z","level":"error","message":"what happened"}. Names that clients
// choose can neither forge a line nor control the terminal that shows it (visible_text.h).
enum class LogFormat : std::uint8_t { kText, kJson };

// Logs one line per event that matters, on stderr.
void log_to_stderr(spdlog::level::level_enum level, LogFormat format = LogFormat::kText);

}  // namespace carillon::server
