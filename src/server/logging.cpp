// The set-up of spdlog (logging.h).
#include "server/logging.h"

#include <fmt/format.h>
#include <spdlog/formatter.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/json_text.h"
#include "server/timestamp.h"

namespace carillon::server {
namespace {

class JsonLines final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& event, spdlog::memory_buf_t& to) override {
    const auto since = event.time.time_since_epoch();
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
    std::string line = "{\"time\":\"" + format_timestamp(static_cast<std::uint64_t>(ms)) + "\",";
    const auto level = spdlog::level::to_string_view(event.level);
    append_json_field(line, "level", {level.data(), level.size()});
    line += ",\"message\":";
    append_json_string(line, to_utf8({event.payload.data(), event.payload.size()}));
    line += "}\n";
    to.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonLines>();
  }
};

// The message of an event (in_one_line()).
class OneLine final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& event, const std::tm&,
              spdlog::memory_buf_t& to) override {
    const std::string line = in_one_line({event.payload.data(), event.payload.size()});
    to.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<OneLine>();
  }
};

}  // namespace

std::string in_one_line(std::string_view text) {
  const std::string utf8 = to_utf8(text);
  std::string line;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    auto byte = static_cast<unsigned char>(utf8[i]);
    // 0xC2 and the next byte are U+0080 to U+00BF, whose first 32 are controls, too.
    const auto next = static_cast<unsigned char>(byte == 0xC2 ? utf8[i + 1] : 0);
    const bool is_late_control = next >= 0x80 && next < 0xA0;
    if (is_late_control) byte = static_cast<unsigned char>(utf8[++i]);
    if (byte < ' ' || byte == 0x7F || is_late_control) {
      fmt::format_to(std::back_inserter(line), "\\x{:02X}", byte);
    } else {
      line += utf8[i];
    }
  }
  return line;
}

void log_to_stderr(spdlog::level::level_enum level, LogFormat format) {
  std::shared_ptr<spdlog::logger> logger;
  if (format == LogFormat::kJson) {
    logger = std::make_shared<spdlog::logger>("carillon",
                                              std::make_shared<spdlog::sinks::stderr_sink_mt>());
    logger->set_formatter(std::make_unique<JsonLines>());
  } else {
    logger = std::make_shared<spdlog::logger>(
        "carillon", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    auto pattern = std::make_unique<spdlog::pattern_formatter>();
    pattern->add_flag<OneLine>('*').set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %*");
    logger->set_formatter(std::move(pattern));
  }
  logger->set_level(level);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace carillon::server
