// Parsers of argument values, and thin wrappers around CLI11.

#include "cli/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>

#include "server/beanstalk/command.h"
#include "server/text/whole_number.h"

namespace carillon::cli {
namespace {

using server::kMaxTubeName;

constexpr const char* kServerVariable = "CARILLON_SERVER";
constexpr const char* kHttpVariable = "CARILLON_HTTP";

template <class Number>
std::optional<Number> read_number(std::string_view text, Number least, Number most) {
  const auto number = server::whole_number<Number>(text);
  return number && *number >= least && *number <= most ? number : std::nullopt;
}

// Returns the name of the value in the help: "DURATION" of "--delay DURATION".
std::string value_of_argument(const std::string& form) {
  return form.substr(std::min(form.find(' '), form.size() - 1) + 1);
}

// Adds an option that names an address. Without it an environment variable has the address, if it
// is set. `set` gets the text, and the name of what has it, and whether that is the variable.
void add_address(
    CLI::App& command, const std::string& option, const char* variable,
    const std::string& description,
    const std::function<void(const std::string& text, const std::string& name, bool)>& set) {
  const auto parsed = [=](const std::string& text) {
    // The message must name the source of a wrong text: the variable or the option.
    const char* value = std::getenv(variable);
    const bool is_of_variable = value != nullptr && text == value;
    set(text, is_of_variable ? variable : option, is_of_variable);
  };
  command.add_option_function<std::string>(option, parsed, description)
      ->type_name("ADDR")
      ->envname(variable);
}

void add_addresses(CLI::App& command, ServerAddress& server) {
  server::Address& line = server;
  line = {.host = "127.0.0.1", .port = server::kBeanstalkPort, .path = {}};
  const auto is_named = std::make_shared<bool>(false);
  const auto set_server = [&line, is_named](const std::string& text, const std::string& name,
                                            bool is_of_variable) {
    const auto parse = [](const std::string& from) { return server::parse_address(from); };
    line = parse_argument(name, parse, text);
    *is_named = !is_of_variable;
  };
  add_address(command, "--server", kServerVariable,
              "HOST:PORT, [V6]:PORT or unix:PATH (default: the variable CARILLON_SERVER, else "
              "127.0.0.1:11300)",
              set_server);
  // CLI11 calls these in the order in which they were added.
  const auto set_http = [&server, is_named](const std::string& text, const std::string& name,
                                            bool is_of_variable) {
    if (is_of_variable && *is_named) return;
    const auto parse = [](const std::string& from) {
      return server::parse_address(from, server::kHttpPort);
    };
    server.has_http = text != "none";
    if (server.has_http) server.http = parse_argument(name, parse, text);
  };
  add_address(command, "--http", kHttpVariable,
              "Where it answers HTTP (default: the variable CARILLON_HTTP, else at the port + 80, "
              "or PATH.http)",
              set_http);
}

// `what` says whose name it is, in errors.
std::string parse_named(std::string_view what, std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    throw std::invalid_argument(fmt::format("\"{}\": {} {}", text, what, why));
  };
  if (text.empty()) refuse("has 1 to 200 bytes");
  if (text.size() > kMaxTubeName) {
    throw std::invalid_argument(fmt::format("\"{}...\": the name has {} bytes; the limit is {}",
                                            text.substr(0, 20), text.size(), kMaxTubeName));
  }
  if (text.front() == '-') refuse("does not start with -");
  if (!std::all_of(text.begin(), text.end(), is_tube_byte))
    refuse("is made of letters, digits and - + / ; . $ _ ( )");
  return std::string(text);
}

}  // namespace

std::uint64_t parse_job_id(std::string_view text) {
  const auto id = read_number<std::uint64_t>(text, 1, std::numeric_limits<std::uint64_t>::max());
  if (!id)
    throw std::invalid_argument(fmt::format("\"{}\": not a job's id, a number from 1 up", text));
  return *id;
}

std::uint32_t parse_number(std::string_view text, std::uint32_t least, std::uint32_t most) {
  const auto number = read_number<std::uint32_t>(text, least, most);
  if (!number)
    throw std::invalid_argument(
        fmt::format("\"{}\": not a number from {} to {}", text, least, most));
  return *number;
}

std::uint32_t parse_priority(std::string_view text) {
  return parse_number(text, 0, std::numeric_limits<std::uint32_t>::max());
}

bool is_tube_byte(char c) {
  const bool alphanumeric =
      (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return alphanumeric || std::string_view("-+/;.$_()").find(c) != std::string_view::npos;
}

std::string parse_tube(std::string_view text) {
  return parse_named("a tube's name", text);
}

std::string parse_name(std::string_view text) {
  return parse_named("a name", text);
}

std::string parse_directory(std::string_view text) {
  if (text.empty()) throw std::invalid_argument("\"\": not a directory's name");
  return std::string(text);
}

std::string parse_key(const std::string& text) {
  if (server::is_key(text)) return text;
  throw std::invalid_argument(fmt::format("\"{}\": a key has {}", text, server::kKeyRule));
}

void set_action(CLI::App& command, std::string_view examples, std::function<void()> act) {
  command.footer(std::string(examples))->callback(std::move(act));
}

void leave_the_rest(CLI::App& command) {
  command.prefix_command();
}

std::vector<std::string> remaining(const CLI::App& command) {
  return command.remaining();
}

Argument Argument::required() const {
  return Argument(option_->required());
}

Argument Argument::excludes(Argument other) const {
  return Argument(option_->excludes(other.option_));
}

Argument add_flag(CLI::App& command, const std::string& name, bool& value,
                  const std::string& description) {
  return Argument(command.add_flag(name, value, description));
}

Argument add_flag(CLI::App& command, const std::string& name, const std::function<void()>& set,
                  const std::string& description) {
  return Argument(command.add_flag_callback(name, set, description));
}

Argument add_text(CLI::App& command, const std::string& form,
                  const std::function<void(const std::string&)>& set,
                  const std::string& description) {
  const std::string name = name_of_argument(form);
  return Argument(command.add_option_function<std::string>(name, set, description)
                      ->type_name(value_of_argument(form)));
}

Argument add_text(CLI::App& command, const std::string& form, std::optional<std::string>& value,
                  const std::string& description) {
  return add_text(
      command, form, [&value](const std::string& text) { value = text; }, description);
}

Argument add_list(CLI::App& command, const std::string& form,
                  const std::function<void(const std::vector<std::string>&)>& set,
                  const std::string& description) {
  const std::string name = name_of_argument(form);
  return Argument(command.add_option_function<std::vector<std::string>>(name, set, description)
                      ->type_name(value_of_argument(form))
                      ->allow_extra_args(!name.starts_with('-')));
}

Argument add_choice(CLI::App& command, const std::string& form, std::string& value,
                    std::span<const std::string_view> words, const std::string& description) {
  const auto parse = [words](const std::string& text) {
    if (std::find(words.begin(), words.end(), text) != words.end()) return text;
    throw std::invalid_argument(fmt::format("\"{}\": there {} {}", text,
                                            words.size() == 1 ? "is only" : "are",
                                            fmt::join(words, ", ")));
  };
  return add_value(command, form, value, parse, description);
}

void add_server_option(CLI::App& command, ServerAddress& server) {
  add_addresses(command, server);
  add_text(command, "--token-file FILE", server.token_file,
           "File whose first line is the token to show there (default: the variable CARILLON_TOKEN "
           "is the token)");
  add_flag(command, "--tls", server.tls,
           "Talk to it by TLS (also if the variable CARILLON_TLS is 1). CARILLON_TLS_CERT and "
           "CARILLON_TLS_KEY name this client's certificate");
  add_text(command, "--tls-ca FILE", server.tls_ca,
           "By TLS, and its certificate must be signed by one in this file (default: the variable "
           "CARILLON_TLS_CA, else what this system trusts)");
}

Argument add_tube_option(CLI::App& command, std::string& tube, const std::string& description) {
  return add_value(command, "--tube TUBE", tube, parse_tube, description);
}

}  // namespace carillon::cli
