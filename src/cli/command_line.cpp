// Dispatches to the subcommands, and writes CLI11's errors in this program's words.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_status.h"
#include "cli/output.h"

namespace carillon::cli {
namespace {

constexpr std::string_view kBeanstalkd = "beanstalkd";

// Returns the text in lines that fit beside an option's name.
std::string wrapped(std::string_view text) {
  constexpr std::size_t kWidth = 53;  // columns
  std::string lines;
  std::size_t used = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find_first_of(" \n"));
    const bool ends = word.size() < text.size() && text[word.size()] == '\n';
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const bool fits = used + word.size() <= kWidth;
    if (used > 0) lines += fits ? " " : "\n";
    used = (fits ? used : 0) + word.size() + 1;
    lines += word;
    if (ends) lines += '\n';
    if (ends) used = 0;
  }
  return lines;
}

// The layout of `carillon COMMAND --help`: CLI11's own, without the lists of options that exclude
// each other.
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

  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(CLI::Formatter::make_option_desc(option));
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0 || option->get_type_name().empty()) return "";
    const std::string& value = option->get_default_str();
    return " " + option->get_type_name() + (value.empty() ? "" : "=" + value);
  }
};

std::string overview() {
  std::string text =
      "carillon: a durable delayed-job server, and the commands to talk to it.\n"
      "\n"
      "Usage: carillon COMMAND [OPTIONS]\n"
      "\n"
      "Commands:\n";
  for (const Command& command : kCommands) {
    text += fmt::format("  {:<12}{}\n  {:<12}  {}\n", command.name, command.summary, "",
                        command.example);
  }
  text +=
      "\n"
      "Try it: start `carillon serve` in one terminal, and in another\n"
      "  carillon put --delay 3s \"hello\"      prints the job's id\n"
      "  carillon reserve --delete            prints hello, 3 s after the put\n"
      "\n"
      "`carillon COMMAND --help` explains a command by examples.\n"
      "`carillon completion SHELL`: what bash, zsh or fish need to complete commands.\n"
      "`carillon --version` prints the version.\n";
  return text;
}

int fail(std::string_view who, std::string_view why, int exit_code) {
  remark(fmt::format("{}: {}", who, why));
  return exit_code;
}

bool looks_like_option(std::string_view word) {
  return word.size() > 1 && word.starts_with('-') && word != "--";
}

std::string unexpected(const std::string& word, const CLI::App& command) {
  return fmt::format("{} \"{}\"; see carillon {} --help",
                     looks_like_option(word) ? "there is no option" : "unexpected argument", word,
                     command.get_name());
}

// Each describe() returns the text for one kind of CLI11's errors.
std::string describe(const CLI::ExtrasError&, const CLI::App& command) {
  const std::vector<std::string> rest = command.remaining();
  const auto word =
      std::find_if(rest.begin(), rest.end(), [](const std::string& one) { return one != "--"; });
  return unexpected(word == rest.end() ? "--" : *word, command);
}

std::string lacking(const std::string& name, const CLI::Option& option) {
  return fmt::format("{0} lacks its value: write {0} {1}", name, option.get_type_name());
}

std::string describe(const CLI::ArgumentMismatch& error, const CLI::App& command) {
  const std::string_view what = error.what();
  const std::string name(what.substr(0, what.find(':')));
  const CLI::Option* option = command.get_option_no_throw(name);
  if (option == nullptr) return std::string(what);
  if (what.ends_with(" missing")) return lacking(name, *option);
  return fmt::format("{} was given {} times; once is enough", name, option->count());
}

std::string describe(const CLI::ExcludesError& error, const CLI::App&) {
  constexpr std::string_view kBetween = " excludes ";
  const std::string_view what = error.what();
  const std::size_t between = what.find(kBetween);
  if (between == std::string_view::npos) return std::string(what);
  return fmt::format("give {} or {}, not both", what.substr(0, between),
                     what.substr(between + kBetween.size()));
}

// CLI11 itself converts only flags; the functions of arguments.h parse all other values.
std::string describe(const CLI::ConversionError& error, const CLI::App&) {
  constexpr std::string_view kBefore = "Could not convert: ";
  std::string_view what = error.what();
  if (!what.starts_with(kBefore)) return std::string(what);
  what.remove_prefix(kBefore.size());
  return fmt::format("{} takes no value", what.substr(0, what.find(' ')));
}

// Returns the text about an option that does not exist, or nothing. CLI11 takes the value of such
// an option for a positional argument, and reports first what is wrong with that.
std::string unknown_option(const CLI::App& command) {
  if (command.get_prefix_command()) return {};  // the rest belongs to another program
  const std::vector<std::string> rest = command.remaining();
  const auto word = std::find_if(rest.begin(), rest.end(), looks_like_option);
  return word == rest.end() ? std::string() : unexpected(*word, command);
}

// Returns true if --help was given. CLI11 handles --help after all values, including that of
// CARILLON_SERVER, so a wrong value is reported first.
bool wants_help(const CLI::App& command) {
  const CLI::Option* help = command.get_help_ptr();
  return help != nullptr && help->count() > 0;
}

// Throws if an option ends with its "=", as in --key=$UNSET: CLI11 would take the next word as its
// value. Words that belong to another program are not read.
void require_values(const CLI::App& command, const std::vector<std::string>& arguments) {
  for (const std::string& word : arguments) {
    const bool is_option = word.starts_with("--");
    if (word == "--" || (command.get_prefix_command() && !is_option)) return;
    if (!is_option || word.find('=') != word.size() - 1) continue;
    const std::string name = word.substr(0, word.size() - 1);
    if (const CLI::Option* const option = command.get_option_no_throw(name))
      throw UsageError(lacking(name, *option));
  }
}

int run_command(const Command& entry, const std::vector<std::string>& arguments) {
  const std::string who = fmt::format("carillon {}", entry.name);
  int exit_code = kSuccess;
  CLI::App command(fmt::format("{}.", entry.summary), std::string(entry.name));
  command.set_help_flag("-h,--help", "Show this help");
  command.formatter(std::make_shared<HelpFormatter>());
  entry.add(command, exit_code);
  const auto wrong = [&](std::string_view why) {
    const std::string unknown = unknown_option(command);
    return fail(who, unknown.empty() ? why : unknown, kUsage);
  };
  try {
    require_values(command, arguments);
    // CLI11 takes the arguments in reverse order.
    command.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    return exit_code;
  } catch (const CLI::CallForHelp&) {
    write_out(command.help("carillon"));
    return kSuccess;
  } catch (const CLI::ExtrasError& error) {
    return wrong(describe(error, command));
  } catch (const CLI::ArgumentMismatch& error) {
    return wrong(describe(error, command));
  } catch (const CLI::ExcludesError& error) {
    return wrong(describe(error, command));
  } catch (const CLI::ConversionError& error) {
    return wrong(describe(error, command));
  } catch (const CLI::ParseError& error) {
    return wrong(error.what());
  } catch (const UsageError& error) {
    if (wants_help(command)) return write_out(command.help("carillon")), kSuccess;
    return wrong(error.what());
  }
}

const Command* find_command(std::string_view name) {
  const auto found = std::find_if(kCommands.begin(), kCommands.end(),
                                  [name](const Command& command) { return command.name == name; });
  return found == kCommands.end() ? nullptr : &*found;
}

int unknown_command(std::string_view name) {
  std::string names;
  for (const Command& command : kCommands)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", command.name);
  const bool is_option = name.starts_with('-');
  return fail(
      "carillon",
      is_option
          ? fmt::format("there is no option \"{}\" before the command; see carillon --help", name)
          : fmt::format("there is no command \"{}\"; there are {}", name, names),
      kUsage);
}

int dispatch(int argc, char** argv) {
  const std::string_view program = argc > 0 ? argv[0] : "carillon";
  if (program.substr(program.rfind('/') + 1) == kBeanstalkd) return run_beanstalkd(argc, argv);
  const std::string_view first = argc > 1 ? argv[1] : "--help";
  if (first == kBeanstalkd) return run_beanstalkd(argc - 1, argv + 1);
  if (first == "help" && argc > 2) {
    char option[] = "--help";
    char* words[] = {argv[0], argv[2], option};
    return dispatch(3, words);
  }
  if (first == "--help" || first == "-h" || first == "help") return write_out(overview()), kSuccess;
  if (first == "--version" || first == "-V") {
    write_out(fmt::format("carillon {}\n", CARILLON_VERSION));
    return kSuccess;
  }
  if (first == "completion") {
    if (argc != 3) return fail("carillon completion", "name a shell: bash, zsh or fish", kUsage);
    try {
      return write_out(completion_script(argv[2])), kSuccess;
    } catch (const UsageError& error) {
      return fail("carillon completion", error.what(), kUsage);
    }
  }
  const Command* command = find_command(first);
  if (command == nullptr) return unknown_command(first);
  return run_command(*command, {argv + 2, argv + argc});
}

// Removes "carillon: ", with which the library's own errors begin: the line names the command
// already.
std::string_view without_name(std::string_view what) {
  constexpr std::string_view kName = "carillon: ";
  if (what.starts_with(kName)) what.remove_prefix(kName.size());
  return what;
}

}  // namespace

int run_command_line(int argc, char** argv) {
  // False for a program that was called by the name beanstalkd and has flags.
  const bool has_command = argc > 1 && argv[1][0] != '-';
  const std::string who = has_command ? fmt::format("carillon {}", argv[1]) : "carillon";
  try {
    return dispatch(argc, argv);
  } catch (const std::exception& error) {
    return fail(who, without_name(error.what()), kFailure);
  }
}

}  // namespace carillon::cli
