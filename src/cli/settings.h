// Options that set limits, retries and other fields of the API: fields that have another name on a
// command line, or whose value people write in a shorter form.
//
//   constexpr Setting kSettings[] = {
//       {"--rate", "/limits/rate", "N/TIME", "Jobs that go out per time: 100/1m", parse_rate}};
//   add_settings(command, asked, kSettings);
//   ... parse ...              // --rate 100/1m is {"limits":{"rate":{"jobs":100,"per":"1m"}}}
//
// The server checks the values; these functions only split them.
#pragma once

#include <boost/json/value.hpp>
#include <span>
#include <string>

#include "cli/asked.h"

namespace carillon::cli {

// These throw std::invalid_argument (arguments.h).
boost::json::value parse_text(const std::string& text);
// A number from 0.
boost::json::value parse_count(const std::string& text);
// The same; 0 is null, which ends a limit.
boost::json::value parse_limit(const std::string& text);
// "100/1m" is {"jobs":100,"per":"1m"}; "0" is null.
boost::json::value parse_rate(const std::string& text);
// A duration; 0 is null.
boost::json::value parse_retention(const std::string& text);
// "10s" is the same each time, "10s..1h" doubles.
boost::json::value parse_backoff(const std::string& text);
// "20%" is 20.
boost::json::value parse_jitter(const std::string& text);
// "fails" is true, "returns" is false.
boost::json::value parse_lost(const std::string& text);

struct Setting {
  const char* option;   // "--max-running"
  const char* pointer;  // "/limits/max_running"
  const char* type;     // "N"
  const char* help;
  boost::json::value (*parse)(const std::string& text) = parse_text;
};

// Adds the options. `asked` must outlive the command.
void add_settings(CLI::App& command, Asked& asked, std::span<const Setting> settings);

// Adds --max-attempts, --backoff, --jitter and --lost, for the policy that stands at this pointer.
void add_retry_settings(CLI::App& command, Asked& asked, const std::string& at);

}  // namespace carillon::cli
