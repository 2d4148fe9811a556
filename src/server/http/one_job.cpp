// One job, named by its id or its key (one_job.h).
#include "server/http/one_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "server/api/attributes.h"
#include "server/api/key_owner.h"

namespace carillon::server::http {

namespace {

// Answers with the job as it is; the body is none if it is too large.
void answer_with(RequestContext& x, const queue::JobStats& stats,
                 std::optional<std::string_view> body) {
  const auto story = x.engine().story(x.now(), stats.record.id);
  boost::json::object job = json_of(stats, story.value_or(std::vector<queue::Attempt>()), body);
  if (!body) job["body_url"] = fmt::format("/v1/jobs/{}/body", stats.record.id);
  x.answer({.body = boost::json::serialize(job),
            .headers = {{"ETag", etag_of(stats)}},
            .durable_at = stats.durable_at});
}

void require_size(RequestContext& x, std::string_view body) {
  if (const std::string why = size_fault(x, body); !why.empty()) throw Problem(kTooLarge, why);
}

// The job has just been put.
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

std::string path_of(queue::JobId id) {
  return fmt::format("/v1/jobs/{}", id);
}

// Returns true if the request knows the job as it is: a weak tag does as well (RFC 9110, 13.1.2).
bool is_known(const Request& request, std::string_view tag) {
  const std::string_view known = request.header("if-none-match");
  return request.method == "GET" && (known == "*" || known.find(tag) != std::string_view::npos);
}

// Returns true if the tag is in the list, and is not weak there (RFC 9110, 13.1.1).
bool names(std::string_view list, std::string_view tag) {
  for (std::size_t at = list.find(tag); at != list.npos; at = list.find(tag, at + 1))
    if (!list.substr(0, at).ends_with("W/")) return true;
  return false;
}

std::string attributes_after(RequestContext& x, queue::JobId id, const boost::json::object& patch) {
  const auto stats = x.engine().job_stats(x.now(), id);
  if (!stats) throw no_such_job(id);
  try {
    return merged_attributes(stats->record.extras->attributes, patch);
  } catch (const std::invalid_argument& error) {
    const std::string name(patch.begin()->key());
    throw Problem(kBadField, fmt::format("/{}: {}", name, error.what()),
                  {{.pointer = "/" + name, .detail = error.what()}});
  }
}

// Adds to the reply the job that was put, or the one that has its key. The latter may be another
// client's, so it is shown to whoever may look at it; others learn its state. Of a job that is gone
// no more is known.
void tell_job(RequestContext& x, const queue::BatchOutcome& batch, Reply& reply) {
  const queue::PutOutcome& put = batch.jobs.front();
  const bool is_met = put.result == queue::PutOutcome::Result::kExists;
  if (is_met) {
    boost::json::object told{{"id", put.id}};
    add_state(put, told);
    reply.body = boost::json::serialize(told);
  }
  // A job that was met was not put: it is shown as it is now.
  const auto stats =
      batch.job ? std::optional(stats_of(*batch.job)) : x.engine().job_stats(x.now(), put.id);
  if (!stats) return;
  reply.headers.emplace_back("ETag", etag_of(*stats));
  reply.durable_at = std::max(reply.durable_at, stats->durable_at);
  if (is_met && !x.caller().may(Needs::kRead)) return;
  const auto story = is_met ? x.engine().story(x.now(), put.id) : std::nullopt;
  reply.body = boost::json::serialize(
      json_of(*stats, story.value_or(std::vector<queue::Attempt>()), std::nullopt));
}

// To a caller who may change the job, and not look at it.
void answer_changed(RequestContext& x, queue::JobId id, queue::Sequence durable_at) {
  Reply reply{.body = fmt::format(R"({{"id":{}}})", id), .durable_at = durable_at};
  if (const auto stats = x.engine().job_stats(x.now(), id))
    reply.headers.emplace_back("ETag", etag_of(*stats));
  x.answer(std::move(reply));
}

}  // namespace

Problem no_such_job(queue::JobId id) {
  return Problem(kNotFound, fmt::format("there is no job {}", id));
}

void add_state(const queue::PutOutcome& put, boost::json::object& told) {
  if (put.owner != queue::KeyOwner::kNone) told["state"] = server::name_of(put.owner);
}

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
      .with("Location", path_of(put.id));
}

void answer_body(RequestContext& x, queue::JobId id) {
  const auto job = x.engine().peek(x.now(), id);
  if (!job) throw no_such_job(id);
  x.hold(std::min<std::size_t>(job->body_bytes, queue::kBodyPiece));
  x.read_body(
      id, job->body_id,
      [job = *job](RequestContext& then, std::string_view piece) {
        Reply reply{.type = "application/octet-stream",
                    .body = std::string(piece),
                    .durable_at = job.durable_at};
        if (piece.size() < job.body_bytes) {
          reply.large = LargeReply{.job = job.id,
                                   .next = {.id = job.body_id, .piece = 1},
                                   .bytes = job.body_bytes,
                                   .sent = piece.size()};
        }
        then.answer(std::move(reply));
      },
      answer_body);
}

std::string size_fault(const RequestContext& x, std::string_view body) {
  const std::size_t most =
      std::min<std::size_t>(x.service().options().max_job_size, queue::kBodyPiece);
  if (body.size() <= most) return {};
  return fmt::format("the body of the job has {} bytes; the limit is {}", body.size(), most);
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

queue::BatchOutcome put(RequestContext& x, const JobFields& job, const queue::BatchOrder& order) {
  x.require_room();
  require_size(x, job.body);
  const queue::NewJob one{.order = job.order, .body = job.body};
  try {
    queue::BatchOutcome batch = x.engine().put_all(x.client(), x.now(), {&one, 1}, order);
    if (!batch.jobs.empty() && batch.jobs.front().result == queue::PutOutcome::Result::kTooFar)
      throw too_far(x, job.order);
    return batch;
  } catch (const queue::NeverRuns& refused) {
    throw never_runs(refused, job.order.expires_at.has_value());
  }
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
      throw Problem(kDraining, fmt::format("the tube {} takes no new jobs", x.names.front()));
    case Result::kTooFast:
      throw too_fast(x, outcome.wait);
    case Result::kTooMany:  // of one job: never
    case Result::kTooFar:
      throw Problem(kBadField, "the job would be due or expire after the year 9999");
  }
  const bool is_new = outcome.result == Result::kInserted;
  Reply reply{.status = is_new ? 201u : 200u,
              .body = fmt::format(R"({{"id":{}}})", outcome.id),
              .headers = {{"Location", path_of(outcome.id)}},
              .durable_at = batch.durable_at};
  tell_job(x, batch, reply);
  if (batch.result == queue::BatchOutcome::Result::kAlready)
    reply.headers.emplace_back(kReplayed, "true");
  return reply;
}

void answer_one(RequestContext& x, queue::JobId id) {
  const auto stats = x.engine().job_stats(x.now(), id);
  if (!stats) throw no_such_job(id);
  if (std::string tag = etag_of(*stats); is_known(x.request, tag)) {
    return x.answer(
        {.status = 304, .headers = {{"ETag", std::move(tag)}}, .durable_at = stats->durable_at});
  }
  if (stats->record.body_bytes > queue::kBodyPiece) return answer_with(x, *stats, std::nullopt);
  x.read_body(
      id, stats->record.body_id(),
      [stats = *stats](RequestContext& then, std::string_view body) {
        answer_with(then, stats, body);
      },
      answer_one);
}

void require_match(RequestContext& x, queue::JobId id) {
  const std::string_view wanted = x.request.header("if-match");
  if (wanted.empty()) return;
  const auto stats = x.engine().job_stats(x.now(), id);
  if (!stats) throw no_such_job(id);
  const std::string tag = etag_of(*stats);
  if (wanted != "*" && !names(wanted, tag))
    throw Problem(kChanged, fmt::format("job {} has the tag {} now, and not {}", id, tag, wanted));
}

queue::ChangeOutcome patch(RequestContext& x, queue::JobId id, const queue::Patch& patch) try {
  return x.engine().patch(x.now(), id, patch);
} catch (const queue::NeverRuns& refused) {
  throw never_runs(refused, patch.expires_at.has_value());
}

void patch_one(RequestContext& x, queue::JobId id) {
  FieldFaults faults;
  PatchFields fields;
  read_patch(parse_object(x.request.body), faults, fields);
  faults.throw_if_any();
  require_match(x, id);
  if (fields.patch.body) {
    x.require_room();
    require_size(x, *fields.patch.body);
  }
  std::string attributes;
  if (!fields.attributes.empty()) {
    attributes = attributes_after(x, id, fields.attributes);
    fields.patch.attributes = attributes;
  }
  using Result = queue::ChangeOutcome::Result;
  const queue::ChangeOutcome outcome = patch(x, id, fields.patch);
  switch (outcome.result) {
    case Result::kDone:
    case Result::kAsked:
      if (x.caller().may(Needs::kRead)) return answer_one(x, id);
      return answer_changed(x, id, outcome.durable_at);
    case Result::kReserved:
      throw Problem(kConflict, fmt::format("job {} is reserved", id));
    case Result::kNone:
      throw no_such_job(id);
    case Result::kTooFar:
      throw too_far(x, {.due_in = fields.patch.due_in.value_or(0),
                        .due_at = fields.patch.due_at,
                        .expires_at = fields.patch.expires_at});
  }
}

void cancel_one(RequestContext& x, queue::JobId id) {
  require_match(x, id);
  const std::string_view if_reserved = x.request.asked("if_reserved");
  if (!if_reserved.empty() && if_reserved != "refuse" && if_reserved != "ask")
    throw wrong_query("if_reserved", fmt::format("\"{}\": write refuse or ask", if_reserved));
  using Result = queue::ChangeOutcome::Result;
  const queue::ChangeOutcome outcome = x.engine().cancel(x.now(), id, if_reserved == "ask");
  switch (outcome.result) {
    case Result::kDone:
      return x.answer({.status = 204, .durable_at = outcome.durable_at});
    case Result::kAsked:
      return x.answer({.status = 202,
                       .body = R"({"cancel_requested":true})",
                       .durable_at = outcome.durable_at});
    case Result::kReserved:
      throw Problem(kConflict,
                    fmt::format("job {} is reserved; with ?if_reserved=ask its worker is "
                                "asked to stop",
                                id));
    case Result::kNone:
    case Result::kTooFar:
      throw no_such_job(id);
  }
}

}  // namespace carillon::server::http
