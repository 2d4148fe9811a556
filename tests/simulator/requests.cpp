// Writes requests, and reads answers (requests.h).

#include "simulator/requests.h"

#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <utility>

#include "server/text/json_text.h"
#include "server/text/timestamp.h"
#include "simulator/history.h"
#include "simulator/talker_words.h"

namespace carillon::simulator {

namespace {

namespace json = boost::json;
using queue::Millis;

constexpr std::uint64_t kUnbounded = 10'000;  // the usual bound of a change of many jobs

std::string encoded(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string all;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    const auto byte = static_cast<unsigned char>(c);
    is_plain ? void(all += c) : void((all += '%').append({kHex[byte >> 4], kHex[byte & 15]}));
  }
  return all;
}

void write(Command& command, std::string_view method, const std::string& target,
           const std::optional<json::object>& object = std::nullopt) {
  const std::string body = object ? json::serialize(*object) : std::string();
  command.by_http = true;
  command.bytes = std::string(method) + " " + target + " HTTP/1.1\r\nHost: localhost\r\n";
  if (method != "GET") command.bytes += "Content-Length: " + number(body.size()) + "\r\n";
  command.bytes += "\r\n" + body;
}

void set_text(json::object& object, std::string_view name, std::string_view text) {
  if (server::is_utf8(text)) {
    object[name] = text;
  } else {
    object[std::string(name) + "_base64"] = server::to_base64(text);
  }
}

std::string tube_path(const Command& command) {
  return "/v1/tubes/" + encoded(command.tube);
}

// --- Which jobs.

std::string states_of(std::uint32_t states) {
  using queue::JobState;
  constexpr std::array<std::pair<const char*, std::uint32_t>, 5> kStates = {
      {{"delayed", bit_of(JobState::kDelayed)},
       {"buried", bit_of(JobState::kBuried)},
       {"dead", queue::kDeadJobs},
       {"ready", bit_of(JobState::kReady)},
       {"reserved", bit_of(JobState::kReserved)}}};
  std::string text;
  for (const auto& [name, bit] : kStates)
    if ((states & bit) != 0) text += (text.empty() ? "" : ",") + std::string(name);
  return text;
}

json::object filter_of(const Command& command) {
  const queue::JobFilter& filter = command.filter;
  json::object told;
  // What spreadJobs means is delayed.
  if (filter.states != queue::kAllStates && command.verb != Verb::kSpreadJobs)
    told["state"] = states_of(filter.states);
  if (!filter.group.empty()) told["group"] = filter.group;
  if (!filter.key_prefix.empty()) told["key_prefix"] = filter.key_prefix;
  if (filter.due_from != 0) told["due_after"] = server::format_timestamp(filter.due_from);
  if (filter.due_before != UINT64_MAX)
    told["due_before"] = server::format_timestamp(filter.due_before);
  return told;
}

void write_list(Command& command, std::string target, const json::object& filter) {
  target += "?page_size=" + number(command.bound);
  for (const auto& [name, value] : filter)
    target += "&" + std::string(name) + "=" + encoded(value.as_string());
  if (!command.after.empty()) target += "&page_token=" + encoded(command.after);
  write(command, "GET", target);
}

void write_due_counts(Command& command) {
  constexpr Millis kHour = 3'600'000;
  std::string target = tube_path(command) + "/due?by=";
  target += command.over == 0 ? "minute" : command.over == kHour ? "hour" : "day";
  if (command.bound != 0) target += "&spans=" + number(command.bound);
  write(command, "GET", target);
}

void write_change(Command& command, const char* verb) {
  json::object filter = filter_of(command);
  filter["tube"] = command.tube;
  json::object asked{{"filter", std::move(filter)}};
  if (command.bound != kUnbounded) asked["max"] = command.bound;
  if (command.dry_run) asked["dry_run"] = true;
  if (!command.to.empty()) asked["to"] = command.to;
  if (command.over != 0) asked["over"] = duration(command.over);
  if (!command.after.empty()) asked["page_token"] = command.after;
  write(command, "POST", std::string("/v1/jobs:") + verb, asked);
}

// --- What is set.

json::value or_null(std::uint64_t number) {
  return number == 0 ? json::value(nullptr) : json::value(number);
}

json::object backoff_of(Millis initial, Millis most) {
  json::object backoff{{"type", most == 0 ? "fixed" : "exponential"},
                       {"initial", duration(initial)}};
  if (most != 0) backoff["max"] = duration(most);
  return backoff;
}

json::object retry_of(const PolicyOptions& policy) {
  json::object retry;
  if (policy.max_attempts) retry["max_attempts"] = *policy.max_attempts;
  if (policy.lost_fails) retry["lost_fails"] = *policy.lost_fails;
  json::object backoff;
  if (policy.backoff) backoff = backoff_of(*policy.backoff, policy.backoff_max);
  if (policy.jitter) backoff["jitter"] = *policy.jitter;
  if (!backoff.empty()) retry["backoff"] = std::move(backoff);
  return retry;
}

json::object retry_of(const queue::RetryPolicy& policy) {
  return retry_of(PolicyOptions{.max_attempts = policy.max_attempts,
                                .backoff = policy.backoff,
                                .backoff_max = policy.backoff_max,
                                .jitter = policy.jitter,
                                .lost_fails = policy.lost_fails});
}

void add_rate(json::object& limits, std::string_view name, const LimitOptions& options) {
  if (!options.rate) return;
  if (*options.rate == 0) {
    limits[name] = nullptr;
    return;
  }
  json::object rate{{"jobs", *options.rate}, {"per", duration(options.period)}};
  if (options.burst) rate["burst"] = *options.burst;
  limits[name] = std::move(rate);
}

void write_settings(Command& command) {
  json::object patch;
  json::object limits;
  if (command.limits.max_running) limits["max_running"] = or_null(*command.limits.max_running);
  add_rate(limits, "rate", command.limits);
  add_rate(limits, "put_rate", command.put_rate);
  if (!limits.empty()) patch["limits"] = std::move(limits);
  if (command.weight) patch["weight"] = *command.weight;
  if (!command.group.empty())
    return write(command, "PATCH", tube_path(command) + "/groups/" + encoded(command.group), patch);
  if (command.policy.names_any()) patch["retry"] = retry_of(command.policy);
  if (command.refuses_puts) patch["draining"] = *command.refuses_puts;
  if (command.retention) {
    patch["retention"] =
        *command.retention == 0 ? json::value(nullptr) : json::value(duration(*command.retention));
  }
  write(command, "PATCH", tube_path(command), patch);
}

// --- Schedules.

json::object job_of(const queue::Schedule& schedule) {
  json::object job{
      {"tube", schedule.tube}, {"priority", schedule.priority}, {"ttr", duration(schedule.ttr)}};
  if (!schedule.group.empty()) job["group"] = schedule.group;
  if (schedule.retry != queue::RetryPolicy()) job["retry"] = retry_of(schedule.retry);
  if (schedule.expires_in > 0) {
    job["expires_in"] = duration(schedule.expires_in);
    job["at_expiry"] = schedule.at_expiry == queue::AtExpiry::kDrop ? "drop" : "dead";
  }
  if (!schedule.attributes.empty()) {
    const json::value attributes = json::parse(schedule.attributes);
    for (const auto& [name, value] : attributes.as_object()) job[name] = value;
  }
  set_text(job, "body", schedule.body);
  return job;
}

void write_schedule(Command& command, const std::string& path) {
  const queue::Schedule& schedule = command.asked;
  json::object asked{{"job", job_of(schedule)}};
  if (!schedule.cron.empty()) {
    asked["cron"] = schedule.cron;
    asked["time_zone"] = schedule.zone;
    asked["gap"] = schedule.run_after_gap ? "after" : "skip";
  } else {
    asked["every"] = duration(schedule.every);
    if (schedule.start) asked["start"] = server::format_timestamp(*schedule.start);
  }
  asked["catch_up"] = schedule.catch_up == queue::CatchUp::kNone  ? "none"
                      : schedule.catch_up == queue::CatchUp::kAll ? "all"
                                                                  : "last";
  if (schedule.catch_up == queue::CatchUp::kAll)
    asked["catch_up_window"] = duration(schedule.catch_up_window);
  asked["overlap"] = schedule.overlap == queue::Overlap::kAllow  ? "allow"
                     : schedule.overlap == queue::Overlap::kSkip ? "skip"
                                                                 : "queue";
  asked["spread"] = duration(schedule.spread);
  write(command, "PUT", path, asked);
}

// --- Answers.

std::string_view word_for(std::uint64_t status) {
  switch (status) {
    case 200:
    case 201:
    case 204:
      return "OK";
    case 202:
      return "ACCEPTED";
    case 400:
      return "BAD_REQUEST";
    case 404:
      return "NOT_FOUND";
    case 409:
      return "CONFLICT";
    case 500:
      return "INTERNAL_ERROR";
    case 503:
      return "OUT_OF_MEMORY";
    default:
      throw Violation("an answer has the status " + number(status));
  }
}

std::uint64_t number_behind(std::string_view text, std::string_view name) {
  std::uint64_t number = 0;
  const std::size_t at = text.find(name);
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + name.size());
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

void write_request(Command& command) {
  const std::string job = "/v1/jobs/" + number(command.id);
  const std::string schedule = "/v1/schedules/" + encoded(command.schedule);
  switch (command.verb) {
    case Verb::kShowJob:
      if (command.key.empty()) return write(command, "GET", job);
      return write(command, "GET", tube_path(command) + "/keys/" + encoded(command.key));
    case Verb::kBuryJob:
      if (!command.patch.priority) return write(command, "POST", job + ":bury");
      return write(command, "POST", job + ":bury",
                   json::object{{"priority", *command.patch.priority}});
    case Verb::kSetTube:
      return write_settings(command);
    case Verb::kStatsGroup:
      return write(command, "GET", tube_path(command) + "/groups/" + encoded(command.group));
    case Verb::kListJobs:
      return write_list(command, tube_path(command) + "/jobs", filter_of(command));
    case Verb::kListGroups:
      return write_list(command, tube_path(command) + "/groups", {});
    case Verb::kDueCounts:
      return write_due_counts(command);
    case Verb::kCheckpoint:
      return write(command, "POST", "/v1/checkpoint");
    case Verb::kListSchedules:
      return write_list(command, "/v1/schedules", {});
    case Verb::kCancelJobs:
      return write_change(command, "cancel");
    case Verb::kRetryJobs:
      return write_change(command, "retry");
    case Verb::kMoveJobs:
      return write_change(command, "move");
    case Verb::kSpreadJobs:
      return write_change(command, "spread");
    case Verb::kShowChange:
      return write(command, "GET", "/v1/operations/" + number(command.id));
    case Verb::kSetSchedule:
      return write_schedule(command, schedule);
    case Verb::kShowSchedule:
      return write(command, "GET", schedule);
    case Verb::kDeleteSchedule:
      return write(command, "DELETE", schedule);
    case Verb::kPauseSchedule:
      return write(command, "POST", schedule + ":pause");
    case Verb::kResumeSchedule:
      return write(command, "POST", schedule + ":resume");
    case Verb::kTriggerSchedule:
      return write(command, "POST", schedule + ":trigger");
    default:
      throw Violation("there is no request for it");
  }
}

Command from_there_on(const Command& command, std::string_view token) {
  Command following = command;
  following.goes_on = true;
  following.after = token;
  write_request(following);
  return following;
}

std::optional<Reply> take_answer(std::string_view& bytes) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  const std::size_t head = bytes.find(kEnd);
  if (head == std::string_view::npos) return std::nullopt;
  const std::size_t body = number_behind(bytes.substr(0, head), "\r\nContent-Length: ");
  const std::size_t whole = head + kEnd.size() + body;
  if (bytes.size() < whole) return std::nullopt;
  Reply reply;
  reply.line = reply.word = word_for(number_behind(bytes, "HTTP/1.1 "));
  reply.text = bytes.substr(head + kEnd.size(), body);
  bytes.remove_prefix(whole);
  return reply;
}

json::object object_of(const Reply& reply) {
  boost::system::error_code error;
  const json::value value = json::parse(json::string_view(reply.text), error);
  if (error || !value.is_object())
    throw Violation("an answer is no JSON object: " + std::string(reply.text));
  return value.as_object();
}

std::uint64_t number_in(const json::object& of, std::string_view name) {
  const json::value* const value = of.if_contains(name);
  return value != nullptr && value->is_number() ? value->to_number<std::uint64_t>() : 0;
}

std::string text_in(const json::object& of, std::string_view name) {
  const json::value* const coded = of.if_contains(std::string(name) + "_base64");
  if (coded != nullptr) return server::from_base64(coded->as_string()).value();
  const json::value* const value = of.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

std::string next_page_of(const json::object& page) {
  if (!page.contains("next_page_token"))
    throw Violation("a page does not say whether others follow");
  return text_in(page, "next_page_token");
}

}  // namespace carillon::simulator
