// The description of the machine that a file of results contains, and quoting for JSON.
#pragma once

#include <sys/utsname.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>

namespace carillon::bench {

// Returns `text` as a JSON string. REQUIRES: no control characters.
inline std::string quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

inline std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name"))
      return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "unknown";
}

// Returns a JSON object: the processor, the kernel, the compiler, and the date in UTC.
inline std::string machine() {
#ifdef __clang__
  const char* const compiler = "clang++ " __clang_version__;
#else
  const char* const compiler = "g++ " __VERSION__;
#endif
  utsname kernel{};
  uname(&kernel);
  const std::time_t now = std::time(nullptr);
  char today[16];
  std::strftime(today, sizeof today, "%Y-%m-%d", std::gmtime(&now));
  return "{\"cpu\": " + quoted(cpu_name()) +
         ", \"kernel\": " + quoted(std::string(kernel.sysname) + " " + kernel.release) +
         ", \"compiler\": " + quoted(compiler) + ", \"date\": " + quoted(today) + "}";
}

}  // namespace carillon::bench
