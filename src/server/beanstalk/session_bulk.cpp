// The commands that change or count many jobs: cancel-jobs, retry-jobs, move-jobs, spread-jobs,
// due-counts (session.h). They run in steps, and other clients are served in between.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/beanstalk/session.h"
#include "server/text/timestamp.h"

namespace carillon::server::beanstalk {
namespace {

// One command scans at most this many jobs, and then answers, so that its client can show its
// progress.
constexpr std::uint64_t kMostPassed = 262'144;

queue::JobBulk::Action action_of(Verb verb) {
  using Action = queue::JobBulk::Action;
  if (verb == Verb::kCancelJobs) return Action::kCancel;
  if (verb == Verb::kRetryJobs) return Action::kRetry;
  return verb == Verb::kMoveJobs ? Action::kMove : Action::kSpread;
}

ListOptionsOf options_of(Verb verb) {
  if (verb == Verb::kCancelJobs) return ListOptionsOf::kCancel;
  if (verb == Verb::kRetryJobs) return ListOptionsOf::kRetry;
  return verb == Verb::kMoveJobs ? ListOptionsOf::kMove : ListOptionsOf::kSpread;
}

std::string due_lines(const queue::DueCounts& counts) {
  std::string text;
  const auto to = std::back_inserter(text);
  for (std::size_t span = 0; span < counts.jobs.size(); ++span) {
    if (counts.jobs[span] == 0) continue;
    const queue::UtcMs end = counts.bounds[span + 1];
    fmt::format_to(to,
                   R"({{"from":"{}","before":"{}","jobs":{},"estimated":{}}})"
                   "\n",
                   format_timestamp(std::min(counts.bounds[span], queue::kLastDue)),
                   format_timestamp(std::min(end, queue::kLastDue)), counts.jobs[span],
                   end > counts.exact_until);
  }
  return text;
}

std::string_view name_of(queue::JobBulk::Action action) {
  using Action = queue::JobBulk::Action;
  if (action == Action::kCancel) return "jobs:cancel";
  if (action == Action::kRetry) return "jobs:retry";
  return action == Action::kMove ? "jobs:move" : "jobs:spread";
}

}  // namespace

void Session::change_jobs(const Command& c) {
  const ListOptionsOf of = beanstalk::options_of(c.verb);
  const auto options = or_bad_option([&] { return parse_list_options(c.options, of); });
  if (!options) return;
  if (options->to == c.tube) return replies_.add(0, "BAD_OPTION to: the jobs are in this tube\r\n");
  if (const std::string why = options->to.empty() ? "" : caller_.lacks_tube(options->to);
      !why.empty())
    return replies_.add(0, kForbidden, std::string_view(why), kEnd);
  queue::JobBulk bulk;
  bulk.action = action_of(c.verb);
  bulk.list = {.tube = std::string(c.tube), .filter = options->filter, .next = options->after};
  bulk.to = options->to;
  bulk.over = options->over;
  bulk.bound = options->limit;
  bulk.dry_run = options->dry_run;
  if (const std::string why = bulk.fault(); !why.empty())
    return replies_.add(0, "BAD_OPTION ", std::string_view(why), kEnd);
  if (options->is_first && !service_.engine().tube_stats(service_.now(), c.tube))
    return answer_not_found();
  bulk_ = std::make_unique<queue::JobBulk>(std::move(bulk));
  state_ = State::kChanging;
}

void Session::go_on_changing() {
  try {
    service_.engine().change_jobs(service_.now(), *bulk_);
    if (!bulk_->ended() && bulk_->list.looked_at < kMostPassed) return;
    answer_bulk();
  } catch (const queue::StoreError& error) {
    // Report what was changed. If the failure lasts, the next command meets it.
    bulk_->changed > 0 ? answer_bulk() : answer_store_failure(error.what());
  } catch (const queue::OverLimit& error) {
    bulk_->changed > 0 ? answer_bulk() : answer_out_of_memory(error.what());
  }
  state_ = State::kLine;
  bulk_.reset();
}

// If no job is left, changes of other clients may be the reason; these must be durable, too.
void Session::answer_bulk() {
  const queue::JobBulk& bulk = *bulk_;
  const std::string next = bulk.list.done ? "end" : to_text(bulk.list.next);
  replies_.add(service_.engine().last_sequence(), bulk.dry_run ? "WOULD_CHANGE " : "CHANGED ",
               bulk.changed, " ", bulk.left, " ", next, bulk.list.incomplete ? " incomplete" : "",
               kEnd);
  if (!bulk.dry_run && bulk.changed > 0) {
    audit(name_of(bulk.action), bulk.list.tube,
          fmt::format("changed {}, left {}", bulk.changed, bulk.left));
  }
}

void Session::due_counts(const Command& c) {
  const auto options = or_bad_option([&] { return parse_due_counts_options(c.options); });
  if (!options) return;
  const queue::Now now = service_.now();
  if (!service_.engine().tube_stats(now, c.tube)) return answer_not_found();
  due_ = std::make_unique<queue::DueCounts>();
  due_->tube = c.tube;
  due_->bounds = queue::bounds_of(now.utc_ns / 1'000'000, options->width, options->spans);
  state_ = State::kCounting;
}

// Up to 120 KB.
void Session::go_on_counting() {
  state_ = State::kLine;
  or_answer_failure([&] {
    service_.engine().count_due(service_.now(), *due_);
    if (!due_->done) {
      state_ = State::kCounting;
      return;
    }
    const auto stats = service_.engine().tube_stats(service_.now(), due_->tube);
    if (!stats) return answer_not_found();
    std::string text = due_lines(*due_);
    count_memory();
    if (text.size() > kOwnReplies && text.size() > service_.most_for_one())
      return answer_out_of_memory(kMemoryIsUsed);
    fmt::format_to(
        std::back_inserter(text),
        R"({{"now":"{}","due":{},"delayed":{},"buried":{},"later":{},"later_estimated":{}}})"
        "\n",
        format_timestamp(due_->now), stats->jobs.ready + stats->jobs.reserved, due_->delayed,
        stats->jobs.buried, due_->later, due_->exact_until != UINT64_MAX);
    answer_yaml(0, text);
  });
  if (state_ == State::kLine) due_.reset();
}

}  // namespace carillon::server::beanstalk
