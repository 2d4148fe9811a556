// What a command asks the server for: the fields of a request (server/api/field.h), each set by an
// argument that is made from the field.
//
//   ApiRequest& request = set_action(command, exit_code, "Examples: ...", pause);
//   request.asked.add_arguments(command, server::kShape<server::PauseTube>,
//                               {.positionals = "tube duration"});
//   ... parse ...
//   api.call("pauseTube", request.asked.read<server::PauseTube>());
//
// The field `due_before` becomes the option --due-before. The fields of an inner object are
// options, too. A wrong value is a UsageError that names the argument, and all of them are found at
// once.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/api.h"
#include "cli/arguments.h"
#include "server/api/field.h"

namespace carillon::cli {

struct AskedOptions {
  // The fields that are no options, in their order, separated by spaces. "max:N" is called N.
  std::string_view positionals = {};
  // Positionals that may be missing, though the request needs them: read() begins with them.
  std::string_view optional = {};
  // Fields that the command sets by itself, or not at all.
  std::string_view without = {};
  // Fields whose options have other names: "priority:pri due:at".
  std::string_view names = {};
  // Fields whose help differs from that of the request, because the command has another default.
  std::vector<std::pair<std::string_view, std::string_view>> helps = {};
};

class Asked {
 public:
  // `this` must outlive the command. What a field is without its argument stands in what read()
  // begins with.
  void add_arguments(CLI::App& command, const server::Shape& shape,
                     const AskedOptions& options = {});

  // Sets a field, by its pointer: "/limits/rate". An error about it names the argument.
  void set(std::string_view pointer, boost::json::value value, std::string_view argument);
  bool has(std::string_view pointer) const;
  // Returns the argument that has set the field or one within it; empty: none has.
  std::string argument_within(std::string_view pointer) const;
  bool is_empty() const { return fields_.empty(); }
  // REQUIRES: something is set.
  const std::string& first_argument() const { return arguments_.front().second; }

  // Returns the fields that were set, as JSON, for Api::ask().
  const boost::json::object& fields() const { return fields_; }
  // Throws what the server's refusal means: a UsageError that names the arguments, or itself.
  [[noreturn]] void throw_usage(const Refusal& refusal) const;

  // Throws UsageError.
  template <class Request>
  Request read(Request begin = {}) const {
    read_into(server::kShape<Request>, &begin);
    return begin;
  }

 private:
  void add(CLI::App& command, const server::Shape& shape, const AskedOptions& options,
           const std::string& at);
  void add_one(CLI::App& command, const server::Field& field, const std::string& pointer,
               const std::string& name, const AskedOptions& options, bool is_needed = false);
  void read_into(const server::Shape& shape, void* into) const;
  std::string text_of(const std::vector<server::FieldFault>& faults) const;
  std::string argument_of(std::string_view pointer) const;

  boost::json::object fields_;
  std::vector<std::pair<std::string, std::string>> arguments_;  // pointers, and their arguments
};

// The arguments of most commands: the server, the request, and how to print the answer.
struct ApiRequest {
  ServerAddress server;
  Asked asked;
  bool json = false;
};

// "--due-before" for the field "due_before".
std::string option_named(std::string_view field);

// Returns the text of an error with name(field) in the place of each `field` in backquotes: the
// server names its fields, and the user has typed options.
std::string replace_fields(std::string_view text,
                           const std::function<std::string(std::string_view field)>& name);

// Returns UTC ms: of a duration (1h, from now), or of an RFC 3339 time. Throws
// std::invalid_argument.
std::uint64_t parse_moment(const std::string& text);

}  // namespace carillon::cli
