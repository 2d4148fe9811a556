// The two halves of the program: `gateway serve` and `gateway load`.
#pragma once

#include <CLI/CLI.hpp>

namespace gateway {

// Each adds its subcommand to the app; once run, it has set exit_code.
void add_serve(CLI::App& app, int& exit_code);
void add_load(CLI::App& app, int& exit_code);

}  // namespace gateway
