// A line of JSON about a job, a group or a schedule. The fields have the names of the options of
// put-job, set-tube and set-schedule, with _ for -, and values in the same form: so the values of a
// list can be sent again.
//
//   std::string lines;
//   OptionLine line(lines);
//   line.text("group", "acme");
//   line.limits({.max_running = 3});
//   line.end();                          // {"group":"acme","max_running":3}, and the line's end
//
// Thread safety: none.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "carillon/queue/job.h"
#include "carillon/queue/limits.h"
#include "carillon/require.h"

namespace carillon::server::beanstalk {

class OptionLine {
 public:
  // Appends to the text, which must outlive this object.
  explicit OptionLine(std::string& to) : text_(to) { text_ += '{'; }

  // Adds a value that is JSON already: a number, true, an object.
  template <class Value>
  void field(std::string_view name, const Value& value) {
    fmt::format_to(std::back_inserter(text_), "\"{}\":{},", name, value);
  }
  // REQUIRES: the value needs no escape.
  void word(std::string_view name, std::string_view value) {
    CARILLON_REQUIRE_DEBUG(value.find_first_of("\"\\") == std::string_view::npos, value);
    fmt::format_to(std::back_inserter(text_), "\"{}\":\"{}\",", name, value);
  }
  void moment(std::string_view name, queue::UtcMs at);
  void duration(std::string_view name, queue::Millis duration);
  // Any bytes: if they are not UTF-8, the value is Base64, and the name ends with _base64.
  void text(std::string_view name, std::string_view value);
  void count(std::string_view name, std::uint64_t value) {
    if (value > 0) field(name, value);
  }
  // The fields that are set.
  void policy(const queue::RetryPolicy& policy);
  void limits(const queue::Limits& limits);
  void attributes(const std::string& attributes);
  void end();

 private:
  std::string& text_;
};

}  // namespace carillon::server::beanstalk
