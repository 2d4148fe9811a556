// The set-up of spdlog (logging.h).
#include "server/logging.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace carillon::server {

void log_to_stderr(spdlog::level::level_enum level) {
  auto logger = std::make_shared<spdlog::logger>(
      "carillon", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  logger->set_level(level);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace carillon::server
