// Leases: jobs that a worker reserves by one request and ends by another (routes.h, leases.h).
#include "server/api/leases.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "server/api/fields.h"
#include "server/api/names.h"
#include "server/api/problem.h"
#include "server/http/job_fields.h"
#include "server/http/one_job.h"
#include "server/http/routes.h"
#include "server/text/timestamp.h"

namespace carillon::server::http {

namespace {

namespace json = boost::json;

constexpr std::uint64_t kMostReserved = 1'000;
constexpr queue::Millis kLongestWait = 86'400'000;
constexpr queue::Millis kLongestLease = 86'400'000;

// What a request has reserved so far. Unless it is kept, its jobs are ready again.
class Reservation {
 public:
  struct Job {
    queue::JobView view;
    queue::Millis ttr = 0;
    std::string shown;  // as JSON, but for the lease
  };

  Reservation(RequestContext& x, std::string_view name)
      : worker(x.service().leases().begin(x.client(), x.names.front(), name, x.now())),
        service_(x.service()) {}
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() {
    if (!is_kept_) service_.leases().give_up(worker, service_.last_now());
  }

  void keep() {
    service_.leases().answered(worker, service_.last_now());
    is_kept_ = true;
  }

  const queue::ClientId worker;
  std::uint64_t most = 1;
  std::optional<queue::Millis> lease;
  std::vector<Job> jobs;

 private:
  Service& service_;
  bool is_kept_ = false;
};

using Reserved = std::shared_ptr<Reservation>;

std::optional<queue::Millis> read_lease(Fields& fields) {
  const auto lease = fields.duration("lease");
  if (!lease || (*lease >= queue::kMinTtr && *lease <= kLongestLease)) return lease;
  fields.fault("lease", fmt::format("{} ms: a lease has {} to {} ms, and may be extended", *lease,
                                    queue::kMinTtr, kLongestLease));
  return std::nullopt;
}

// No later than the lease ends.
std::string end_of_lease(const RequestContext& x, queue::Millis time) {
  return format_timestamp(std::min(x.now().utc_ns / 1'000'000 + time - 1, queue::kLastDue));
}

// --- reserve

// The leases begin now, as reading the bodies may have taken long. A job whose ttr was over
// meanwhile is another one's.
void answer_reserved(RequestContext& x, const Reserved& reserved) {
  std::string jobs;
  queue::Sequence durable_at = 0;
  for (Reservation::Job& job : reserved->jobs) {
    const queue::JobId id = job.view.id;
    if (!x.engine().touch(reserved->worker, x.now(), id, reserved->lease).done) continue;
    job.shown.pop_back();
    const std::string token = x.service().leases().token({.worker = reserved->worker, .job = id});
    const bool is_large = job.view.body_bytes > queue::kBodyPiece;
    fmt::format_to(std::back_inserter(jobs), R"({}{}{},"lease":"{}","lease_ends":"{}"}})",
                   jobs.empty() ? "" : ",", job.shown,
                   is_large ? fmt::format(R"(,"body_url":"/v1/leases/{}/body")", token) : "", token,
                   end_of_lease(x, reserved->lease.value_or(job.ttr)));
    durable_at = std::max(durable_at, job.view.durable_at);
  }
  reserved->keep();
  x.changed_nothing = jobs.empty();
  x.answer({.body = fmt::format(R"({{"jobs":[{}]}})", jobs), .durable_at = durable_at});
}

// The first job may have been waited for, the others must be ready now, and fit in.
void take_next(RequestContext& x, const Reserved& reserved);

void go_on(RequestContext& x, const Reserved& reserved) {
  if (reserved->jobs.size() == reserved->most) return answer_reserved(x, reserved);
  x.later([reserved](RequestContext& then) { take_next(then, reserved); });
}

// A job whose body is damaged would come again and again: it is buried.
void bury_or_return(RequestContext& x, const Reserved& reserved, const queue::JobView& job,
                    const Body& body) {
  x.service().report_store_failure(fmt::format("job {}: {}", job.id, body.error));
  if (body.damaged) {
    x.engine().bury(reserved->worker, x.now(), job.id, job.priority);
  } else {
    x.engine().give_back(reserved->worker, x.now(), job.id);
  }
  if (!reserved->jobs.empty()) return answer_reserved(x, reserved);
  throw Problem(kFailed, fmt::format("the body of job {} cannot be read: {}", job.id, body.error));
}

// `body` is none if it is too large: the worker fetches it by its lease.
void add(RequestContext& x, const Reserved& reserved, const queue::JobView& job,
         std::optional<std::string_view> body) {
  const auto stats = x.engine().job_stats(x.now(), job.id);
  if (!stats) return go_on(x, reserved);
  json::object shown = json_of(*stats, {}, body);
  shown.erase("attempts");  // GET shows them
  reserved->jobs.push_back(
      {.view = job, .ttr = stats->record.ttr, .shown = json::serialize(shown)});
  x.hold(reserved->jobs.back().shown.size());
  go_on(x, reserved);
}

// If there is no memory for the first job, hold() says so, and the job is ready again.
void take(RequestContext& x, const Reserved& reserved, const queue::JobView& job) {
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

void take_delivered(RequestContext& x, const Reserved& reserved, const queue::Delivery& delivery) {
  if (delivery.kind == queue::Delivery::Kind::kReserved) return take(x, reserved, delivery.job);
  answer_reserved(x, reserved);
}

void take_next(RequestContext& x, const Reserved& reserved) {
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
                "the token is of no lease that goes on: its time was over, the job was "
                "ended, or the server has restarted");
}

Lease lease_of(RequestContext& x) {
  const auto lease = x.service().leases().find(x.names.front());
  if (!lease) throw_lease_over();
  return *lease;
}

// The job of the lease has gone, or will.
void end(RequestContext& x, Lease lease, Reply reply) {
  x.service().leases().answered(lease.worker, x.now());
  x.answer(std::move(reply));
}

std::string_view name_of(queue::FailOutcome::Result result, queue::Millis delay) {
  using Result = queue::FailOutcome::Result;
  if (result == Result::kDead) return "dead";
  if (result == Result::kCancelled) return "cancelled";
  return delay > 0 ? "delayed" : "ready";
}

// The job comes again as if nobody had tried.
void release(RequestContext& x, Lease lease, std::optional<queue::Priority> priority,
             queue::Millis delay) {
  const bool is_cancelled = x.engine().cancel_asked(lease.worker, lease.job);
  const auto outcome =
      x.engine().release_all(lease.worker, x.now(), {&lease.job, 1}, priority, delay).front();
  if (!outcome.done) throw_lease_over();
  end(x, lease,
      {.body = json::serialize(json::object{{"state", is_cancelled ? "cancelled"
                                                      : delay > 0  ? "delayed"
                                                                   : "ready"}}),
       .durable_at = outcome.durable_at});
}

}  // namespace

// {"max":10,"wait":"20s","lease":"60s","worker":"host-7"}: all of it may be left out.
void reserve_jobs(RequestContext& x) {
  x.tube();  // it is a name
  const json::object object = x.object();
  FieldFaults faults;
  Fields fields(object, "", faults);
  const std::uint64_t most = fields.number("max", 1, kMostReserved).value_or(1);
  const queue::Millis wait = fields.duration("wait").value_or(0);
  if (wait > kLongestWait)
    fields.fault("wait", fmt::format("{} ms: the longest wait has {} ms", wait, kLongestWait));
  const auto lease = read_lease(fields);
  const auto worker = fields.text("worker");
  if (worker && worker->size() > queue::kMaxWorkerName)
    fields.fault("worker", fmt::format("a name has at most {} bytes", queue::kMaxWorkerName));
  fields.finish();
  faults.throw_if_any();

  const auto reserved = std::make_shared<Reservation>(x, worker.value_or("HTTP"));
  reserved->most = most;
  reserved->lease = lease;
  if (const auto first = x.engine().reserve(reserved->worker, x.now(), wait))
    return take_delivered(x, reserved, *first);
  x.await_delivery(reserved->worker,
                   [reserved](RequestContext& then, const queue::Delivery& delivery) {
                     take_delivered(then, reserved, delivery);
                   });
}

void ack_lease(RequestContext& x) {
  const Lease lease = lease_of(x);
  // Anybody may delete a job that is ready again.
  if (!x.engine().touch(lease.worker, x.now(), lease.job).done) throw_lease_over();
  const queue::Outcome outcome = x.engine().remove(lease.worker, x.now(), lease.job);
  end(x, lease, {.status = 204, .durable_at = outcome.durable_at});
}

// {"delay":"30s","error":"disk full","priority":7}; {"failed":false}: it was no attempt.
void nack_lease(RequestContext& x) {
  const Lease lease = lease_of(x);
  const json::object object = x.object();
  FieldFaults faults;
  Fields fields(object, "", faults);
  queue::Failure failure;
  failure.delay = fields.duration("delay");
  if (failure.delay && !x.engine().fits(x.now(), *failure.delay))
    fields.fault("delay", "the job would be due after the year 9999");
  if (const auto priority = fields.number("priority", 0, UINT32_MAX))
    failure.priority = static_cast<queue::Priority>(*priority);
  failure.error = fields.text("error").value_or("");
  const bool failed = fields.flag("failed").value_or(true);
  if (!failed && fields.has("error")) fields.fault("error", "goes with an attempt that has failed");
  fields.finish();
  faults.throw_if_any();
  if (!failed) return release(x, lease, failure.priority, failure.delay.value_or(0));

  const queue::FailOutcome outcome = x.engine().fail(lease.worker, x.now(), lease.job, failure);
  if (outcome.result == queue::FailOutcome::Result::kNone) throw_lease_over();
  end(x, lease,
      {.body = json::serialize(json::object{{"state", name_of(outcome.result, outcome.delay)},
                                            {"failed_attempts", outcome.attempts},
                                            {"delay", shown_duration(outcome.delay)}}),
       .durable_at = outcome.durable_at});
}

// The lease goes on as it is.
void answer_lease_body(RequestContext& x) {
  const Lease lease = lease_of(x);
  const auto job = x.engine().peek(x.now(), lease.job);
  if (!job || !x.engine().holds(lease.worker, lease.job)) throw_lease_over();
  answer_body(x, lease.job);
}

// {"lease":"60s"}; without it the job's own ttr.
void extend_lease(RequestContext& x) {
  const Lease lease = lease_of(x);
  const json::object object = x.object();
  FieldFaults faults;
  Fields fields(object, "", faults);
  const auto time = read_lease(fields);
  fields.finish();
  faults.throw_if_any();
  const queue::Outcome outcome = x.engine().touch(lease.worker, x.now(), lease.job, time);
  const auto stats = x.engine().job_stats(x.now(), lease.job);
  if (!outcome.done || !stats) throw_lease_over();
  x.answer({.body = json::serialize(json::object{
                {"lease_ends", end_of_lease(x, time.value_or(stats->record.ttr))},
                {"cancel_requested", x.engine().cancel_asked(lease.worker, lease.job)}}),
            .durable_at = outcome.durable_at});
}

}  // namespace carillon::server::http
