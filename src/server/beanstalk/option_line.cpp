// The fields of lines about jobs, groups and schedules (option_line.h).
#include "server/beanstalk/option_line.h"

#include <stdexcept>

#include "server/api/attributes.h"
#include "server/text/json_text.h"
#include "server/text/timestamp.h"

namespace carillon::server::beanstalk {

void OptionLine::moment(std::string_view name, queue::UtcMs at) {
  word(name, format_timestamp(at));
}

void OptionLine::duration(std::string_view name, queue::Millis duration) {
  word(name, fmt::format("{}ms", duration));
}

void OptionLine::text(std::string_view name, std::string_view value) {
  append_json_field(text_, name, value);
  text_ += ',';
}

void OptionLine::policy(const queue::RetryPolicy& policy) {
  if (policy == queue::RetryPolicy()) return;
  field("max_attempts", policy.max_attempts);
  const bool rises = policy.backoff_max > policy.backoff;
  word("backoff", rises ? fmt::format("{}ms..{}ms", policy.backoff, policy.backoff_max)
                        : fmt::format("{}ms", policy.backoff));
  word("jitter", fmt::format("{}%", policy.jitter));
  word("lost", policy.lost_fails ? "fails" : "returns");
}

void OptionLine::limits(const queue::Limits& limits) {
  count("max_running", limits.max_running);
  if (limits.rate == 0) return;
  word("rate", fmt::format("{}/{}ms", limits.rate, limits.period));
  field("burst", limits.burst);
}

// A program that embeds the queue may have put attributes that clients cannot put.
void OptionLine::attributes(const std::string& attributes) {
  try {
    field("attributes", attributes_of(attributes));
  } catch (const std::invalid_argument&) {
    text("attributes", attributes);
  }
}

void OptionLine::end() {
  if (text_.ends_with(',')) text_.pop_back();
  text_ += "}\n";
}

}  // namespace carillon::server::beanstalk
