// `carillon completion SHELL`: one list of options, in the form of three shells.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_status.h"

namespace carillon::cli {
namespace {

struct Option {
  std::vector<std::string> names;  // with their hyphens
  std::string description;         // one line
  bool has_value;
};

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

std::vector<Option> options_of(const Command& command) {
  std::vector<Option> options;
  if (command.add == nullptr) {
    for (const BeanstalkdFlag& flag : beanstalkd_flags())
      options.push_back(
          {{std::string(flag.name)}, one_line(std::string(flag.help)), !flag.value.empty()});
    return options;
  }
  CLI::App parser;
  int exit_code = 0;
  parser.set_help_flag("-h,--help", "Show this help");
  command.add(parser, exit_code);
  for (const CLI::Option* option : parser.get_options()) {
    Option found{{}, one_line(option->get_description()), option->get_type_size() != 0};
    for (const std::string& name : option->get_snames()) found.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) found.names.push_back("--" + name);
    if (!found.names.empty()) options.push_back(std::move(found));
  }
  return options;
}

std::string bash() {
  std::string commands;
  std::string cases;
  for (const Command& command : kCommands) {
    commands += fmt::format("{}{}", commands.empty() ? "" : " ", command.name);
    std::string names;
    for (const Option& option : options_of(command))
      for (const std::string& name : option.names)
        names += fmt::format("{}{}", names.empty() ? "" : " ", name);
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command.name, names);
  }
  return fmt::format(R"(# bash completion for carillon, made by: carillon completion bash
_carillon() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} words=
  COMPREPLY=()
  case $COMP_CWORD:${{COMP_WORDS[1]}} in
    1:*) COMPREPLY=($(compgen -W "{}" -- "$current")); return ;;
  esac
  [[ $current == -* ]] || return
  case ${{COMP_WORDS[1]}} in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _carillon carillon
)",
                     commands, cases);
}

// Puts the text in single quotes, in which a shell gives a meaning only to the quote.
std::string quoted(std::string_view text, std::string_view quote) {
  std::string result;
  for (const char c : text) {
    if (c == '\'')
      result += quote;
    else
      result += c;
  }
  return "'" + result + "'";
}

// In a specification of zsh's _arguments, brackets end the description, and colons a name.
std::string zsh_description(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh() {
  std::string commands;
  std::string cases;
  for (const Command& command : kCommands) {
    const std::string entry = fmt::format("{}:{}", command.name, zsh_description(command.summary));
    commands += fmt::format("    {}\n", quoted(entry, R"('\'')"));
    cases += fmt::format("    {})\n      _arguments \\\n", command.name);
    for (const Option& option : options_of(command)) {
      for (const std::string& name : option.names) {
        const std::string spec = fmt::format("*{}[{}]{}", name, zsh_description(option.description),
                                             option.has_value ? ":value:_files" : "");
        cases += fmt::format("        {} \\\n", quoted(spec, R"('\'')"));
      }
    }
    cases += "        '*:argument:_files' ;;\n";
  }
  return fmt::format(R"(#compdef carillon
# zsh completion for carillon, made by: carillon completion zsh
_carillon() {{
  local -a commands
  commands=(
{}  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
{}  esac
}}
if [[ $funcstack[1] == _carillon ]]; then
  _carillon "$@"
else
  compdef _carillon carillon
fi
)",
                     commands, cases);
}

std::string fish() {
  std::string lines = "# fish completion for carillon, made by: carillon completion fish\n";
  for (const Command& command : kCommands) {
    lines += fmt::format("complete -c carillon -n __fish_use_subcommand -f -a {} -d {}\n",
                         command.name, quoted(command.summary, R"(\')"));
  }
  for (const Command& command : kCommands) {
    for (const Option& option : options_of(command)) {
      std::string names;
      for (const std::string& name : option.names) {
        const bool is_long = name.starts_with("--");
        names += fmt::format(" -{} {}", is_long ? 'l' : 's', name.substr(is_long ? 2 : 1));
      }
      lines += fmt::format("complete -c carillon -n '__fish_seen_subcommand_from {}'{}{} -d {}\n",
                           command.name, names, option.has_value ? " -r" : "",
                           quoted(option.description, R"(\')"));
    }
  }
  return lines;
}

}  // namespace

std::string completion_script(std::string_view shell) {
  if (shell == "bash") return bash();
  if (shell == "zsh") return zsh();
  if (shell == "fish") return fish();
  throw UsageError(fmt::format("there is no shell \"{}\"; there are bash, zsh, fish", shell));
}

}  // namespace carillon::cli
