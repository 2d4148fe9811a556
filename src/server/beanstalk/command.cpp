// parse_command(): the table of prefixes, and the arguments of each verb (command.h).
#include "server/beanstalk/command.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace carillon::server::beanstalk {
namespace {

constexpr std::uint64_t kMaxU32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMaxU64 = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMaxTimeoutSeconds = 0x7FFFFFFF;

struct Prefix {
  std::string_view text;
  Verb verb;
  std::size_t longest = kMaxLine;  // a line, with its CR LF
};

// The first match wins, so a prefix must come before every shorter one that it starts with.
constexpr std::array kPrefixes = {
    Prefix{"put ", Verb::kPut},
    Prefix{"put-ms ", Verb::kPutMs},
    Prefix{"put-at ", Verb::kPutAt},
    Prefix{"put-job ", Verb::kPutJob, kMaxLongLine},
    Prefix{"put-jobs ", Verb::kPutJobs, kMaxLongLine},
    Prefix{"reserve-jobs ", Verb::kReserveJobs, kMaxLongLine},
    Prefix{"delete-jobs ", Verb::kDeleteJobs, kMaxLongLine},
    Prefix{"release-jobs ", Verb::kReleaseJobs, kMaxLongLine},
    Prefix{"patch-job ", Verb::kPatchJob, kMaxLongLine},
    Prefix{"cancel-job ", Verb::kCancelJob, kMaxLongLine},
    Prefix{"peek-job ", Verb::kPeekJob, kMaxLongLine},
    Prefix{"show-job ", Verb::kShowJob, kMaxLongLine},
    Prefix{"bury-job ", Verb::kBuryJob, kMaxLongLine},
    Prefix{"fail-job ", Verb::kFailJob, kMaxLongLine},
    Prefix{"touch-job ", Verb::kTouchJob},
    Prefix{"story-job ", Verb::kStoryJob},
    Prefix{"set-tube ", Verb::kSetTube, kMaxLongLine},
    Prefix{"name-client ", Verb::kNameClient},
    Prefix{"auth ", Verb::kAuth},
    Prefix{"set-schedule ", Verb::kSetSchedule, kMaxScheduleLine},
    Prefix{"delete-schedule ", Verb::kDeleteSchedule},
    Prefix{"pause-schedule ", Verb::kPauseSchedule},
    Prefix{"resume-schedule ", Verb::kResumeSchedule},
    Prefix{"trigger-schedule ", Verb::kTriggerSchedule},
    Prefix{"stats-schedule ", Verb::kStatsSchedule},
    Prefix{"show-schedule ", Verb::kShowSchedule},
    Prefix{"list-schedules", Verb::kListSchedules},
    Prefix{"list-groups ", Verb::kListGroups, kMaxLongLine},
    Prefix{"list-jobs ", Verb::kListJobs, kMaxLongLine},
    Prefix{"cancel-jobs ", Verb::kCancelJobs, kMaxLongLine},
    Prefix{"retry-jobs ", Verb::kRetryJobs, kMaxLongLine},
    Prefix{"move-jobs ", Verb::kMoveJobs, kMaxLongLine},
    Prefix{"spread-jobs ", Verb::kSpreadJobs, kMaxLongLine},
    Prefix{"due-counts ", Verb::kDueCounts, kMaxLongLine},
    Prefix{"peek ", Verb::kPeek},
    Prefix{"peek-ready", Verb::kPeekReady},
    Prefix{"peek-delayed", Verb::kPeekDelayed},
    Prefix{"peek-buried", Verb::kPeekBuried},
    Prefix{"reserve-with-timeout ", Verb::kReserveWithTimeout},
    Prefix{"reserve-with-timeout-ms ", Verb::kReserveWithTimeoutMs},
    Prefix{"reserve-job ", Verb::kReserveJob},
    Prefix{"reserve", Verb::kReserve},
    Prefix{"delete ", Verb::kDelete},
    Prefix{"release ", Verb::kRelease},
    Prefix{"release-ms ", Verb::kReleaseMs},
    Prefix{"bury ", Verb::kBury},
    Prefix{"kick ", Verb::kKick},
    Prefix{"kick-job ", Verb::kKickJob},
    Prefix{"touch ", Verb::kTouch},
    Prefix{"stats-job ", Verb::kStatsJob},
    Prefix{"stats-tube ", Verb::kStatsTube},
    Prefix{"stats-group ", Verb::kStatsGroup, kMaxLongLine},
    Prefix{"stats", Verb::kStats},
    Prefix{"use ", Verb::kUse},
    Prefix{"watch ", Verb::kWatch},
    Prefix{"ignore ", Verb::kIgnore},
    Prefix{"list-tubes-watched", Verb::kListTubesWatched},
    Prefix{"list-tube-used", Verb::kListTubeUsed},
    Prefix{"list-tubes", Verb::kListTubes},
    Prefix{"checkpoint", Verb::kCheckpoint},
    Prefix{"quit", Verb::kQuit},
    Prefix{"pause-tube", Verb::kPauseTube},
};

constexpr std::array<bool, 256> kNameBytes = [] {
  std::array<bool, 256> is{};
  constexpr std::string_view kAll =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()";
  for (char c : kAll) is[static_cast<unsigned char>(c)] = true;
  return is;
}();

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_byte(char c) {
  return kNameBytes[static_cast<unsigned char>(c)];
}

bool is_word(std::string_view text) {
  const auto is_plain = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > ' ' && byte != 0x7f;
  };
  return !text.empty() && text.size() <= queue::kMaxKey &&
         std::all_of(text.begin(), text.end(), is_plain);
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

// Reads the arguments of put, put-ms or put-at.
Form read_put(Arguments arguments, Command& c) {
  arguments.number(c.priority, kMaxU32);
  if (c.verb == Verb::kPut) {
    arguments.seconds(c.delay).seconds(c.ttr);
  } else {
    arguments.number(c.verb == Verb::kPutAt ? c.due_at : c.delay, kMaxU64).number(c.ttr, kMaxU64);
  }
  arguments.number(c.bytes, kMaxU32);
  if (!arguments.ok()) return Form::kBad;
  return arguments.ok_to_the_end() ? Form::kGood : Form::kCountedBad;
}

Form read_pause(std::string_view rest, Command& command) {
  if (!Arguments(rest).name_bytes(command.tube).seconds(command.delay).ok_to_the_end())
    return Form::kBad;
  return is_tube_name(command.tube) ? Form::kGood : Form::kCountedBad;
}

// Reads a job: its id, or key=KEY. What follows it and a space are options.
bool read_job(std::string_view rest, Command& c) {
  constexpr std::string_view kKey = "key=";
  const std::string_view job = rest.substr(0, rest.find(' '));
  c.options = rest.substr(std::min(rest.size(), job.size() + 1));
  if (!job.starts_with(kKey)) return Arguments(job).number(c.id, kMaxU64).ok_to_the_end();
  c.key = job.substr(kKey.size());
  return is_key(c.key);
}

// Reads the size of a body. What follows it and a space are options.
Form read_size(std::string_view rest, Command& c) {
  const std::string_view bytes = rest.substr(0, rest.find(' '));
  c.options = rest.substr(std::min(rest.size(), bytes.size() + 1));
  return good_if(Arguments(bytes).number(c.bytes, kMaxU32).ok_to_the_end());
}

// Reads how many jobs are asked for. What follows it and a space are options.
bool read_count(std::string_view rest, Command& c) {
  const std::string_view count = rest.substr(0, rest.find(' '));
  c.options = rest.substr(std::min(rest.size(), count.size() + 1));
  return Arguments(count).number(c.bound, kMaxBatch).ok_to_the_end() && c.bound > 0;
}

// Reads a schedule's name, the size of its body, and the options.
bool read_set_schedule(std::string_view rest, Command& c) {
  const auto take_word = [&rest] {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    return word;
  };
  c.tube = take_word();
  const std::string_view bytes = take_word();
  c.options = rest;
  return is_tube_name(c.tube) && Arguments(bytes).number(c.bytes, kMaxU32).ok_to_the_end();
}

// Reads the number as strtoul does, and keeps it modulo 2^32, as beanstalkd's unsigned int does.
Form read_bound(std::string_view rest, std::uint32_t& bound) {
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t\n\v\f\r"), rest.size()));
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  const auto number = take_digits(rest);
  if (!number) return Form::kBad;
  bound = static_cast<std::uint32_t>(negative ? 0 - *number : *number);
  return Form::kGood;
}

Form read_arguments(std::string_view rest, Command& c) {
  Arguments arguments(rest);
  switch (c.verb) {
    case Verb::kUnknown:
    case Verb::kQuit:
      return Form::kGood;

    case Verb::kPut:
    case Verb::kPutMs:
    case Verb::kPutAt:
      return read_put(arguments, c);

    case Verb::kPutJob:
    case Verb::kPutJobs:
    case Verb::kDeleteJobs:
    case Verb::kReleaseJobs:
      return read_size(rest, c);
    case Verb::kReserveJobs:
      return good_if(read_count(rest, c));
    case Verb::kFailJob: {
      const std::string_view id = rest.substr(0, rest.find(' '));
      if (!Arguments(id).number(c.id, kMaxU64).ok_to_the_end()) return Form::kBad;
      return read_size(rest.substr(std::min(rest.size(), id.size() + 1)), c);
    }
    case Verb::kSetSchedule:
      return good_if(read_set_schedule(rest, c));
    case Verb::kPatchJob:
    case Verb::kCancelJob:
    case Verb::kBuryJob:
      return good_if(read_job(rest, c));
    case Verb::kSetTube:
    case Verb::kListGroups:
    case Verb::kListJobs:
    case Verb::kCancelJobs:
    case Verb::kRetryJobs:
    case Verb::kMoveJobs:
    case Verb::kSpreadJobs:
    case Verb::kDueCounts:
      c.tube = rest.substr(0, rest.find(' '));
      c.options = rest.substr(std::min(rest.size(), c.tube.size() + 1));
      return good_if(is_tube_name(c.tube));
    case Verb::kStatsGroup:
      c.tube = rest.substr(0, rest.find(' '));
      c.key = rest.substr(std::min(rest.size(), c.tube.size() + 1));
      return good_if(is_tube_name(c.tube) && is_key(c.key));
    case Verb::kNameClient:
      c.tube = rest;
      return good_if(is_word(rest) && rest.size() <= queue::kMaxWorkerName);
    case Verb::kAuth:
      c.tube = rest;
      return good_if(is_word(rest));
    case Verb::kPeekJob:
    case Verb::kShowJob:
      return good_if(read_job(rest, c) && c.options.empty());

    case Verb::kPeek:
    case Verb::kReserveJob:
    case Verb::kDelete:
    case Verb::kKickJob:
    case Verb::kTouch:
    case Verb::kTouchJob:
    case Verb::kStatsJob:
    case Verb::kStoryJob:
      return good_if(arguments.number(c.id, kMaxU64).ok_to_the_end());

    case Verb::kRelease:
      return good_if(arguments.number(c.id, kMaxU64)
                         .number(c.priority, kMaxU32)
                         .seconds(c.delay)
                         .ok_to_the_end());
    case Verb::kReleaseMs:
      return good_if(arguments.number(c.id, kMaxU64)
                         .number(c.priority, kMaxU32)
                         .number(c.delay, kMaxU64)
                         .ok_to_the_end());
    case Verb::kBury:
      return good_if(arguments.number(c.id, kMaxU64).number(c.priority, kMaxU32).ok_to_the_end());

    case Verb::kReserveWithTimeout:
      return good_if(arguments.seconds(c.timeout, kMaxTimeoutSeconds).ok());
    case Verb::kReserveWithTimeoutMs:
      return good_if(arguments.number(c.timeout, kMaxTimeoutSeconds * 1'000).ok_to_the_end());
    case Verb::kKick:
      return read_bound(rest, c.bound);

    case Verb::kUse:
    case Verb::kWatch:
    case Verb::kIgnore:
    case Verb::kStatsTube:
    case Verb::kDeleteSchedule:
    case Verb::kPauseSchedule:
    case Verb::kResumeSchedule:
    case Verb::kTriggerSchedule:
    case Verb::kStatsSchedule:
    case Verb::kShowSchedule:
      c.tube = rest;
      return good_if(is_tube_name(rest));
    case Verb::kListSchedules:
      c.tube = rest.substr(rest.empty() ? 0 : 1);
      return good_if(rest.empty() || (rest.front() == ' ' && is_tube_name(c.tube)));
    case Verb::kPauseTube:
      return read_pause(rest, c);

    case Verb::kPeekReady:
    case Verb::kPeekDelayed:
    case Verb::kPeekBuried:
    case Verb::kReserve:
    case Verb::kStats:
    case Verb::kListTubes:
    case Verb::kListTubeUsed:
    case Verb::kListTubesWatched:
    case Verb::kCheckpoint:
      return good_if(rest.empty());
  }
  return Form::kBad;
}

}  // namespace

bool is_tube_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxTubeName && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), is_name_byte);
}

bool is_key(std::string_view key) {
  return is_word(key) && key.front() != '"';
}

std::size_t longest_line(std::string_view bytes) {
  for (const Prefix& prefix : kPrefixes) {
    if (bytes.starts_with(prefix.text)) return prefix.longest;
  }
  return kMaxLine;
}

Command parse_command(std::string_view line) {
  Command command;
  if (line.find('\0') != std::string_view::npos) {
    command.form = Form::kBad;
    return command;
  }
  for (const Prefix& prefix : kPrefixes) {
    if (!line.starts_with(prefix.text)) continue;
    command.verb = prefix.verb;
    command.form = read_arguments(line.substr(prefix.text.size()), command);
    return command;
  }
  return command;
}

}  // namespace carillon::server::beanstalk
