// Options from the table of fields (settings.h).
#include "cli/settings.h"

#include "cli/arguments.h"

namespace carillon::cli {

void add_settings(CLI::App& command, Asked& asked, FileObject of,
                  std::span<const Setting> settings) {
  for (const Setting& setting : settings) {
    const std::string name = option_named(setting.field);
    const auto set = [&asked, name, of, field = setting.field](const std::string& text) {
      const auto parse = [&](const std::string& from) { return api_field(of, field, from); };
      for (auto& [pointer, value] : parse_argument(name, parse, text))
        asked.set(pointer, std::move(value), name);
    };
    add_text(command, name + " " + setting.type, set, setting.help);
  }
}

void add_retry_settings(CLI::App& command, Asked& asked, FileObject of) {
  constexpr Setting kRetry[] = {
      {"max_attempts", "N", "A job is dead after N failed attempts (0: never)"},
      {"backoff", "DURATION", "How long a failed job waits: 30s, or 1s..1h, which doubles"},
      {"jitter", "PERCENT", "Up to this part is added to that: 20%"},
      {"lost", "HOW", "A lost connection of a worker: fails or returns (returns)"}};
  add_settings(command, asked, of, kRetry);
}

}  // namespace carillon::cli
