// The whole program as a function: picks the subcommand, parses its arguments, runs it and reports
// errors.
#pragma once

namespace carillon::cli {

// Returns the exit code of the process (exit_status.h). Reports each error as one line on standard
// error that starts with the command's name. Throws nothing.
int run_command_line(int argc, char** argv);

}  // namespace carillon::cli
