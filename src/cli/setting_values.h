// Values of options as the fields of the API have them, for limits and retries:
//
//   parse_rate("100/1m")        {"jobs":100,"per":"1m"}; "0" is null, which ends a limit
//   parse_backoff("1s..1h")     {"type":"exponential","initial":"1s","max":"1h"}
//   parse_jitter("20%")         20
//   parse_lost("fails")         true
//
// The server checks the parts. All throw std::invalid_argument (arguments.h).
#pragma once

#include <boost/json/value.hpp>
#include <string>

namespace carillon::cli {

boost::json::value parse_rate(const std::string& text);
// A number from 0; 0 is null.
boost::json::value parse_limit(const std::string& text);
// A number from 0.
boost::json::value parse_count(const std::string& text);
// A duration; 0 is null.
boost::json::value parse_retention(const std::string& text);
boost::json::value parse_backoff(const std::string& text);
boost::json::value parse_jitter(const std::string& text);
boost::json::value parse_lost(const std::string& text);
// The name of a group.
std::string parse_group(const std::string& text);

}  // namespace carillon::cli
