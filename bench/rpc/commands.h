// The two subcommands of the program: `rpc serve` and `rpc load`.
#pragma once

#include <CLI/CLI.hpp>

namespace rpc {

// Each adds its subcommand to the app. The subcommand sets exit_code when it has run.
void add_serve(CLI::App& app, int& exit_code);
void add_load(CLI::App& app, int& exit_code);

}  // namespace rpc
