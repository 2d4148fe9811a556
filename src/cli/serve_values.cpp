// The values of the options of `carillon serve` (serve_values.h).
#include "cli/serve_values.h"

#include <fmt/format.h>
#include <grp.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "cli/arguments.h"
#include "server/net/memory_shares.h"
#include "server/text/duration.h"

namespace carillon::cli {
namespace {

// Returns a number of bytes, at most `most`. The text is a number, alone or in units of 1024 (k),
// 1024^2 (M) or 1024^3 (G).
std::uint64_t parse_size(std::string_view text, std::uint64_t most) {
  constexpr std::string_view kUnits = "kMG";
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const std::size_t unit = end - rest == 1 ? kUnits.find(*rest) : std::string_view::npos;
  const bool has_form = error == std::errc() && (rest == end || unit != std::string_view::npos);
  const unsigned shift =
      unit == std::string_view::npos ? 0 : 10 * (static_cast<unsigned>(unit) + 1);
  if (!has_form || number > (most >> shift)) {
    throw std::invalid_argument(
        fmt::format("\"{}\": not a size from 0 to {}; use e.g. 65535, 64k, 10M, 1G", text, most));
  }
  return number << shift;
}

}  // namespace

queue::SyncPolicy parse_sync(std::string_view text) {
  if (text == "always") return queue::SyncPolicy::always();
  if (text == "os") return queue::SyncPolicy::os();
  constexpr std::chrono::hours kLongest{24};
  try {
    const auto interval = server::parse_duration(text);
    if (interval.count() > 0 && interval <= kLongest) return queue::SyncPolicy::every(interval);
  } catch (const std::invalid_argument&) {
  }
  throw std::invalid_argument(
      fmt::format("\"{}\": write always, os, or a duration from 1ms to 24h", text));
}

std::uint32_t parse_job_size(std::string_view text) {
  return static_cast<std::uint32_t>(parse_size(text, server::kLargestMaxJobSize));
}

std::uint64_t parse_disk_size(std::string_view text) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
  return parse_size(text, kMost);
}

std::uint64_t parse_memory(std::string_view text) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
  const std::uint64_t bytes = parse_size(text, kMost);
  if (bytes >= server::kLeastMemory) return bytes;
  throw std::invalid_argument(fmt::format("\"{}\": the least is 128M", text));
}

std::string parse_directory(std::string_view text) {
  if (text.empty()) throw std::invalid_argument("\"\": not a directory's name");
  return std::string(text);
}

std::string parse_file(std::string_view text) {
  if (text.empty()) throw std::invalid_argument("\"\": not the name of a file");
  return std::string(text);
}

std::optional<server::Address> parse_http(const std::string& text) {
  if (text == "none") return std::nullopt;
  return server::parse_address(text, server::kHttpPort);
}

std::string parse_host_name(std::string_view text) {
  constexpr std::string_view kBytes =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
  if (!text.empty() && text.find_first_not_of(kBytes) == std::string_view::npos)
    return std::string(text);
  throw std::invalid_argument(fmt::format("\"{}\": not the name of a host", text));
}

queue::Millis parse_load_ahead(std::string_view text) {
  // The time from 1970 to the last due time, in whole days: from now, no job is due later than
  // that.
  constexpr std::chrono::days kLongest{2'932'896};
  static_assert(kLongest <= std::chrono::milliseconds(queue::kLastDue));
  const std::chrono::milliseconds load_ahead = server::parse_duration(text);
  if (load_ahead <= kLongest) return static_cast<queue::Millis>(load_ahead.count());
  throw std::invalid_argument(fmt::format("\"{}\": the longest is {}d", text, kLongest.count()));
}

mode_t parse_socket_mode(std::string_view text) {
  unsigned mode = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, mode, 8);
  if (error == std::errc() && rest == end && mode <= 0777) return mode;
  throw std::invalid_argument(fmt::format(
      "\"{}\": not a mode from 0 to 777, in octal digits; use e.g. 600, 660, 666", text));
}

server::SocketGroup parse_socket_group(const std::string& text) {
  if (const group* found = ::getgrnam(text.c_str())) return {.name = text, .id = found->gr_gid};
  gid_t id = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, id);
  // chown() takes the largest number for "leave it".
  if (error == std::errc() && rest == end && id != static_cast<gid_t>(-1))
    return {.name = text, .id = id};
  throw std::invalid_argument(fmt::format("\"{}\": this machine has no such group", text));
}

std::size_t parse_max_connections(std::string_view text) {
  return parse_number(text, 1, 1'000'000);
}

std::chrono::milliseconds parse_timeout(std::string_view text) {
  constexpr std::chrono::seconds kShortest{1};
  const std::chrono::milliseconds timeout = server::parse_duration(text);
  if (timeout.count() == 0 || (timeout >= kShortest && timeout <= server::kLongestTimeout))
    return timeout;
  throw std::invalid_argument(
      fmt::format("\"{}\": write 0 (never), or a duration from 1s to 365d", text));
}

spdlog::level::level_enum parse_log_level(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, spdlog::level::level_enum>, 5> kLevels = {
      {{"debug", spdlog::level::debug},
       {"info", spdlog::level::info},
       {"warn", spdlog::level::warn},
       {"error", spdlog::level::err},
       {"off", spdlog::level::off}}};
  const auto found = std::find_if(kLevels.begin(), kLevels.end(),
                                  [&](const auto& level) { return level.first == text; });
  if (found == kLevels.end()) {
    throw std::invalid_argument(
        fmt::format("\"{}\": write one of debug, info, warn, error, off", text));
  }
  return found->second;
}

server::LogFormat parse_log_format(std::string_view text) {
  if (text == "text") return server::LogFormat::kText;
  if (text == "json") return server::LogFormat::kJson;
  throw std::invalid_argument(fmt::format("\"{}\": write text or json", text));
}

}  // namespace carillon::cli
