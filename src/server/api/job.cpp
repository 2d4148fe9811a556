// Jobs as the API has them, both ways (job.h).
#include "server/api/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <functional>
#include <stdexcept>
#include <utility>

#include "carillon/queue/job.h"
#include "server/api/json_body.h"
#include "server/api/request.h"
#include "server/text/json_value.h"

namespace carillon::server {

namespace {

State state_of(queue::JobState state, queue::Death death) {
  const bool is_dead = state == queue::JobState::kBuried && death != queue::Death::kNone;
  return is_dead ? State::kDead : static_cast<State>(state);
}
static_assert(static_cast<int>(State::kBuried) == static_cast<int>(queue::JobState::kBuried));

static_assert(static_cast<int>(queue::Death::kExpired) - 1 == static_cast<int>(Died::kByExpiry));

// A count of nothing is left out.
std::optional<std::uint32_t> count_of(std::uint32_t count) {
  return count > 0 ? std::optional(count) : std::nullopt;
}

Ended ended_of(queue::Ending ending) {
  return static_cast<Ended>(static_cast<int>(ending) - 1);
}
static_assert(static_cast<int>(queue::Ending::kLost) - 1 == static_cast<int>(Ended::kByLoss));

}  // namespace

Job job_of(const queue::JobStats& stats) {
  const queue::JobRecord& record = stats.record;
  const queue::JobExtras& extras = *record.extras;
  Job job;
  job.id = record.id;
  job.tube = stats.tube;
  if (!stats.group.empty()) job.group = Bytes{stats.group};
  if (!extras.key.empty()) job.key = Bytes{extras.key};
  if (extras.key_window > 0) job.key_window = Duration{extras.key_window};
  job.state = state_of(stats.state, extras.death);
  if (job.state == State::kDead) job.died = static_cast<Died>(static_cast<int>(extras.death) - 1);
  job.priority = record.priority;
  job.due.at = record.due;
  job.ttr.ms = record.ttr;
  job.created.at = record.created;
  if (extras.expires != 0) {
    job.expires_at = Moment{std::min(extras.expires, queue::kLastDue)};
    job.at_expiry = extras.at_expiry;
  }
  if (!extras.attributes.empty()) show_attributes(extras.attributes, job);
  if (extras.retry != queue::RetryPolicy()) job.retry = retry_of(extras.retry);
  job.failed_attempts = extras.attempts;
  if (extras.cancel_asked) job.cancel_requested = true;
  job.reserves = count_of(record.history.reserves);
  job.timed_out = count_of(record.history.timeouts);
  job.releases = count_of(record.history.releases);
  job.buries = count_of(record.history.buries);
  job.kicks = count_of(record.history.kicks);
  job.body_bytes = record.body_bytes;
  return job;
}

std::vector<Attempt> attempts_of(const std::vector<queue::Attempt>& story) {
  std::vector<Attempt> attempts;
  for (const queue::Attempt& one : story)
    attempts.push_back({.at = {one.at},
                        .ended = ended_of(one.ending),
                        .worker = {one.worker},
                        .error = {one.error}});
  return attempts;
}

std::string etag_of(const queue::JobStats& stats) {
  const queue::JobRecord& record = stats.record;
  const queue::JobExtras& extras = *record.extras;
  const std::string text = fmt::format(
      "{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", record.id, stats.tube, record.created,
      record.body_id(), record.priority, record.due, record.ttr, record.burial,
      record.history.reserves, record.history.buries + record.history.kicks,
      static_cast<int>(stats.state), extras.attempts, extras.has_story, extras.cancel_asked,
      extras.expires, static_cast<int>(extras.at_expiry), extras.attributes);
  return fmt::format("\"{:016x}\"", std::hash<std::string>()(text));
}

std::optional<KeyState> key_state_of(const queue::PutOutcome& put) {
  if (put.owner == queue::KeyOwner::kNone) return std::nullopt;
  return static_cast<KeyState>(static_cast<int>(put.owner) - 1);
}
static_assert(static_cast<int>(queue::KeyOwner::kDone) - 1 == static_cast<int>(KeyState::kDone));

std::string_view name_of(queue::KeyOwner owner) {
  if (owner == queue::KeyOwner::kNone) return {};
  return kWords<KeyState>[static_cast<std::size_t>(owner) - 1];
}

queue::PutOrder order_of(Reader& reader, const JobDescription& job) {
  if (job.delay && job.due) reader.fault("due", "does not go with `delay`");
  if (job.expires_at && job.expires_in) reader.fault("expires_in", "does not go with `expires_at`");
  if (job.at_expiry && !job.expires_at && !job.expires_in)
    reader.fault("at_expiry", "the job does not expire");
  queue::PutOrder order{.priority = job.priority,
                        .due_in = job.delay.value_or(Duration()).ms,
                        .ttr = job.ttr.ms,
                        .key_window = job.key_window.value_or(Duration()).ms,
                        .group = job.group,
                        .expires_in = job.expires_in.value_or(Duration()).ms,
                        .at_expiry = job.at_expiry.value_or(queue::AtExpiry::kDrop),
                        .spread = job.spread.ms};
  if (job.due) order.due_at = job.due->at;
  if (job.expires_at) order.expires_at = job.expires_at->at;
  if (job.retry) {
    reader.within("retry", [&] { apply(reader, *job.retry, order.retry); });
    order.retry.counts_empty = order.retry == queue::RetryPolicy();
  }
  return order;
}

queue::PutOrder order_of(Reader& reader, const NewJob& job) {
  constexpr std::string_view kNoKey = "needs `key`";
  if (job.key.empty() && job.on_conflict) reader.fault("on_conflict", std::string(kNoKey));
  if (job.key.empty() && job.key_window) reader.fault("key_window", std::string(kNoKey));
  queue::PutOrder order = order_of(reader, static_cast<const JobDescription&>(job));
  order.key = job.key;
  order.on_conflict = job.on_conflict.value_or(queue::OnConflict::kReject);
  return order;
}

// --- The text in which the store keeps attributes.

namespace {

// Takes the attribute out of the object if it is a text, as an attribute of this name must be.
std::optional<std::string> take_text(boost::json::object& from, std::string_view name) {
  const boost::json::value* const found = from.if_contains(name);
  if (found == nullptr || !found->is_string()) return std::nullopt;
  std::optional<std::string> text(std::string_view(found->get_string()));
  from.erase(name);
  return text;
}

}  // namespace

// The form is version-trace-parent-flags in small hexadecimal digits (W3C Trace Context, 3.2). An
// id of zeros means that there is no trace, or no parent (3.2.2.3 and 3.2.2.4).
bool is_traceparent(std::string_view text) {
  constexpr std::string_view kForm = "00-00000000000000000000000000000000-0000000000000000-00";
  const bool has_form =
      text.size() == kForm.size() &&
      std::equal(text.begin(), text.end(), kForm.begin(), [](char c, char form) {
        return form == '-' ? c == '-' : (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
      });
  if (!has_form || text.starts_with("ff")) return false;
  constexpr std::size_t kTrace = 3;
  constexpr std::size_t kParent = 36;
  return text.substr(kTrace, 32) != kForm.substr(kTrace, 32) &&
         text.substr(kParent, 16) != kForm.substr(kParent, 16);
}

Attributes with_type_of(const JobBody& body, Attributes attributes) {
  if (body.is_json && !attributes.content_type) attributes.content_type = kJsonType;
  return attributes;
}

std::string kept_attributes(Reader& reader, const Attributes& attributes) {
  boost::json::object kept;
  if (attributes.content_type) kept["content_type"] = *attributes.content_type;
  if (attributes.traceparent) kept["traceparent"] = *attributes.traceparent;
  if (attributes.tracestate) kept["tracestate"] = *attributes.tracestate;
  if (attributes.metadata) kept["metadata"] = attributes.metadata->object;
  if (attributes.traceparent && !is_traceparent(*attributes.traceparent))
    reader.fault("traceparent", fmt::format("\"{}\": not a traceparent of W3C Trace Context: "
                                            "00-TRACE-PARENT-FLAGS, and no id is all zeros",
                                            *attributes.traceparent));
  if (attributes.tracestate && !attributes.traceparent)
    reader.fault("tracestate", "needs `traceparent`");
  if (attributes.attributes)
    for (const auto& [name, value] : attributes.attributes->object) kept.emplace(name, value);
  if (kept.empty()) return {};
  try {
    return attributes_of(kept);
  } catch (const std::invalid_argument& error) {
    reader.fault(attributes.metadata     ? "metadata"
                 : attributes.attributes ? "attributes"
                                         : std::string_view(kept.begin()->key()),
                 error.what());
    return {};
  }
}

void show_attributes(const std::string& kept, Attributes& into) {
  boost::json::error_code error;
  boost::json::value value = boost::json::parse(kept, error);
  if (error || !value.is_object()) return;
  boost::json::object& left = value.get_object();
  into.content_type = take_text(left, "content_type");
  into.traceparent = take_text(left, "traceparent");
  into.tracestate = take_text(left, "tracestate");
  if (boost::json::value* const metadata = left.if_contains("metadata");
      metadata != nullptr && metadata->is_object()) {
    into.metadata = Json{std::move(metadata->get_object())};
    left.erase("metadata");
  }
  if (!left.empty()) into.attributes = Json{std::move(left)};
}

std::string attributes_of(std::string_view json) {
  boost::json::error_code error;
  const boost::json::value value = boost::json::parse(json, error);
  if (error) throw std::invalid_argument("not JSON: " + error.message());
  if (!value.is_object()) throw std::invalid_argument("not a JSON object");
  return attributes_of(value.get_object());
}

std::string attributes_of(const boost::json::object& attributes) {
  const boost::json::value* const type = attributes.if_contains("content_type");
  if (type != nullptr && type->is_string() && !kTypeForm.is_good(type->get_string()))
    throw std::invalid_argument(fmt::format("content_type: {}", kTypeForm.fault));
  std::string word;
  for (const char c : json_text(attributes)) {
    if (c == ' ') {
      word += "\\u0020";
    } else {
      word += c;
    }
  }
  if (word.size() > queue::kMaxAttributes) {
    throw std::invalid_argument(
        fmt::format("{} bytes as JSON; the most is {}", word.size(), queue::kMaxAttributes));
  }
  return word;
}

std::string merged_attributes(std::string_view attributes, const boost::json::object& change) {
  boost::json::object merged;
  if (!attributes.empty()) merged = boost::json::parse(attributes).as_object();
  merge(change, merged);
  return merged.empty() ? std::string() : attributes_of(merged);
}

}  // namespace carillon::server
