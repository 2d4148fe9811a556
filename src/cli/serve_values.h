// The values of the options of `carillon serve`, from their texts.
//
//   parse_sync("50ms");        // SyncPolicy::every(50 ms)
//   parse_memory("64M");       // throws: the least is 128M
//
// All throw std::invalid_argument for a wrong value: its message says what is allowed
// (arguments.h). A size is a number of bytes, alone or in units of 1024 (k), 1024^2 (M) or
// 1024^3 (G).
#pragma once

#include <spdlog/common.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/logging.h"
#include "server/server.h"
#include "server/text/address.h"

namespace carillon::cli {

// always, os, or a duration from 1ms to 24h.
queue::SyncPolicy parse_sync(std::string_view text);

// A size up to server::kLargestMaxJobSize.
std::uint32_t parse_job_size(std::string_view text);
// A size up to 2^50 bytes.
std::uint64_t parse_disk_size(std::string_view text);
// The same, from server::kLeastMemory on.
std::uint64_t parse_memory(std::string_view text);

// Any text but an empty one.
std::string parse_directory(std::string_view text);
std::string parse_file(std::string_view text);

// An address, or none: "none".
std::optional<server::Address> parse_http(const std::string& text);
// Letters, digits, - and . alone.
std::string parse_host_name(std::string_view text);

// A duration, up to the time from 1970 to the last due time.
queue::Millis parse_load_ahead(std::string_view text);

// Octal digits, 0 to 777.
mode_t parse_socket_mode(std::string_view text);
// The name or the number of a group of this machine.
server::SocketGroup parse_socket_group(const std::string& text);

// 1 to 1 000 000.
std::size_t parse_max_connections(std::string_view text);
// 0 (never), or a duration from 1s to 365d.
std::chrono::milliseconds parse_timeout(std::string_view text);

// debug, info, warn, error or off.
spdlog::level::level_enum parse_log_level(std::string_view text);
// text or json.
server::LogFormat parse_log_format(std::string_view text);

}  // namespace carillon::cli
