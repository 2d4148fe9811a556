// The set-up of spdlog (logging.h).
#include "server/logging.h"

#include <spdlog/formatter.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/text/json_text.h"
#include "server/text/timestamp.h"
#include "server/text/visible_text.h"

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
    line = visible(line, kLineFormat);  // the same JSON
    to.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonLines>();
  }
};

// The message of an event: it stays on one line, and cannot control a terminal.
class OneLine final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& event, const std::tm&,
              spdlog::memory_buf_t& to) override {
    const std::string line = visible({event.payload.data(), event.payload.size()});
    to.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<OneLine>();
  }
};

}  // namespace

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
