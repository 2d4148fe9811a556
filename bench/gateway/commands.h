// The two subcommands of the program: `gateway serve` and `gateway load`.
#pragma once

#include <CLI/CLI.hpp>

namespace gateway {

// Each adds its subcommand to the app. The subcommand sets exit_code when it has run.
void add_serve(CLI::App& app, int& exit_code);
void add_load(CLI::App& app, int& exit_code);

}  // namespace gateway
