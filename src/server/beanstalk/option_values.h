// Options of a command, name=value, and the types of values that several commands have.
//
//   std::string_view text = "cron=\"30 8 * * MON-FRI\" ttr=2m";
//   take_option(text) is cron and 30 8 * * MON-FRI; take_option(text) is ttr and 2m; then none
//
//   options := [option (SP+ option)*]
//   option  := name "=" value
//   value   := bytes without SP                  the first one is not a double quote
//            | '"' bytes without '"' '"'         which may have spaces
//
// A value outside its range is refused; nothing is clamped. All functions throw
// std::invalid_argument with one line that names what is wrong, and what is allowed. Thread safety:
// pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "carillon/queue/job.h"

namespace carillon::server::beanstalk {

struct OptionText {
  std::string_view name;
  std::optional<std::string_view> value;  // without its quotes
};

// Takes the first option from the front of `text`. Returns none at the end of the text.
std::optional<OptionText> take_option(std::string_view& text);

[[noreturn]] void refuse_option(const std::string& why);

// Returns the text, shortened, with a ? for each byte that is not printable.
std::string quoted(std::string_view text);
// Returns a text that fits into one line of a reply.
std::string printable(std::string_view text);

// Returns none if the text is not a number of 64 bits.
std::optional<std::uint64_t> number(std::string_view text);
std::uint32_t number_u32(std::string_view text);
bool yes(std::string_view text);  // or no
// Milliseconds (server/text/duration.h).
queue::Millis duration(std::string_view text);
// The name of a group, with the rule of keys.
std::string_view group(std::string_view text);
// A duration from queue::kMinTtr to queue::kMaxTtr.
queue::Millis ttr(std::string_view text);
// Milliseconds since 1970, or RFC 3339 (server/text/timestamp.h).
queue::UtcMs moment(std::string_view text);

}  // namespace carillon::server::beanstalk
