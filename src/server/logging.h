// Where the server's log goes and what its lines look like.
#pragma once

#include <spdlog/common.h>

namespace carillon::server {

// One line per event that matters, on stderr: "2026-11-21 02:19:51.865 error what happened".
void log_to_stderr(spdlog::level::level_enum level);

}  // namespace carillon::server
