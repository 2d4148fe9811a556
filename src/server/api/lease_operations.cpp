// Jobs that a worker reserves by one request and ends by another (lease_operations.h).
#include "server/api/lease_operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/api/jobs.h"
#include "server/api/names.h"
#include "server/api/operations.h"
#include "server/api/problem.h"
#include "server/text/timestamp.h"

namespace carillon::server {

namespace {

// What a request has reserved so far. Unless it is kept, its jobs are ready again.
class Reservation {
 public:
  struct Taken {
    queue::JobView view;
    queue::Millis ttr = 0;
    std::string shown;  // JSON without the lease
  };

  Reservation(RequestContext& x, std::string_view name)
      : worker(x.service().leases().begin(x.client(), x.names.front(), name, x.now())),
        service_(x.service()) {}
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  // No worker has had the jobs: this is no failed attempt.
  ~Reservation() {
    if (is_kept_) return;
    const queue::Now now = service_.last_now();
    for (const Taken& job : jobs) service_.engine().give_back(worker, now, job.view.id);
    service_.leases().give_up(worker, now);
  }

  void keep() {
    service_.leases().answered(worker, service_.last_now());
    is_kept_ = true;
  }

  const queue::ClientId worker;
  std::uint64_t most = 1;
  std::optional<queue::Millis> lease;
  std::vector<Taken> jobs;

 private:
  Service& service_;
  bool is_kept_ = false;
};

using Reserving = std::shared_ptr<Reservation>;

// No later than the lease ends.
Moment end_of_lease(const RequestContext& x, queue::Millis time) {
  return {std::min(x.now().utc_ns / 1'000'000 + time - 1, queue::kLastDue)};
}

// --- reserve

// The leases begin now, as reading the bodies may have taken long. A job whose ttr was over
// meanwhile is another one's.
void answer_reserved(RequestContext& x, const Reserving& reserved) {
  std::vector<queue::JobId> ids;
  for (const Reservation::Taken& job : reserved->jobs) ids.push_back(job.view.id);
  const queue::Leased leased =
      x.service().leases().lease(reserved->worker, x.now(), ids, reserved->lease);
  std::string jobs;
  auto next = leased.jobs.begin();
  for (Reservation::Taken& job : reserved->jobs) {
    const queue::JobId id = job.view.id;
    if (next == leased.jobs.end() || *next != id) continue;
    ++next;
    job.shown.pop_back();
    const std::string token = x.service().leases().token({.worker = reserved->worker, .job = id});
    const bool is_large = job.view.body_bytes > queue::kBodyPiece;
    fmt::format_to(std::back_inserter(jobs), R"({}{}{},"lease":"{}","lease_ends":"{}"}})",
                   jobs.empty() ? "" : ",", job.shown,
                   is_large ? fmt::format(R"(,"body_url":"/v1/leases/{}/body")", token) : "", token,
                   format_timestamp(end_of_lease(x, reserved->lease.value_or(job.ttr)).at));
  }
  reserved->keep();
  x.changed_nothing = jobs.empty();
  x.answer({.body = fmt::format(R"({{"jobs":[{}]}})", jobs), .durable_at = leased.durable_at});
}

// The first job may have been waited for, the others must be ready now, and fit in.
void take_next(RequestContext& x, const Reserving& reserved);

void go_on(RequestContext& x, const Reserving& reserved) {
  if (reserved->jobs.size() == reserved->most) return answer_reserved(x, reserved);
  x.later([reserved](RequestContext& then) { take_next(then, reserved); });
}

// A job whose body is damaged would come again and again: it is buried.
void bury_or_return(RequestContext& x, const Reserving& reserved, const queue::JobView& job,
                    const Body& body) {
  x.service().report_store_failure(fmt::format("job {}: {}", job.id, body.error));
  if (body.damaged) {
    x.engine().bury(reserved->worker, x.now(), job.id, job.priority);
  } else {
    x.engine().give_back(reserved->worker, x.now(), job.id);
  }
  if (!reserved->jobs.empty()) return answer_reserved(x, reserved);
  throw unreadable(job.id, body);
}

// `body` is empty if it is too large: the worker fetches it by its lease.
void add(RequestContext& x, const Reserving& reserved, const queue::JobView& job,
         std::optional<std::string_view> body) {
  const auto stats = x.engine().job_stats(x.now(), job.id);
  if (!stats) return go_on(x, reserved);
  Job shown = job_of(*stats);
  if (body) shown.body = Bytes{std::string(*body)};
  reserved->jobs.push_back({.view = job, .ttr = stats->record.ttr, .shown = text_of(shown)});
  x.hold(reserved->jobs.back().shown.size());
  go_on(x, reserved);
}

// If there is no memory for the first job, hold() says so, and the job is ready again.
void take(RequestContext& x, const Reserving& reserved, const queue::JobView& job) {
  if (job.body_bytes > queue::kBodyPiece) return add(x, reserved, job, std::nullopt);
  x.read_body(
      job,
      [reserved, job](RequestContext& then, std::string_view body) {
        add(then, reserved, job, body);
      },
      [reserved, job](RequestContext& then, const Body& body) {
        bury_or_return(then, reserved, job, body);
      });
}

void take_delivered(RequestContext& x, const Reserving& reserved, const queue::Delivery& delivery) {
  if (delivery.kind == queue::Delivery::Kind::kReserved) return take(x, reserved, delivery.job);
  answer_reserved(x, reserved);
}

void take_next(RequestContext& x, const Reserving& reserved) {
  const std::size_t most =
      std::min(kMaxBatchBytes, std::max(kOwnReplies, x.service().most_for_one()));
  std::optional<queue::JobView> next;
  try {
    next = x.engine().reserve_next(reserved->worker, x.now(), most - std::min(most, x.held()));
  } catch (const queue::StoreError& error) {
    x.service().report_store_failure(error.what());
  }
  next ? take(x, reserved, *next) : answer_reserved(x, reserved);
}

// --- ack, nack, extend

[[noreturn]] void throw_lease_over() {
  throw Problem(kLeaseOver,
                "the token is of no lease that goes on: its time was over, or the job was ended");
}

Lease lease_of(RequestContext& x, const std::string& token) {
  const auto lease = x.service().leases().find(token);
  if (!lease) throw_lease_over();
  return *lease;
}

// The job of the lease is gone, or will be.
void end(RequestContext& x, Lease lease, Reply reply) {
  x.service().leases().answered(lease.worker, x.now());
  x.answer(std::move(reply));
}

NackedState state_after(queue::FailOutcome::Result result, queue::Millis delay) {
  using Result = queue::FailOutcome::Result;
  if (result == Result::kDead) return NackedState::kDead;
  if (result == Result::kCancelled) return NackedState::kCancelled;
  return delay > 0 ? NackedState::kDelayed : NackedState::kReady;
}

// The job is ready again, and the attempt does not count.
void release(RequestContext& x, Lease lease, std::optional<queue::Priority> priority,
             queue::Millis delay) {
  using Result = queue::FailOutcome::Result;
  const bool is_cancelled = x.engine().cancel_asked(lease.worker, lease.job);
  const auto outcome =
      x.engine().release_all(lease.worker, x.now(), {&lease.job, 1}, priority, delay).front();
  if (!outcome.done) throw_lease_over();
  const NackedState state = state_after(is_cancelled ? Result::kCancelled : Result::kAgain, delay);
  end(x, lease,
      {.body = text_of(Nacked{.state = state, .failed_attempts = {}, .delay_ms = {}}),
       .durable_at = outcome.durable_at});
}

// --- The functions of the rows.

void reserve_jobs(RequestContext& x, const Reserve& asked) {
  const auto reserved = std::make_shared<Reservation>(x, asked.worker);
  reserved->most = asked.max;
  if (asked.lease) reserved->lease = asked.lease->ms;
  if (const auto first = x.engine().reserve(reserved->worker, x.now(), asked.wait.ms))
    return take_delivered(x, reserved, *first);
  // The next turn waits until the store has room for the lease.
  x.await_delivery(reserved->worker,
                   [reserved](RequestContext& then, const queue::Delivery& delivery) {
                     then.later([reserved, delivery](RequestContext& next) {
                       take_delivered(next, reserved, delivery);
                     });
                   });
}

void ack_lease(RequestContext& x, const LeaseToken& asked) {
  const Lease lease = lease_of(x, asked.token);
  // Anybody may delete a job that is ready again. (The peek ends what is over by now.)
  const auto job = x.engine().peek(x.now(), lease.job);
  if (!job || !x.engine().holds(lease.worker, lease.job)) throw_lease_over();
  const queue::Outcome outcome = x.engine().remove(lease.worker, x.now(), lease.job);
  end(x, lease, {.status = 204, .durable_at = outcome.durable_at});
}

void nack_lease(RequestContext& x, const Nack& asked, Reader& reader) {
  const Lease lease = lease_of(x, asked.token);
  if (asked.delay && !x.engine().fits(x.now(), asked.delay->ms))
    reader.fault("delay", "the job would be due after the year 9999");
  if (!asked.failed && asked.error) reader.fault("error", "goes with an attempt that has failed");
  reader.throw_if_any();
  if (!asked.failed) return release(x, lease, asked.priority, asked.delay.value_or(Duration()).ms);

  queue::Failure failure{.error = asked.error ? *asked.error : std::string_view(),
                         .priority = asked.priority};
  if (asked.delay) failure.delay = asked.delay->ms;
  const queue::FailOutcome outcome = x.engine().fail(lease.worker, x.now(), lease.job, failure);
  if (outcome.result == queue::FailOutcome::Result::kNone) throw_lease_over();
  end(x, lease,
      {.body = text_of(Nacked{.state = state_after(outcome.result, outcome.delay),
                              .failed_attempts = outcome.attempts,
                              .delay_ms = outcome.delay}),
       .durable_at = outcome.durable_at});
}

// For the lease of a worker that is gone. Its token is refused from now on.
void release_job(RequestContext& x, const JobId& asked) {
  if (!x.engine().peek(x.now(), asked.id)) throw no_such_job(asked.id);
  require_match(x, asked.id);
  const auto lease = x.service().leases().lease_of(asked.id);
  if (!lease) throw Problem(kConflict, fmt::format("job {} has no lease", asked.id));
  release(x, *lease, std::nullopt, 0);
}

// The lease goes on as it is.
void get_lease_body(RequestContext& x, const LeaseToken& asked) {
  const Lease lease = lease_of(x, asked.token);
  const auto job = x.engine().peek(x.now(), lease.job);
  if (!job || !x.engine().holds(lease.worker, lease.job)) throw_lease_over();
  answer_body(x, lease.job);
}

void extend_lease(RequestContext& x, const Extend& asked) {
  const Lease lease = lease_of(x, asked.token);
  std::optional<queue::Millis> time;
  if (asked.lease) time = asked.lease->ms;
  const queue::Leased leased =
      x.service().leases().lease(lease.worker, x.now(), {&lease.job, 1}, time);
  const auto stats = x.engine().job_stats(x.now(), lease.job);
  if (leased.jobs.empty() || !stats) throw_lease_over();
  const bool is_asked = x.engine().cancel_asked(lease.worker, lease.job);
  x.answer(
      {.body = text_of(Extended{.lease_ends = end_of_lease(x, time.value_or(stats->record.ttr)),
                                .cancel_requested = is_asked}),
       .durable_at = leased.durable_at});
}

// --- The rows.

constexpr auto kLeaseRows = rows(
    "leases",
    operation<reserve_jobs, Reserved>(
        "POST /v1/tubes/{tube}:reserve", {Needs::kWork, Reach::kTube},
        "Reserves jobs, or waits for one.",
        {.name = "reserve", .appends = Appends::kYes, .problems = "503"}),
    operation<ack_lease>("POST /v1/leases/{token}:ack", {Needs::kWork, Reach::kLease},
                         "The work is done: the job is deleted.",
                         {.name = "ack", .appends = Appends::kYes, .problems = "409"}),
    operation<release_job, Nacked>(
        "POST /v1/jobs/{id}:release", {Needs::kAdmin, Reach::kJob},
        "Ends the lease of a worker that is gone: the job is ready again.",
        {.appends = Appends::kYes,
         .audited_as = "job:release",
         .problems = "404 409",
         .headers = "If-Match"}),
    operation<get_lease_body>("GET /v1/leases/{token}/body", {Needs::kWork, Reach::kLease},
                              "The body of the job, of any size. The lease goes on as it is.",
                              {.status = 200, .problems = "409 503", .media = kBytesType}),
    operation<nack_lease, Nacked>("POST /v1/leases/{token}:nack", {Needs::kWork, Reach::kLease},
                                  "The attempt has failed: the job comes again, or is dead.",
                                  {.name = "nack", .appends = Appends::kYes, .problems = "409"}),
    operation<extend_lease, Extended>(
        "POST /v1/leases/{token}:extend", {Needs::kWork, Reach::kLease}, "The lease begins anew.",
        {.name = "extend", .appends = Appends::kYes, .problems = "409"}));

}  // namespace

std::span<const Operation> lease_operations() {
  return kLeaseRows;
}

}  // namespace carillon::server
