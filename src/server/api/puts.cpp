// Puts (puts.h).
#include "server/api/puts.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <deque>
#include <memory>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "server/api/idempotency.h"
#include "server/api/jobs.h"
#include "server/api/names.h"
#include "server/api/operations.h"
#include "server/text/duration.h"
#include "server/text/json_text.h"

namespace carillon::server {

namespace {

// --- What puts answer.

// Says that a job has the put's key, or had it and is done: in words, and as the answer.
std::string told_of_key(const queue::PutOutcome& put) {
  using queue::KeyOwner;
  const std::string_view state = server::name_of(put.owner);
  if (put.owner == KeyOwner::kDone)
    return fmt::format("job {} had the key and is done, and its key_window is not over", put.id);
  const bool rests = put.owner == KeyOwner::kBuried || put.owner == KeyOwner::kDead;
  return fmt::format("job {} has the key, and is {}{}", put.id, state,
                     rests ? ": no worker gets it before it is kicked, retried or replaced" : "");
}

Problem taken(const ProblemKind& kind, const queue::PutOutcome& put) {
  return Problem(kind, told_of_key(put))
      .in_state(server::name_of(put.owner))
      .with("Location", path_of_job(put.id));
}

// Returns why the body is too large for a job; an empty text if it is not.
std::string size_fault(const RequestContext& x, std::string_view body) {
  const std::size_t most =
      std::min<std::size_t>(x.service().options().max_job_size, queue::kBodyPiece);
  if (body.size() <= most) return {};
  return fmt::format("the body of the job has {} bytes; the limit is {}", body.size(), most);
}

// The rate for puts of the tube names[0] in words, and the problem that a put has to wait for it.
std::string told_rate(RequestContext& x) {
  const queue::Limits rate = x.engine().tube_settings(x.names.front()).put_rate;
  return fmt::format("{} jobs per {} may be put into the tube {}, and {} after a rest", rate.rate,
                     shown_duration(rate.period), x.names.front(), rate.burst);
}

Problem too_fast(RequestContext& x, queue::Millis wait) {
  constexpr queue::Millis kSecond = 1'000;
  const queue::Millis seconds = std::max<queue::Millis>((wait + kSecond - 1) / kSecond, 1);
  return Problem(kTooFast, fmt::format("{}; try again in {} ms", told_rate(x), wait))
      .with("Retry-After", std::to_string(seconds))
      .at_once();
}

// Says that the tube names[0] takes no jobs.
Problem drains(const RequestContext& x) {
  return Problem(kDraining, fmt::format("the tube {} takes no new jobs", x.names.front()));
}

// Returns the job that has just been put, as it is.
queue::JobStats stats_of(const queue::JobAsPut& job) {
  const queue::JobRecord& record = job.record;
  const bool is_due = record.due <= record.created;
  return {.record = record,
          .tube = job.tube,
          .group = job.group,
          .state = record.buried() ? queue::JobState::kBuried
                   : is_due        ? queue::JobState::kReady
                                   : queue::JobState::kDelayed};
}

// Adds to the reply the job that was put, or the one that has its key. The latter may be another
// client's, so it is shown to whoever may read it; others learn its state. For a job that is gone,
// the state is all that is known.
void tell_job(RequestContext& x, const queue::BatchOutcome& batch, Reply& reply) {
  const queue::PutOutcome& put = batch.jobs.front();
  const bool is_met = put.result == queue::PutOutcome::Result::kExists;
  // A job that was met was not put: it is shown as it is now.
  const auto stats =
      batch.job ? std::optional(stats_of(*batch.job)) : x.engine().job_stats(x.now(), put.id);
  const bool may_see = stats && (!is_met || x.caller().may(Needs::kRead));
  if (stats) {
    reply.headers.emplace_back("ETag", etag_of(*stats));
    reply.durable_at = std::max(reply.durable_at, stats->durable_at);
  }
  if (!may_see) {
    reply.body = text_of(KnownJob{.id = put.id, .state = key_state_of(put)});
    return;
  }
  const auto story = is_met ? x.engine().story(x.now(), put.id) : std::nullopt;
  Job job = job_of(*stats);
  job.attempts = attempts_of(story.value_or(std::vector<queue::Attempt>()));
  reply.body = text_of(job);
}

constexpr std::string_view kReplayed = "Idempotent-Replayed";

}  // namespace

void require_size(const RequestContext& x, std::string_view body) {
  if (const std::string why = size_fault(x, body); !why.empty()) throw Problem(kTooLarge, why);
}

Problem too_far(RequestContext& x, const queue::PutOrder& order, const std::string& at) {
  constexpr queue::Millis kLongest = queue::kLastDue;
  // A moment stands instead of the delay, and the spread counts from either.
  const auto fits = [&](queue::Millis later) {
    return order.due_at ? *order.due_at <= kLongest && later <= kLongest - *order.due_at
                        : x.engine().fits(x.now(), std::min(order.due_in, kLongest) + later);
  };
  const bool starts = order.due_in <= kLongest && fits(0);
  const std::string_view name = !starts ? (order.due_at ? "/due" : "/delay")
                                : !fits(std::min(order.spread, kLongest)) ? "/spread"
                                : order.expires_at                        ? "/expires_at"
                                                                          : "/expires_in";
  const std::string pointer = fmt::format("{}{}", at, name);
  const std::string why = "the job would be due or expire after 9999-12-31T23:59:59.999Z";
  return Problem(kBadField, fmt::format("{}: {}", pointer, why), {{pointer, why}});
}

Problem never_runs(const queue::NeverRuns& refused, bool is_moment, const std::string& at) {
  const std::string pointer = at + (is_moment ? "/expires_at" : "/expires_in");
  return Problem(kBadField, fmt::format("{}: {}", pointer, refused.what()),
                 {{pointer, refused.what()}});
}

Reply reply_to_put(RequestContext& x, const queue::BatchOutcome& batch) {
  using Result = queue::PutOutcome::Result;
  const queue::PutOutcome& outcome = batch.jobs.front();
  switch (outcome.result) {
    case Result::kInserted:
    case Result::kReplaced:
      break;
    case Result::kExists:
      if (batch.result == queue::BatchOutcome::Result::kRefused) throw taken(kConflict, outcome);
      break;
    case Result::kReserved:
      throw taken(kConflict, outcome);
    case Result::kDraining:
      throw drains(x);
    case Result::kTooFast:
      throw too_fast(x, outcome.wait);
    case Result::kTooMany:  // never for a single job
    case Result::kTooFar:
      throw Problem(kBadField, "the job would be due or expire after the year 9999");
  }
  const bool is_new = outcome.result == Result::kInserted;
  Reply reply{.status = is_new ? 201u : 200u,
              .headers = {{"Location", path_of_job(outcome.id)}},
              .durable_at = batch.durable_at};
  tell_job(x, batch, reply);
  if (batch.result == queue::BatchOutcome::Result::kAlready)
    reply.headers.emplace_back(kReplayed, "true");
  return reply;
}

namespace {

// --- A put of one job.

// Returns the attributes of a put, with the trace that the request's headers name, if the job names
// none, and the type of a plain body. A wrong trace is ignored: the specification asks for that.
// What curl sends by itself says nothing of a body.
Attributes attributes_of_put(const RequestContext& x, bool is_plain, Attributes attributes) {
  const std::string_view parent = x.request.header("traceparent");
  const std::string_view state = x.request.header("tracestate");
  if (is_traceparent(parent) && !attributes.traceparent) {
    attributes.traceparent = parent;
    if (!state.empty() && is_utf8(state)) attributes.tracestate = state;
  }
  const std::string_view type = x.request.header("content-type");
  if (is_plain && !type.empty() && !x.request.is_of_type(kFormType)) attributes.content_type = type;
  return attributes;
}

// A put: the body is that of the request, or a field of it.
struct Put {
  queue::PutOrder order;
  std::string attributes = {};
  std::string_view body = {};
};

template <class Asked>
void read_put(RequestContext& x, const Asked& asked, Reader& reader, Put& put) {
  x.engine().use(x.client(), asked.tube);
  x.is_put = true;
  const bool is_plain = has_plain_body(x);
  put.order = order_of(reader, asked);
  put.attributes =
      kept_attributes(reader, with_type_of(asked.body, attributes_of_put(x, is_plain, asked)));
  put.order.attributes = put.attributes;
  put.body = is_plain ? x.request.body : asked.body.bytes;
  reader.throw_if_any();
}

// Puts the job into the tube in use, as a batch of one.
queue::BatchOutcome put(RequestContext& x, const Put& asked, const queue::BatchOrder& order) {
  x.require_room();
  require_size(x, asked.body);
  const queue::NewJob one{.order = asked.order, .body = asked.body};
  try {
    queue::BatchOutcome batch = x.engine().put_all(x.client(), x.now(), {&one, 1}, order);
    if (!batch.jobs.empty() && batch.jobs.front().result == queue::PutOutcome::Result::kTooFar)
      throw too_far(x, asked.order);
    return batch;
  } catch (const queue::NeverRuns& refused) {
    throw never_runs(refused, asked.order.expires_at.has_value());
  }
}

void put_job(RequestContext& x, const PutJob& asked, Reader& reader) {
  Put job;
  read_put(x, asked, reader, job);
  auto once = once_of(x);
  if (auto first = kept_answer(x, once)) return x.answer(*std::move(first));
  const queue::BatchOutcome batch = put(x, job, order_of(once));
  note_answer(once, batch);
  Reply reply = reply_to_put(x, batch);
  // The engine has stored whose key it was, and not how that job was.
  if (batch.result == queue::BatchOutcome::Result::kPut && !batch.job) keep_answer(x, once, reply);
  x.answer(std::move(reply));
}

// The same PUT twice leaves one job. `If-None-Match: *` only creates, `If-Match` only
// replaces. What they do not allow is answered 412 (RFC 9110, 13.1).
void put_key(RequestContext& x, const PutKey& asked, Reader& reader) {
  if (!is_key(asked.key))
    throw Problem(kBadRequest, fmt::format("\"{}\": a key has {}", asked.key, kKeyRule));
  Put job;
  read_put(x, asked, reader, job);
  job.order.key = asked.key;
  job.order.on_conflict = x.request.header("if-none-match").empty() ? queue::OnConflict::kReplace
                                                                    : queue::OnConflict::kReject;
  if (!x.request.header("if-match").empty()) {
    const JobKey named{asked.tube, asked.key};
    const auto id = find_key(x, named);
    if (!id) throw no_such_key(kChanged, named);
    require_match(x, *id);
  }
  const queue::BatchOutcome batch = put(x, job, order_of(std::nullopt));
  const queue::PutOutcome& outcome = batch.jobs.front();
  if (outcome.result == queue::PutOutcome::Result::kExists) throw taken(kChanged, outcome);
  x.answer(reply_to_put(x, batch));
}

// --- A batch of jobs.

// A job that was read. Its order points into it.
struct ReadJob {
  NewJob asked = {};
  std::string attributes = {};
  queue::PutOrder order = {};
};

// What a request has described so far.
struct Batch {
  Unread<NewJob> described;
  std::deque<ReadJob> jobs = {};  // its elements stay where they are
  std::unordered_set<std::string_view> keys = {};
  std::optional<Once> once = {};
};

void read_job_at(const RequestContext& x, std::size_t n, Batch& batch, Reader& reader) {
  const boost::json::object* const object = (*batch.described.items)[n].if_object();
  if (object == nullptr) return reader.fault_at(fmt::format("/jobs/{}", n), "not an object");
  ReadJob& job = batch.jobs.emplace_back();
  const auto read = [&] {
    read_fields(reader, kShape<NewJob>, *object, &job.asked);
    job.order = order_of(reader, job.asked);
    job.attributes = kept_attributes(reader, with_type_of(job.asked.body, job.asked));
    job.order.attributes = job.attributes;
    if (!job.asked.key.empty() && !batch.keys.insert(job.asked.key).second)
      reader.fault("key", "another job of the batch has this key");
    if (std::string why = size_fault(x, job.asked.body.bytes); !why.empty())
      reader.fault("body", std::move(why));
  };
  reader.within("jobs", [&] { reader.within(std::to_string(n), read); });
}

JobOfBatch told_of(const queue::PutOutcome& put) {
  using Result = queue::PutOutcome::Result;
  JobOfBatch told{.status = put.result == Result::kInserted ? 201u : 200u,
                  .id = put.id,
                  .state = {},
                  .detail = {}};
  if (put.result == Result::kExists || put.result == Result::kReserved) {
    told.state = key_state_of(put);
    told.detail = "the key is taken, and the job asked to be left out then";
  }
  return told;
}

// What stood in the way of all jobs.
[[noreturn]] void refuse_all(RequestContext& x, const Batch& batch,
                             const queue::BatchOutcome& outcome) {
  using Result = queue::PutOutcome::Result;
  const queue::PutOutcome& put = outcome.jobs.back();
  if (put.result == Result::kDraining) throw drains(x);
  if (put.result == Result::kTooFast) throw too_fast(x, put.wait);
  const std::string at = fmt::format("/jobs/{}", outcome.stopper);
  if (put.result == Result::kTooMany) {
    const std::string why = fmt::format("{}; so the tube never takes more than {} at once",
                                        told_rate(x), outcome.stopper);
    throw Problem(kBadField, why, {{.pointer = at, .detail = why}});
  }
  if (put.result == Result::kTooFar) throw too_far(x, batch.jobs[outcome.stopper].order, at);
  const std::string why = told_of_key(put);
  throw Problem(kConflict, at + ": " + why, {{at + "/key", why}}).in_state(name_of(put.owner));
}

queue::BatchOutcome put_all(RequestContext& x, const Batch& batch) {
  std::vector<queue::NewJob> all;
  all.reserve(batch.jobs.size());
  for (const ReadJob& job : batch.jobs)
    all.push_back({.order = job.order, .body = job.asked.body.bytes});
  try {
    return x.engine().put_all(x.client(), x.now(), all, order_of(batch.once));
  } catch (const queue::NeverRuns& refused) {
    const bool is_moment = all[refused.job].order.expires_at.has_value();
    throw never_runs(refused, is_moment, fmt::format("/jobs/{}", refused.job));
  }
}

void put_them(RequestContext& x, Batch& batch) {
  x.require_room();
  x.engine().use(x.client(), x.names.front());
  const queue::BatchOutcome outcome = put_all(x, batch);
  using Result = queue::BatchOutcome::Result;
  if (outcome.result == Result::kRefused) refuse_all(x, batch, outcome);
  note_answer(batch.once, outcome);
  PutTogether told;
  told.jobs.reserve(outcome.jobs.size());
  for (const queue::PutOutcome& put : outcome.jobs) told.jobs.push_back(told_of(put));
  Reply reply{.body = text_of(told), .durable_at = outcome.durable_at};
  if (outcome.result == Result::kAlready) reply.headers.emplace_back(kReplayed, "true");
  x.answer(std::move(reply));
}

// A step reads some jobs; the last one puts all of them. Nothing was put if a job is wrong.
void read_more(RequestContext& x, const std::shared_ptr<Batch>& batch) {
  constexpr std::size_t kAtOnce = 100;
  const std::size_t size = batch->described.items->size();
  const std::size_t first = batch->jobs.size();
  Reader reader;
  for (std::size_t n = first; n < std::min(first + kAtOnce, size) && !reader.is_full(); ++n)
    read_job_at(x, n, *batch, reader);
  reader.throw_if_any();
  for (std::size_t n = first; n < batch->jobs.size(); ++n)
    x.hold(sizeof(ReadJob) + batch->jobs[n].asked.body.bytes.size());
  const bool is_whole = batch->jobs.size() == size;
  x.later([batch, is_whole](RequestContext& then) {
    is_whole ? put_them(then, *batch) : read_more(then, batch);
  });
}

void put_jobs(RequestContext& x, const PutJobs& asked, Reader& reader) {
  x.is_put = true;
  reader.throw_if_any();
  const auto batch = std::make_shared<Batch>(Batch{.described = asked.jobs});
  if (auto once = once_of(x)) batch->once.emplace(std::move(*once));
  read_more(x, batch);
}

// --- The rows.

constexpr std::string_view kToldOfPut = "Location ETag RateLimit-Policy RateLimit";

constexpr auto kPutRows = rows(
    "jobs",
    operation<put_job, Job>(
        "POST /v1/tubes/{tube}/jobs", {Needs::kPut, Reach::kTube},
        "Puts a job. A body that is no JSON is the job's own, and headers describe it.",
        {.appends = Appends::kYes,
         .first_answer = FirstAnswer::kStored,
         .status = 201,
         .problems = "409 413 429 503",
         .headers = "traceparent tracestate",
         .brief = &kShape<KnownJob>,
         .answer_headers = kToldOfPut,
         .also = {.status = 200,
                  .help = "The job that had the key was replaced; or it is as it was (ignore).",
                  .answer = &kShape<Job>}}),
    operation<put_key, Job>(
        "PUT /v1/tubes/{tube}/keys/{key}", {Needs::kPut, Reach::kTube},
        "Puts the job with this key, or replaces it.",
        {.tag = "keys",
         .appends = Appends::kYes,
         .status = 201,
         .problems = "409 413 429 503",
         .headers = "If-Match If-None-There traceparent tracestate",
         .brief = &kShape<KnownJob>,
         .answer_headers = kToldOfPut,
         .also = {.status = 200, .help = "It was replaced.", .answer = &kShape<Job>}}),
    operation<put_jobs, PutTogether>("POST /v1/tubes/{tube}/jobs:batch",
                                     {Needs::kPut, Reach::kTube},
                                     "Puts up to 1000 jobs, all or none, with one write.",
                                     {.appends = Appends::kYes,
                                      .first_answer = FirstAnswer::kStored,
                                      .problems = "409 413 429 503",
                                      .answer_headers = "RateLimit-Policy RateLimit"}));

}  // namespace

std::span<const Operation> put_operations() {
  return kPutRows;
}

}  // namespace carillon::server
