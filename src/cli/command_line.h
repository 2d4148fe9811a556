// The whole of `carillon` as a function: picks the subcommand, parses its arguments, runs it,
// reports what went wrong.
#pragma once

namespace carillon::cli {

/// Returns the exit code of the process (exit_status.h). Every error is one line on standard error
/// that starts with the command's name; nothing is thrown.
int run(int argc, char** argv);

}  // namespace carillon::cli
