// The layout of `carillon COMMAND --help`: CLI11's own, without the lists of options that exclude
// each other.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace carillon::cli {

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(24); }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, name);
    // CLI11 does not know that a command follows the options.
    if (app->get_prefix_command())
      usage.insert(usage.find_last_not_of('\n') + 1, " -- CMD [ARGS]...");
    return usage;
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0 || option->get_type_name().empty()) return "";
    const std::string& value = option->get_default_str();
    return " " + option->get_type_name() + (value.empty() ? "" : "=" + value);
  }
};

}  // namespace carillon::cli
