// Jobs as JSON (job_fields.h).
#include "server/http/job_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/beast/core/string.hpp>
#include <boost/json.hpp>
#include <charconv>
#include <functional>
#include <stdexcept>
#include <utility>

#include "server/api/attributes.h"
#include "server/api/names.h"
#include "server/http/reply.h"
#include "server/text/json_text.h"
#include "server/text/timestamp.h"

namespace carillon::server::http {

namespace json = boost::json;

namespace {

void read_times(Fields& fields, std::optional<queue::Millis>& delay,
                std::optional<queue::UtcMs>& due) {
  delay = fields.duration("delay");
  due = fields.moment("due");
  if (delay && due) fields.fault("due", "there is a delay already");
}

void read_delay(Fields& fields, std::string_view name, queue::Millis& delay) {
  if (fields.is_null(name)) delay = 0;
  delay = fields.duration(name).value_or(delay);
  if (delay > queue::kLastDue)
    fields.fault(name, fmt::format("{} ms: the longest has {} ms", delay, queue::kLastDue));
}

// A policy has no field for the type: a back-off without a larger bound is fixed.
void read_backoff(Fields& fields, queue::RetryPolicy& policy) {
  const bool was_fixed = policy.backoff > 0 && policy.backoff_max <= policy.backoff;
  const auto type = fields.choice("type", {"exponential", "fixed"});
  const bool fixed = type ? *type == 1 : was_fixed && !fields.is_null("type");
  if (fixed) policy.backoff_max = 0;
  read_delay(fields, "initial", policy.backoff);
  read_delay(fields, "max", policy.backoff_max);
  if (fields.is_null("jitter")) policy.jitter = 0;
  policy.jitter =
      static_cast<std::uint32_t>(fields.number("jitter", 0, 100).value_or(policy.jitter));
  if (fixed && policy.backoff_max > 0) fields.fault("max", "a fixed back-off has no bound");
  if (!fixed && policy.backoff == 0 && policy.backoff_max > 0)
    fields.fault("initial", "0 ms: twice 0 is 0, so an exponential back-off begins with 1 ms");
  if (!fixed && policy.backoff_max < policy.backoff)
    fields.fault("max", "an exponential back-off needs a bound, no smaller than initial");
}

std::string_view name_of(queue::JobState state, queue::Death death) {
  switch (state) {
    case queue::JobState::kDelayed:
      return "delayed";
    case queue::JobState::kReady:
      return "ready";
    case queue::JobState::kReserved:
      return "reserved";
    case queue::JobState::kBuried:
      return death == queue::Death::kNone ? "buried" : "dead";
  }
  return "unknown";
}

std::string_view name_of(queue::Ending ending) {
  switch (ending) {
    case queue::Ending::kFailed:
      return "failed";
    case queue::Ending::kTimedOut:
      return "timed_out";
    case queue::Ending::kLost:
      return "lost";
  }
  return "unknown";
}

}  // namespace

void set_text(json::object& object, std::string_view name, std::string_view text) {
  if (is_utf8(text)) {
    object[name] = text;
  } else {
    object[std::string(name) + "_base64"] = to_base64(text);
  }
}

std::optional<std::string> read_text(Fields& fields, std::string_view name,
                                     std::string_view other) {
  const auto text = fields.text(name);
  const auto base64 = fields.text(other);
  if (text && base64) fields.fault(other, fmt::format("there is a {} already", name));
  if (text) return std::string(*text);
  if (!base64) return std::nullopt;
  std::optional<std::string> bytes = from_base64(*base64);
  if (!bytes) fields.fault(other, "not Base64 (RFC 4648, section 4, with padding)");
  return bytes;
}

std::optional<queue::Millis> read_ttr(Fields& fields) {
  const auto ttr = fields.duration("ttr");
  if (!ttr || (*ttr >= queue::kMinTtr && *ttr <= queue::kMaxTtr)) return ttr;
  fields.fault("ttr",
               fmt::format("{} ms: a ttr has {} to {} ms", *ttr, queue::kMinTtr, queue::kMaxTtr));
  return std::nullopt;
}

json::object json_of(const queue::RetryPolicy& policy) {
  const bool fixed = policy.backoff == 0 || policy.backoff_max <= policy.backoff;
  json::object backoff{{"type", fixed ? "fixed" : "exponential"},
                       {"initial", shown_duration(policy.backoff)}};
  if (!fixed) backoff["max"] = shown_duration(policy.backoff_max);
  backoff["jitter"] = policy.jitter;
  return {{"max_attempts", policy.max_attempts},
          {"backoff", std::move(backoff)},
          {"lost_fails", policy.lost_fails}};
}

void read_retry(const json::object& object, const std::string& at, FieldFaults& faults,
                queue::RetryPolicy& policy) {
  Fields fields(object, at, faults);
  if (fields.is_null("max_attempts")) policy.max_attempts = 0;
  if (const auto most = fields.number("max_attempts", 0, UINT32_MAX))
    policy.max_attempts = static_cast<std::uint32_t>(*most);
  if (fields.is_null("lost_fails")) policy.lost_fails = false;
  policy.lost_fails = fields.flag("lost_fails").value_or(policy.lost_fails);
  if (fields.is_null("backoff")) policy.backoff = policy.backoff_max = policy.jitter = 0;
  if (const json::object* const found = fields.object("backoff")) {
    Fields backoff(*found, fields.pointer("backoff"), faults);
    read_backoff(backoff, policy);
    backoff.finish();
  }
  fields.finish();
}

void read_own_retry(Fields& fields, FieldFaults& faults, queue::RetryPolicy& policy) {
  const json::object* const retry = fields.object("retry");
  if (retry == nullptr) return;
  read_retry(*retry, fields.pointer("retry"), faults, policy);
  policy.counts_empty = policy == queue::RetryPolicy();
}

std::optional<queue::Millis> read_expires_in(Fields& fields) {
  const auto time = fields.duration("expires_in");
  if (time == queue::Millis{0}) fields.fault("expires_in", "0 ms: at least 1 ms");
  return time;
}

std::string read_attributes(Fields& fields) {
  json::object kept;
  for (const std::string_view name : {"content_type", "traceparent", "tracestate"})
    if (const auto text = fields.text(name)) kept[name] = *text;
  if (const json::object* const metadata = fields.object("metadata")) kept["metadata"] = *metadata;
  const json::value* const parent = kept.if_contains("traceparent");
  if (parent != nullptr && !is_traceparent(parent->as_string()))
    fields.fault("traceparent",
                 "not as W3C Trace Context has it: 00-TRACE-PARENT-FLAGS, and no id is all zeros");
  if (kept.contains("tracestate") && parent == nullptr)
    fields.fault("tracestate", "needs a traceparent");
  if (kept.empty()) return {};
  try {
    return attributes_of(json::serialize(kept));
  } catch (const std::invalid_argument& error) {
    fields.fault(kept.contains("metadata") ? "metadata" : kept.begin()->key(), error.what());
    return {};
  }
}

// Attributes that a client of the other protocol has named otherwise stand under their own name.
void show_attributes(const std::string& attributes, json::object& job) {
  json::error_code error;
  const json::value value = json::parse(attributes, error);
  if (error || !value.is_object()) return;
  json::object others;
  for (const auto& [name, of] : value.get_object()) {
    const bool is_ours = name == "content_type" || name == "metadata" || name == "traceparent" ||
                         name == "tracestate";
    (is_ours ? job : others)[name] = of;
  }
  if (!others.empty()) job["attributes"] = std::move(others);
}

std::string key_fault(std::string_view what, std::string_view text) {
  return fmt::format("\"{}\": a {} has {}", text, what, kKeyRule);
}

void require_key(std::string_view text) {
  if (!is_key(text)) throw Problem(kBadRequest, key_fault("key", text));
}

void read_job(const json::object& object, const std::string& at, FieldFaults& faults,
              JobFields& job) {
  Fields fields(object, at, faults);
  queue::PutOrder& order = job.order;
  const auto priority = fields.number("priority", 0, UINT32_MAX);
  order.priority = static_cast<queue::Priority>(priority.value_or(kUsualPriority));
  std::optional<queue::Millis> delay;
  read_times(fields, delay, order.due_at);
  order.due_in = delay.value_or(0);
  order.ttr = read_ttr(fields).value_or(order.ttr);
  if (const auto key = fields.text("key")) {
    if (!is_key(*key)) fields.fault("key", key_fault("key", *key));
    job.key = *key;
  }
  if (const auto group = fields.text("group")) {
    if (!is_key(*group)) fields.fault("group", key_fault("group", *group));
    job.group = *group;
  }
  if (const auto what =
          fields.choice("on_conflict", {"reject", "ignore", "replace", "keep_due", "debounce"}))
    order.on_conflict = static_cast<queue::OnConflict>(*what);
  read_delay(fields, "key_window", order.key_window);
  if (job.key.empty()) {
    for (const std::string_view name : {"on_conflict", "key_window"})
      if (fields.has(name)) fields.fault(name, "goes with a key alone");
  }
  read_own_retry(fields, faults, order.retry);
  order.expires_at = fields.moment("expires_at");
  order.expires_in = read_expires_in(fields).value_or(0);
  const auto at_expiry = fields.choice("at_expiry", {"drop", "dead"});
  if (at_expiry) order.at_expiry = static_cast<queue::AtExpiry>(*at_expiry);
  const bool expires = order.expires_at || order.expires_in > 0;
  if (order.expires_at && order.expires_in > 0)
    fields.fault("expires_in", "there is an expires_at already");
  if (at_expiry && !expires) fields.fault("at_expiry", "the job does not expire");
  order.spread = fields.duration("spread").value_or(0);
  job.attributes = read_attributes(fields);
  job.body = read_text(fields, "body", "body_base64").value_or("");
  fields.finish();
  order.key = job.key;
  order.group = job.group;
  order.attributes = job.attributes;
}

// A wrong header is ignored: the specification asks for that.
void add_trace(const Request& request, json::object& object) {
  const std::string_view parent = request.header("traceparent");
  const std::string_view state = request.header("tracestate");
  if (!is_traceparent(parent) || object.contains("traceparent")) return;
  object["traceparent"] = parent;
  if (!state.empty() && is_utf8(state)) object["tracestate"] = state;
}

bool describes_job(const Request& request) {
  if (!boost::beast::iequals(request.media_type(), kJsonType)) return false;
  return std::none_of(request.headers.begin(), request.headers.end(),
                      [](const auto& one) { return one.first.starts_with("carillon-"); });
}

void read_plain_job(const Request& request, JobFields& job) {
  // The headers become the same fields: so each is checked in one place.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kHeaders = {
      {{"carillon-delay", "delay"},
       {"carillon-due", "due"},
       {"carillon-group", "group"},
       {"carillon-key", "key"},
       {"carillon-on-conflict", "on_conflict"},
       {"carillon-priority", "priority"},
       {"carillon-ttr", "ttr"}}};
  json::object object;
  for (const auto& header : request.headers) {
    const auto& [name, value] = header;
    if (!name.starts_with("carillon-")) continue;
    const auto known = std::find_if(kHeaders.begin(), kHeaders.end(),
                                    [&](const auto& one) { return one.first == header.first; });
    if (known == kHeaders.end())
      throw Problem(kBadRequest, fmt::format("there is no header {}", name));
    std::uint64_t number = 0;
    const char* const end = value.data() + value.size();
    const auto [rest, error] = std::from_chars(value.data(), end, number);
    const bool is_name = known->second == "key" || known->second == "group";
    const bool is_number = !is_name && error == std::errc() && rest == end;
    object[known->second] = is_number ? json::value(number) : json::value(value);
  }
  add_trace(request, object);
  // What curl sends by itself says nothing of the body.
  const std::string_view type = request.header("content-type");
  if (!type.empty() && type != "application/x-www-form-urlencoded") object["content_type"] = type;
  FieldFaults faults;
  read_job(object, "", faults, job);
  faults.throw_if_any();
  job.body = request.body;
}

void read_patch(const json::object& object, FieldFaults& faults, PatchFields& patch) {
  Fields fields(object, "", faults);
  if (const auto priority = fields.number("priority", 0, UINT32_MAX))
    patch.patch.priority = static_cast<queue::Priority>(*priority);
  read_times(fields, patch.patch.due_in, patch.patch.due_at);
  patch.patch.ttr = read_ttr(fields);
  if (fields.is_null("expires_at")) patch.patch.expires_at = queue::kNeverExpires;
  if (const auto at = fields.moment("expires_at")) patch.patch.expires_at = at;
  patch.patch.expires_in = read_expires_in(fields);
  if (patch.patch.expires_at && patch.patch.expires_in)
    fields.fault("expires_in", "there is an expires_at already");
  if (const auto what = fields.choice("at_expiry", {"drop", "dead"}))
    patch.patch.at_expiry = static_cast<queue::AtExpiry>(*what);
  if (std::optional<std::string> body = read_text(fields, "body", "body_base64")) {
    patch.body = *std::move(body);
    patch.patch.body = patch.body;
  }
  for (const char* const name :
       {"priority", "delay", "due", "ttr", "body", "body_base64", "expires_in", "at_expiry"}) {
    if (fields.is_null(name))
      fields.fault(name, "null: a job cannot be without it; what is left out stays as it is");
  }
  if (!fields.is_null("content_type")) fields.text("content_type");
  if (!fields.is_null("metadata")) fields.object("metadata");
  for (const char* const name : {"content_type", "metadata"})
    if (const json::value* const value = object.if_contains(name)) patch.attributes[name] = *value;
  fields.finish();
}

json::object json_of(const queue::JobStats& stats, const std::vector<queue::Attempt>& story,
                     std::optional<std::string_view> body) {
  const queue::JobRecord& record = stats.record;
  const queue::JobExtras& extras = *record.extras;
  json::object job{{"id", record.id}, {"tube", stats.tube}};
  if (!stats.group.empty()) set_text(job, "group", stats.group);
  if (!extras.key.empty()) set_text(job, "key", extras.key);
  job["state"] = name_of(stats.state, extras.death);
  job["priority"] = record.priority;
  job["due"] = format_timestamp(record.due);
  job["ttr"] = shown_duration(record.ttr);
  job["created"] = format_timestamp(record.created);
  if (extras.expires != 0) {
    job["expires_at"] = format_timestamp(std::min(extras.expires, queue::kLastDue));
    job["at_expiry"] = extras.at_expiry == queue::AtExpiry::kDrop ? "drop" : "dead";
  }
  if (!extras.attributes.empty()) show_attributes(extras.attributes, job);
  if (extras.retry != queue::RetryPolicy()) job["retry"] = json_of(extras.retry);
  job["failed_attempts"] = extras.attempts;
  json::array attempts;
  for (const queue::Attempt& attempt : story) {
    json::object told{{"at", format_timestamp(attempt.at)}, {"ended", name_of(attempt.ending)}};
    set_text(told, "worker", attempt.worker);
    set_text(told, "error", attempt.error);
    attempts.push_back(std::move(told));
  }
  job["attempts"] = std::move(attempts);
  if (extras.cancel_asked) job["cancel_requested"] = true;
  job["body_bytes"] = record.body_bytes;
  if (body) set_text(job, "body", *body);
  return job;
}

std::string etag_of(const queue::JobStats& stats) {
  const queue::JobRecord& record = stats.record;
  const queue::JobExtras& extras = *record.extras;
  const std::string text = fmt::format(
      "{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", record.id, stats.tube, record.created,
      record.body_id(), record.priority, record.due, record.ttr, record.burial,
      record.history.reserves, static_cast<int>(stats.state), extras.attempts, extras.has_story,
      extras.cancel_asked, extras.expires, static_cast<int>(extras.at_expiry), extras.attributes);
  return fmt::format("\"{:016x}\"", std::hash<std::string>()(text));
}

}  // namespace carillon::server::http
