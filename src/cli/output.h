// Standard input and output of the commands: results go to standard output, remarks to standard
// error.
//
//   write_out(fmt::format("deleted {}\n", id));
//   remark("carillon delete: a worker holds job 7");
//   const std::string body = body_or_standard_input(request.body, kLargestBody);
#pragma once

#include <boost/json/fwd.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace carillon::cli {

// Writes lines of text to standard output and flushes. What a terminal would obey is escaped
// (server/text/visible_text.h): the text may have what a client has named. Throws Failure if that
// is not possible: a caller that deletes a job after printing it must know.
void write_out(std::string_view text);

// The same, byte for byte. REQUIRES: no byte is a client's, or its reader is no terminal.
void write_bytes(std::string_view bytes);

// Writes the body to standard output: to a terminal as text, with a line end if the body does not
// end with one, so that the prompt starts on a new line; elsewhere byte for byte.
void write_body(std::string_view body);

// Writes what a thing is: a line "name  value" for each field, with the values in one column, or
// one JSON object on one line.
void write_fields(const boost::json::object& fields, bool as_json);

// Writes what a command has done: the object on one line, or the text and a line end.
void write_result(bool as_json, const boost::json::object& object, std::string_view text);

// Writes one whole line to standard error in one write, so that the lines of several threads and
// processes do not mix. It is escaped as in write_out().
void remark(std::string_view line);

// Says once that the command waits, and why, when its waits are longer than a second in all.
class WaitNotice {
 public:
  // Call it before each wait.
  void before(std::chrono::milliseconds wait, std::string_view why);

 private:
  std::chrono::milliseconds waited_{0};
  bool told_ = false;
};

// Says that jobs of the tube may be missing, because the server cannot read all records.
void remark_missing_jobs(std::string_view tube);

// Returns what comes next of standard input, up to 64 KiB; nothing at its end. Throws Failure on a
// read error.
std::string read_some_input();

// Returns all of standard input. Throws Failure on a read error, and as soon as there are more than
// `most` bytes.
std::string read_standard_input(std::size_t most);

// Returns the argument BODY of a command, or standard input if it is - or was not given. Throws as
// read_standard_input() does, and UsageError if it was not given and standard input is empty:
// mostly that is a mistake.
std::string body_or_standard_input(const std::optional<std::string>& body, std::size_t most);

// Numbers in sentences: counted(1, "job") is "1 job", counted(2, "job") "2 jobs".
// REQUIRES: the plural of the noun is the noun with an s.
inline std::string counted(std::uint64_t number, std::string_view noun) {
  std::string text = std::to_string(number) + " ";
  text += noun;
  if (number != 1) text += 's';
  return text;
}

// listed({"a", "b"}) is "a, b". From eleven names on only ten are shown: "a, b, c and 7 more".
std::string listed(const std::set<std::string>& names);

// line_numbers(3, 3) is "line 3", line_numbers(3, 5) "lines 3 to 5".
inline std::string line_numbers(std::uint64_t first, std::uint64_t last) {
  if (first == last) return "line " + std::to_string(first);
  return "lines " + std::to_string(first) + " to " + std::to_string(last);
}

}  // namespace carillon::cli
