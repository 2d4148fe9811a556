// The exit codes of `carillon`, and the two exceptions that end a command with one line for the
// user.
#pragma once

#include <stdexcept>

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

}  // namespace carillon::cli
