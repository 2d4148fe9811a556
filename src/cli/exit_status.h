// How a command ends: the exit codes of `carillon`, the two exceptions that end a command with one
// line for the user, and the texts of system errors for such a line.
//
//   throw UsageError("--pri \"x\": not a number from 0 to 4294967295");       // exit code 2
//   throw Failure(fmt::format("cannot read {}: {}", path, error_text(errno)));  // exit code 1
#pragma once

#include <stdexcept>
#include <string>

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

// Returns the text of an errno value, in a form that fits into a sentence: "connection refused".
std::string error_text(int error);

// Returns the text with its first letter in lower case, unless the second is upper case or no
// letter: "Killed" becomes "killed", "I/O error" stays.
std::string lower_first(std::string text);

}  // namespace carillon::cli
