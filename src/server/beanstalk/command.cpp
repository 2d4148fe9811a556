// parse_command(): reads the arguments of verbs; and the table of verbs (command.h).
#include "server/beanstalk/command.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <stdexcept>

#include "carillon/require.h"
#include "server/beanstalk/job_options.h"
#include "server/text/whole_number.h"

namespace carillon::server::beanstalk {
namespace {

constexpr std::uint64_t kMaxU32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMaxU64 = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMaxTimeoutSeconds = 0x7FFFFFFF;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
// Takes a number from the front of `rest`. None if there is no digit, or if the number is above
// 2^64 - 1.
std::optional<std::uint64_t> take_digits(std::string_view& rest) {
  if (rest.empty() || !is_digit(rest.front())) return std::nullopt;
  std::uint64_t number = 0;
  do {
    const auto digit = static_cast<std::uint64_t>(rest.front() - '0');
    if (number > (kMaxU64 - digit) / 10) return std::nullopt;
    number = number * 10 + digit;
    rest.remove_prefix(1);
  } while (!rest.empty() && is_digit(rest.front()));
  return number;
}

// Reads the arguments of one line from left to right. After a failure every read fails.
class Arguments {
 public:
  explicit Arguments(std::string_view rest) : rest_(rest) {}

  template <class Number>
  Arguments& number(Number& out, std::uint64_t max) {
    skip_spaces();
    const auto read = ok_ ? take_digits(rest_) : std::nullopt;
    ok_ = read && *read <= max;
    if (ok_) out = static_cast<Number>(*read);
    return *this;
  }

  // Reads whole seconds and stores milliseconds.
  Arguments& seconds(queue::Millis& out, std::uint64_t max = kMaxU32) {
    number(out, max);
    out *= 1'000;
    return *this;
  }

  // Takes all bytes that may be in a tube's name. They need not make a valid name.
  Arguments& name_bytes(std::string_view& out) {
    skip_spaces();
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_name_byte);
    out = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    rest_.remove_prefix(out.size());
    ok_ = ok_ && !out.empty();
    return *this;
  }

  bool ok() const { return ok_; }
  bool ok_to_the_end() const { return ok_ && rest_.empty(); }

 private:
  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }

  std::string_view rest_;
  bool ok_ = true;
};

Form good_if(bool good) {
  return good ? Form::kGood : Form::kBad;
}

// Returns the first word of `rest`, and takes it and the space behind it away.
std::string_view take_word(std::string_view& rest) {
  const std::string_view word = rest.substr(0, rest.find(' '));
  rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  return word;
}

// --- One function for each form that the arguments of a verb have. `rest` is what follows the
// verb's prefix.

using Read = Form (*)(std::string_view rest, Command& c);

Form read_anything(std::string_view, Command&) {
  return Form::kGood;
}

Form read_nothing(std::string_view rest, Command&) {
  return good_if(rest.empty());
}

Form read_put(std::string_view rest, Command& c) {
  Arguments arguments(rest);
  arguments.number(c.priority, kMaxU32);
  if (c.verb == Verb::kPut) {
    arguments.seconds(c.delay).seconds(c.ttr);
  } else {
    arguments.number(c.verb == Verb::kPutAt ? c.due_at : c.delay, kMaxU64).number(c.ttr, kMaxU64);
  }
  arguments.number(c.bytes, kMaxU32);
  if (!arguments.ok()) return Form::kBad;
  c.body = Command::Body::kCounted;
  return arguments.ok_to_the_end() ? Form::kGood : Form::kCountedBad;
}

Form read_id(std::string_view rest, Command& c) {
  return good_if(Arguments(rest).number(c.id, kMaxU64).ok_to_the_end());
}

Form read_release(std::string_view rest, Command& c) {
  Arguments arguments(rest);
  arguments.number(c.id, kMaxU64).number(c.priority, kMaxU32);
  if (c.verb == Verb::kRelease) return good_if(arguments.seconds(c.delay).ok_to_the_end());
  return good_if(arguments.number(c.delay, kMaxU64).ok_to_the_end());
}

Form read_bury(std::string_view rest, Command& c) {
  return good_if(Arguments(rest).number(c.id, kMaxU64).number(c.priority, kMaxU32).ok_to_the_end());
}

Form read_timeout(std::string_view rest, Command& c) {
  return good_if(Arguments(rest).seconds(c.timeout, kMaxTimeoutSeconds).ok());
}

Form read_timeout_ms(std::string_view rest, Command& c) {
  return good_if(Arguments(rest).number(c.timeout, kMaxTimeoutSeconds * 1'000).ok_to_the_end());
}

// Reads the number as strtoul does, and keeps it modulo 2^32, as beanstalkd's unsigned int does.
Form read_bound(std::string_view rest, Command& c) {
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t\n\v\f\r"), rest.size()));
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  const auto number = take_digits(rest);
  if (!number) return Form::kBad;
  c.bound = static_cast<std::uint32_t>(negative ? 0 - *number : *number);
  return Form::kGood;
}

Form read_pause(std::string_view rest, Command& c) {
  if (!Arguments(rest).name_bytes(c.tube).seconds(c.delay).ok_to_the_end()) return Form::kBad;
  return is_tube_name(c.tube) ? Form::kGood : Form::kCountedBad;
}

Form read_tube(std::string_view rest, Command& c) {
  c.tube = rest;
  return good_if(is_tube_name(rest));
}

Form read_token(std::string_view rest, Command& c) {
  c.tube = rest;
  return good_if(is_word(rest));
}

Form read_client_name(std::string_view rest, Command& c) {
  return rest.size() <= queue::kMaxWorkerName ? read_token(rest, c) : Form::kBad;
}

// --- The same, followed by a space and options.

// The job is named by its id, or by key=KEY.
Form read_job(std::string_view rest, Command& c) {
  constexpr std::string_view kKey = "key=";
  const std::string_view job = take_word(rest);
  c.options = rest;
  if (!job.starts_with(kKey)) return read_id(job, c);
  c.key = job.substr(kKey.size());
  return good_if(is_key(c.key));
}

bool mentions_body(std::string_view text) {
  constexpr std::string_view kBody = "body";
  const auto is_same = [](char in_text, char letter) { return (in_text | 0x20) == letter; };
  return std::search(text.begin(), text.end(), kBody.begin(), kBody.end(), is_same) != text.end();
}

// A body follows a patch-job whose options say so. If they say so in a wrong form, the patch-job is
// refused, and a body may still follow it: `patch-job body=5`, without a job, or `patch-job 7
// BODY=5`.
Form read_patch(std::string_view rest, Command& c) {
  using Body = Command::Body;
  const Form form = read_job(rest, c);
  if (form == Form::kBad && mentions_body(rest)) c.body = Body::kUnknown;
  try {
    std::string_view options = c.options;
    while (const auto option = take_option(options)) {
      if (option->name != "body") {
        const bool is_text = option->name == "attributes";
        if (mentions_body(option->name) || (!is_text && mentions_body(option->value.value_or(""))))
          c.body = Body::kUnknown;
        continue;
      }
      const auto bytes = whole_number<std::uint32_t>(option->value.value_or(""));
      const bool is_told = c.body == Body::kNone && bytes;
      c.body = is_told ? Body::kCounted : Body::kUnknown;
      c.bytes = is_told ? *bytes : 0;
    }
  } catch (const std::invalid_argument&) {
    if (c.options.find("body=") != std::string_view::npos) c.body = Body::kUnknown;
  }
  return form;
}

Form read_job_alone(std::string_view rest, Command& c) {
  const Form form = read_job(rest, c);
  return c.options.empty() ? form : Form::kBad;
}

// The size of a body.
Form read_size(std::string_view rest, Command& c) {
  const std::string_view bytes = take_word(rest);
  c.options = rest;
  if (!Arguments(bytes).number(c.bytes, kMaxU32).ok_to_the_end()) return Form::kBad;
  c.body = Command::Body::kCounted;
  return Form::kGood;
}

Form read_id_and_size(std::string_view rest, Command& c) {
  const Form form = read_id(take_word(rest), c);
  return form == Form::kGood ? read_size(rest, c) : form;
}

// How many jobs are asked for.
Form read_count(std::string_view rest, Command& c) {
  const std::string_view count = take_word(rest);
  c.options = rest;
  return good_if(Arguments(count).number(c.bound, kMaxBatch).ok_to_the_end() && c.bound > 0);
}

struct Prefix {
  std::string_view text;
  Verb verb;
  Read read;
  std::size_t longest = kMaxLine;  // a line, with its CR LF
};

// What is known about the body before the arguments are read.
Command::Body body_of(Verb verb) {
  using Body = Command::Body;
  switch (verb) {
    case Verb::kPut:
    case Verb::kPutMs:
    case Verb::kPutAt:
    case Verb::kPutJob:
    case Verb::kPutJobs:
    case Verb::kDeleteJobs:
    case Verb::kReleaseJobs:
    case Verb::kFailJob:
      return Body::kUnknown;
    default:
      return Body::kNone;
  }
}

// The first match wins. Frequent verbs come first: each verb costs time for those behind it.
constexpr std::array kPrefixes = {
    Prefix{"put ", Verb::kPut, read_put},
    Prefix{"put-ms ", Verb::kPutMs, read_put},
    Prefix{"put-at ", Verb::kPutAt, read_put},
    Prefix{"reserve-with-timeout ", Verb::kReserveWithTimeout, read_timeout},
    Prefix{"reserve-with-timeout-ms ", Verb::kReserveWithTimeoutMs, read_timeout_ms},
    Prefix{"reserve-job ", Verb::kReserveJob, read_id},
    Prefix{"reserve-jobs ", Verb::kReserveJobs, read_count, kMaxLongLine},
    Prefix{"reserve", Verb::kReserve, read_nothing},
    Prefix{"delete ", Verb::kDelete, read_id},
    Prefix{"release ", Verb::kRelease, read_release},
    Prefix{"touch ", Verb::kTouch, read_id},
    Prefix{"put-job ", Verb::kPutJob, read_size, kMaxLongLine},
    Prefix{"put-jobs ", Verb::kPutJobs, read_size, kMaxLongLine},
    Prefix{"delete-jobs ", Verb::kDeleteJobs, read_size, kMaxLongLine},
    Prefix{"release-jobs ", Verb::kReleaseJobs, read_size, kMaxLongLine},
    Prefix{"patch-job ", Verb::kPatchJob, read_patch, kMaxLongLine},
    Prefix{"cancel-job ", Verb::kCancelJob, read_job, kMaxLongLine},
    Prefix{"peek-job ", Verb::kPeekJob, read_job_alone, kMaxLongLine},
    Prefix{"fail-job ", Verb::kFailJob, read_id_and_size, kMaxLongLine},
    Prefix{"touch-job ", Verb::kTouchJob, read_id},
    Prefix{"name-client ", Verb::kNameClient, read_client_name},
    Prefix{"auth ", Verb::kAuth, read_token},
    Prefix{"peek ", Verb::kPeek, read_id},
    Prefix{"peek-ready", Verb::kPeekReady, read_nothing},
    Prefix{"peek-delayed", Verb::kPeekDelayed, read_nothing},
    Prefix{"peek-buried", Verb::kPeekBuried, read_nothing},
    Prefix{"release-ms ", Verb::kReleaseMs, read_release},
    Prefix{"bury ", Verb::kBury, read_bury},
    Prefix{"kick ", Verb::kKick, read_bound},
    Prefix{"kick-job ", Verb::kKickJob, read_id},
    Prefix{"stats-job ", Verb::kStatsJob, read_id},
    Prefix{"stats-tube ", Verb::kStatsTube, read_tube},
    Prefix{"stats", Verb::kStats, read_nothing},
    Prefix{"use ", Verb::kUse, read_tube},
    Prefix{"watch ", Verb::kWatch, read_tube},
    Prefix{"ignore ", Verb::kIgnore, read_tube},
    Prefix{"list-tubes-watched", Verb::kListTubesWatched, read_nothing},
    Prefix{"list-tube-used", Verb::kListTubeUsed, read_nothing},
    Prefix{"list-tubes", Verb::kListTubes, read_nothing},
    Prefix{"quit", Verb::kQuit, read_anything},
    Prefix{"pause-tube", Verb::kPauseTube, read_pause},
};
static_assert(kPrefixes.size() == kVerbs - 1, "each verb but kUnknown has a prefix");

constexpr bool no_prefix_hides_another() {
  for (auto first = kPrefixes.begin(); first != kPrefixes.end(); ++first)
    for (auto later = first + 1; later != kPrefixes.end(); ++later)
      if (later->text.starts_with(first->text)) return false;
  return true;
}
static_assert(no_prefix_hides_another(), "a prefix comes before the shorter ones it begins with");

// Returns the prefix of a verb of Carillon's own with a body, if the line names the verb without
// the space behind it: "put-job", "put-job\t5".
const Prefix* prefix_without_space(std::string_view line) {
  for (const Prefix& prefix : kPrefixes) {
    const std::string_view name = prefix.text.substr(0, prefix.text.size() - 1);
    const bool is_named = prefix.text.ends_with(' ') && line.starts_with(name) &&
                          (line.size() == name.size() || !is_name_byte(line[name.size()]));
    if (!is_named || prefix.verb == Verb::kPut) continue;
    const bool has_body = prefix.verb == Verb::kPatchJob
                              ? line.find("body=") != std::string_view::npos
                              : body_of(prefix.verb) != Command::Body::kNone;
    return has_body ? &prefix : nullptr;
  }
  return nullptr;
}

// A verb of builds before 0.1.0. Their clients still send a body behind it.
constexpr std::string_view kFormerVerbWithBody = "set-schedule";

}  // namespace

std::size_t longest_line(std::string_view bytes) {
  for (const Prefix& prefix : kPrefixes) {
    if (bytes.starts_with(prefix.text)) return prefix.longest;
  }
  return kMaxLine;
}

Command parse_command(std::string_view line) {
  CARILLON_REQUIRE_DEBUG(line.find("\r\n") == std::string_view::npos, line);
  Command command;
  for (const Prefix& prefix : kPrefixes) {
    if (!line.starts_with(prefix.text)) continue;
    command.verb = prefix.verb;
    command.body = body_of(prefix.verb);
    command.form = prefix.read(line.substr(prefix.text.size()), command);
    break;
  }
  if (command.verb == Verb::kUnknown) {
    if (line.starts_with(kFormerVerbWithBody)) command.body = Command::Body::kUnknown;
    if (const Prefix* const prefix = prefix_without_space(line)) {
      command.verb = prefix->verb;
      command.body = Command::Body::kUnknown;
      command.form = Form::kBad;
    }
  }
  if (line.find('\0') != std::string_view::npos) command.form = Form::kBad;
  return command;
}

Command parse_long_line(std::string_view start) {
  Command command = parse_command(start);
  command.form = Form::kBad;
  // The size stands in front of the options, and may be cut off if there are no options. The size
  // of a patch-job is one of the options.
  const bool may_be_cut = command.body == Command::Body::kCounted && command.options.empty();
  if (may_be_cut || command.verb == Verb::kPatchJob) command.body = Command::Body::kUnknown;
  return command;
}

}  // namespace carillon::server::beanstalk
