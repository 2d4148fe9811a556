// The lines of a page of jobs (job_page.h).
#include "server/beanstalk/job_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "carillon/require.h"
#include "server/beanstalk/option_line.h"
#include "server/beanstalk/stats.h"

namespace carillon::server::beanstalk {
namespace {

void add_extras(OptionLine& line, const queue::JobExtras& extras) {
  if (!extras.key.empty()) line.text("key", extras.key);
  if (extras.key_window > 0) line.duration("key_window", extras.key_window);
  line.policy(extras.retry);
  line.count("attempts", extras.attempts);
  if (extras.death != queue::Death::kNone) line.word("dead", name_of(extras.death));
  if (extras.cancel_asked) line.field("cancel_asked", true);
  if (!extras.attributes.empty()) line.attributes(extras.attributes);
  if (extras.expires != 0) {
    line.moment("expires_at", std::min(extras.expires, queue::kLastDue));
    line.word("at_expiry", name_of(extras.at_expiry));
  }
}

}  // namespace

std::size_t JobPage::at_once() const {
  return static_cast<std::size_t>(options_.limit) - jobs_;
}

void JobPage::take(std::vector<queue::ListedJob> jobs) {
  CARILLON_REQUIRE(at_ == pending_.size(), at_, pending_.size());
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
  OptionLine line(text_);
  line.field("id", record.id);
  line.word("tube", list_.tube);
  line.word("state", name_of(job.state));
  line.moment("due", record.due);
  line.field("pri", record.priority);
  line.duration("ttr", record.ttr);
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
    // At least one of the jobs that were taken has a line, because there was room for it.
    const queue::JobCursor next =
        all_taken ? list_.next : queue::JobCursor::after(pending_[at_ - 1].record);
    fmt::format_to(std::back_inserter(text_), "{{\"next\":\"{}\"", to_text(next));
  }
  fmt::format_to(std::back_inserter(text_), ",\"looked_at\":{}{}}}\n", list_.looked_at,
                 list_.incomplete ? ",\"incomplete\":true" : "");
  return std::move(text_);
}

}  // namespace carillon::server::beanstalk
