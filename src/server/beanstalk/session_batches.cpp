// The commands for many jobs: put-jobs, reserve-jobs, delete-jobs and release-jobs (session.h).
//
// The data of a put-jobs is collected like a body, and put with one call of the engine, all or
// nothing. A delete-jobs or release-jobs is carried out in steps of kAtOnce jobs, because each job
// has an answer of its own. A reserve-jobs waits like a reserve; then each step takes one more
// ready job, with its body, until no job is ready, or the reply is full.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/queue/never_runs.h"
#include "server/beanstalk/session.h"
#include "server/text/fingerprint.h"

namespace carillon::server::beanstalk {
namespace {

// A step takes less than a millisecond.
constexpr std::size_t kAtOnce = 64;

std::string fingerprint_of(std::string_view defaults, std::string_view data) {
  Fingerprint fingerprint;
  fingerprint.add(defaults);
  fingerprint.add(data);
  return fingerprint.bytes();
}

}  // namespace

// The options are kept in option_text_ until the data has come.
void Session::begin_batch(const Command& c) {
  try {
    if (c.verb == Verb::kPutJobs) {
      parse_job_options(c.options, OptionsOf::kBatch);
    } else {
      options_ = parse_job_options(c.verb == Verb::kReleaseJobs ? c.options : std::string_view(),
                                   OptionsOf::kRelease);
      if (c.verb == Verb::kDeleteJobs && !c.options.empty())
        throw std::invalid_argument("delete-jobs has no options");
    }
  } catch (const std::invalid_argument& error) {
    return refuse_options(c.bytes, error.what());
  }
  if (c.bytes > kMaxBatchBytes) return discard_and_answer(c.bytes, "BATCH_TOO_BIG\r\n");
  const bool is_put = c.verb == Verb::kPutJobs;
  if (!(is_put ? may_add_body(c.bytes, c.bytes) : has_room_for_body(c.bytes, c.bytes))) return;
  if (is_put) became_producer();
  pending_ = c;
  option_text_ = c.options;
  reader_.expect_body(c.bytes);
}

// --- put-jobs

void Session::put_jobs(std::string_view data) {
  const queue::Now now = service_.now();
  if (const std::string_view reply = refusal(now); !reply.empty()) return replies_.add(0, reply);
  const Batch batch = parse_batch(data, option_text_, service_.options().max_job_size);
  if (batch.wrong > 0)
    return replies_.add(0, "REFUSED ", batch.wrong, " ", std::string_view(batch.why), kEnd);
  const JobOptions options = parse_job_options(option_text_, OptionsOf::kBatch);
  const std::string once = options.once.empty() ? "" : caller_.own_key(options.once);
  const std::string fingerprint = once.empty() ? "" : fingerprint_of(option_text_, data);
  queue::BatchOrder order{.once = once, .fingerprint = fingerprint};
  order.window = options.window.value_or(order.window);
  answers_.or_failure([&] {
    try {
      answers_.batch(service_.engine().put_all(client_, now, batch.jobs, order));
    } catch (const queue::NeverRuns& refused) {
      replies_.add(0, "REFUSED ", refused.job + 1, " BAD_OPTION ", std::string_view(refused.what()),
                   kEnd);
    }
  });
}

// --- delete-jobs and release-jobs

void Session::begin_each(std::string_view data) {
  auto ids = parse_ids(data);
  if (!ids) return replies_.add(0, kBadFormat);
  const queue::Millis delay = options_.delay.value_or(0);
  if (!service_.engine().fits(service_.now(), delay)) return replies_.add(0, kOutOfRange);
  each_ = std::make_unique<EachJob>(EachJob{.ids = std::move(*ids)});
  state_ = State::kEachJob;
}

// If the store fails, the jobs of this step stay as they are.
void Session::go_on_with_each() {
  EachJob& each = *each_;
  const std::span<const queue::JobId> rest = std::span(each.ids).subspan(each.next);
  // If the token is good for some tubes only, the tube of each job is checked.
  const std::size_t at_once = caller_.may_use_all_tubes() ? kAtOnce : 1;
  const std::span<const queue::JobId> ids = rest.first(std::min(rest.size(), at_once));
  const bool releases = pending_.verb == Verb::kReleaseJobs;
  std::vector<queue::Outcome> outcomes;
  std::string_view failure = "INTERNAL_ERROR ";
  try {
    queue::Engine& engine = service_.engine();
    const queue::Now now = service_.now();
    if (!caller_.may_use_all_tubes() && !lacks_tube_of(ids.front()).empty()) {
      failure = kForbidden;
    } else {
      outcomes = releases ? engine.release_all(client_, now, ids, options_.priority,
                                               options_.delay.value_or(0))
                          : engine.remove_all(client_, now, ids);
    }
  } catch (const queue::StoreError& error) {
    service_.report_store_failure(error.what());
  } catch (const std::out_of_range&) {  // the delay did fit in an earlier step
    failure = "OUT_OF_RANGE ";
  }
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const std::string_view done = releases ? "RELEASED " : "DELETED ";
    each.answers.append(outcomes[i].done ? done : "NOT_FOUND ");
    each.answers.append(std::to_string(ids[i])).append(kEnd);
    each.durable_at = std::max(each.durable_at, outcomes[i].durable_at);
  }
  for (std::size_t i = outcomes.size(); i < ids.size(); ++i)
    each.answers.append(failure).append(std::to_string(ids[i])).append(kEnd);
  each.next += ids.size();
  if (each.next == each.ids.size()) answer_each();
}

// If the server stops, nothing is done to the jobs that are left.
void Session::answer_each() {
  EachJob& each = *each_;
  for (; each.next < each.ids.size(); ++each.next)
    each.answers.append("INTERNAL_ERROR ").append(std::to_string(each.ids[each.next])).append(kEnd);
  replies_.add(each.durable_at, "JOBS ", each.ids.size(), kEnd, std::string_view(each.answers));
  each_.reset();
  state_ = State::kInput;
}

// --- reserve-jobs

void Session::reserve_jobs(const Command& c) {
  const auto options = options_of(c, OptionsOf::kReserve);
  if (!options) return;
  became_worker();
  gathered_ = std::make_unique<GatheredJobs>(GatheredJobs{.wanted = c.bound});
  if (const auto first = service_.engine().reserve(client_, service_.now(), options->timeout))
    return answer(*first);
  state_ = State::kWaiting;
  if (input_ended_) service_.engine().stop_waiting(client_);
}

// The client has reserved the job. It goes into the reply if the reply has room.
void Session::gather(const queue::JobView& job) {
  GatheredJobs& gathered = *gathered_;
  const bool is_first = gathered.jobs.empty();
  if (is_first && job.body_bytes > queue::kBodyPiece) {
    gathered_.reset();
    return fetch(Asked::kReserveAlone, job);
  }
  held_ = 0;  // may_hold() is asked for everything anew
  const std::size_t bytes = gathered.bytes + job.body_bytes;
  if (may_hold(bytes, kOwnReplies)) return fetch(Asked::kReserveJobs, job);
  service_.engine().give_back(client_, service_.now(), job.id);
  if (!is_first) return answer_gathered();
  gathered_.reset();
  answers_.out_of_memory(kMemoryIsUsed);
}

void Session::add_gathered(const Body& body) {
  GatheredJobs& gathered = *gathered_;
  if (!body.bytes) {
    const std::string why = bury_or_return(body);
    if (!gathered.jobs.empty()) {
      service_.report_store_failure(why);
      return answer_gathered();
    }
    gathered_.reset();
    return answers_.store_failure(why);
  }
  gathered.bytes += body.bytes->size();
  gathered.jobs.push_back({.job = job_, .body = *body.bytes});
  if (gathered.jobs.size() == gathered.wanted) return answer_gathered();
  state_ = State::kGathering;
}

void Session::go_on_gathering() {
  state_ = State::kInput;
  try {
    const std::size_t room = kMaxBatchBytes - gathered_->bytes;
    const std::uint64_t most = std::min<std::uint64_t>(queue::kBodyPiece, room);
    if (const auto next = service_.engine().reserve_next(client_, service_.now(), most))
      return gather(*next);
  } catch (const queue::StoreError& error) {
    service_.report_store_failure(error.what());
  }
  answer_gathered();
}

// If a body has come late, the ttrs begin anew. A job whose ttr was over by then belongs to another
// client.
void Session::answer_gathered() {
  state_ = State::kInput;
  const std::unique_ptr<GatheredJobs> gathered = std::move(gathered_);
  const queue::Now now = service_.now();
  if (gathered->late) {
    std::erase_if(gathered->jobs, [&](const GatheredJobs::Job& one) {
      return !service_.engine().touch(client_, now, one.job.id).done;
    });
  }
  if (gathered->jobs.empty())
    return answers_.store_failure("the ttrs of jobs were over before their bodies were read");
  queue::Sequence durable_at = 0;
  for (const auto& one : gathered->jobs) durable_at = std::max(durable_at, one.job.durable_at);
  replies_.add(durable_at, "JOBS ", gathered->jobs.size(), kEnd);
  for (const auto& [job, body] : gathered->jobs) {
    replies_.add_to_last("RESERVED " + std::to_string(job.id) + " " + std::to_string(body.size()));
    replies_.add_to_last(kEnd);
    replies_.add_to_last(body);
    replies_.add_to_last(kEnd);
  }
}

}  // namespace carillon::server::beanstalk
