// The two halves of the program: `rpc serve` and `rpc load`.
#pragma once

#include <CLI/CLI.hpp>

namespace rpc {

// Each adds its subcommand to the app; once run, it has set exit_code.
void add_serve(CLI::App& app, int& exit_code);
void add_load(CLI::App& app, int& exit_code);

}  // namespace rpc
