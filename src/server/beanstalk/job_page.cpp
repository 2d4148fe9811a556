// The lines of a page of jobs (job_page.h).
#include "server/beanstalk/job_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "server/attributes.h"
#include "server/beanstalk/stats.h"
#include "server/json_text.h"
#include "server/timestamp.h"

namespace carillon::server::beanstalk {
namespace {

// One job, with the names of put-job's options and values as it takes them.
class Line {
 public:
  explicit Line(std::string& to) : text_(to) { text_ += '{'; }

  template <class Value>
  void field(std::string_view name, const Value& value) {
    fmt::format_to(std::back_inserter(text_), "\"{}\":{},", name, value);
  }
  void word(std::string_view name, std::string_view value) {
    fmt::format_to(std::back_inserter(text_), "\"{}\":\"{}\",", name, value);
  }
  void moment(std::string_view name, queue::UtcMs at) { word(name, format_timestamp(at)); }
  void text(std::string_view name, std::string_view value) {
    append_json_field(text_, name, value);
    text_ += ',';
  }
  void count(std::string_view name, std::uint32_t value) {
    if (value > 0) field(name, value);
  }
  void end() {
    text_.back() = '}';
    text_ += '\n';
  }

 private:
  std::string& text_;
};

void add_policy(Line& line, const queue::RetryPolicy& policy) {
  if (policy == queue::RetryPolicy()) return;
  line.field("max_attempts", policy.max_attempts);
  const bool rises = policy.backoff_max > policy.backoff;
  line.word("backoff", rises ? fmt::format("{}ms..{}ms", policy.backoff, policy.backoff_max)
                             : fmt::format("{}ms", policy.backoff));
  line.word("jitter", fmt::format("{}%", policy.jitter));
  line.word("lost", policy.lost_fails ? "fails" : "returns");
}

// Whoever embeds the queue may have put others than clients can.
void add_attributes(Line& line, const std::string& attributes) {
  try {
    line.field("attributes", attributes_of(attributes));
  } catch (const std::invalid_argument&) {
    line.text("attributes", attributes);
  }
}

void add_extras(Line& line, const queue::JobExtras& extras) {
  if (!extras.key.empty()) line.text("key", extras.key);
  if (extras.key_window > 0) line.word("key_window", fmt::format("{}ms", extras.key_window));
  add_policy(line, extras.retry);
  line.count("attempts", extras.attempts);
  if (extras.death != queue::Death::kNone) line.word("dead", name_of(extras.death));
  if (extras.cancel_asked) line.field("cancel_asked", true);
  if (!extras.attributes.empty()) add_attributes(line, extras.attributes);
  if (extras.expires != 0) {
    line.word("expires_at", format_timestamp(std::min(extras.expires, queue::kLastDue)));
    line.word("at_expiry", name_of(extras.at_expiry));
  }
}

}  // namespace

std::size_t JobPage::at_once() const {
  return static_cast<std::size_t>(options_.limit) - jobs_;
}

void JobPage::take(std::vector<queue::ListedJob> jobs) {
  pending_ = std::move(jobs);
  at_ = 0;
}

queue::ListedJob* JobPage::next() {
  if (at_ == pending_.size() || !has_room()) return nullptr;
  return &pending_[at_];
}

void JobPage::add(std::string_view name, std::optional<std::string_view> text) {
  const queue::ListedJob& job = pending_[at_++];
  const queue::JobRecord& record = job.record;
  Line line(text_);
  line.field("id", record.id);
  line.word("tube", list_.tube);
  line.word("state", name_of(job.state));
  line.moment("due", record.due);
  line.field("pri", record.priority);
  line.word("ttr", fmt::format("{}ms", record.ttr));
  line.moment("created", record.created);
  if (!job.group.empty()) line.text("group", job.group);
  if (record.extras) add_extras(line, *record.extras);
  line.count("reserves", record.history.reserves);
  line.count("timeouts", record.history.timeouts);
  line.count("releases", record.history.releases);
  line.count("buries", record.history.buries);
  line.count("kicks", record.history.kicks);
  if (!job.worker.empty()) line.text("worker", job.worker);
  line.field("body_bytes", record.body_bytes);
  if (text) line.text(name, *text);
  line.end();
  ++jobs_;
}

bool JobPage::is_full() const {
  if (at_ < pending_.size()) return !has_room();
  return !has_room() || list_.done || list_.looked_at >= kMostLookedAt;
}

std::string JobPage::finish() {
  const bool all_taken = at_ == pending_.size();
  if (all_taken && list_.done) {
    text_ += "{\"next\":null";
  } else {
    // At least one of those that were taken has its line, because there was room for it.
    const queue::JobCursor next =
        all_taken ? list_.next : queue::JobCursor::after(pending_[at_ - 1].record);
    fmt::format_to(std::back_inserter(text_), "{{\"next\":\"{}\"", to_text(next));
  }
  fmt::format_to(std::back_inserter(text_), ",\"looked_at\":{}}}\n", list_.looked_at);
  return std::move(text_);
}

}  // namespace carillon::server::beanstalk
