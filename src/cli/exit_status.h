// How a command ends: the exit codes of `carillon`, the two exceptions that end a command with one
// line for the user, and texts for such a line that several commands need.
//
//   throw UsageError("--pri \"x\": not a number from 0 to 4294967295");       // exit code 2
//   throw Failure(fmt::format("cannot read {}: {}", path, error_text(errno)));  // exit code 1
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace carillon::cli {

inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 1;  // the arguments were right; the command failed
inline constexpr int kUsage = 2;    // the arguments were wrong; nothing was done

// Ends the command with kUsage. The text names the wrong argument, its value and what is allowed.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Ends the command with kFailure. The text says what happened, to what, and, if known, what to do
// about it.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns what ends a command that has named a tube or a job that is not there. `advice` follows.
inline Failure no_such_tube(std::string_view tube, std::string_view advice = "") {
  std::string text = "tube ";
  text.append(tube).append(" does not exist: it has no jobs and no settings, and nobody uses or");
  return Failure(text.append(" watches it").append(advice));
}
inline Failure no_such_job(std::uint64_t id) {
  return Failure("job " + std::to_string(id) + " does not exist");
}

// Returns the text with its first letter in lower case, unless the second is upper case or no
// letter: "Killed" becomes "killed", "I/O error" stays.
inline std::string lower_first(std::string text) {
  const bool capitalized =
      text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'a' && text[1] <= 'z';
  if (capitalized) text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

// Returns the text of an errno value, in a form that fits into a sentence: "connection refused".
inline std::string error_text(int error) {
  return lower_first(std::system_category().message(error));
}

}  // namespace carillon::cli
