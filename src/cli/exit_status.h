// How a command ends: the exit codes of `carillon`, and the two exceptions that carry one line for
// the user.
#pragma once

#include <stdexcept>

namespace carillon::cli {

inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 1;  // the arguments were fine; what they asked for did not happen
inline constexpr int kUsage = 2;    // the arguments were not understood; nothing was done

/// Ends the command with kUsage. The text says which argument was wrong, with which value, and what
/// is allowed.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Ends the command with kFailure. The text says what happened, to what, and what to do about it if
/// that is known.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace carillon::cli
