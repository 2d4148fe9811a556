// Reads, changes and cancels jobs, by their ids or by their keys (jobs.h).
#include "server/api/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "server/api/operations.h"
#include "server/api/preconditions.h"
#include "server/api/puts.h"

namespace carillon::server {

namespace {

// --- Looking.

// Answers with the job as it is. A body that is too large is left out, and so is one that cannot be
// read: `error` says why.
void answer_with(RequestContext& x, const queue::JobStats& stats,
                 std::optional<std::string_view> body, std::string_view error = {}) {
  const auto story = x.engine().story(x.now(), stats.record.id);
  Job job = job_of(stats);
  job.attempts = attempts_of(story.value_or(std::vector<queue::Attempt>()));
  if (!stats.worker.empty()) job.worker = Bytes{stats.worker};
  if (stats.state == queue::JobState::kReserved)  // what is left was rounded down
    job.lease_ends = Moment{x.now().utc_ns / 1'000'000 + stats.time_left + 1};
  if (!error.empty()) {
    job.body_error = error;
  } else if (body) {
    job.body = Bytes{std::string(*body)};
  } else {
    job.body_url = path_of_job(stats.record.id) + "/body";
  }
  x.answer({.body = text_of(job),
            .headers = {{"ETag", etag_of(stats)}},
            .durable_at = stats.durable_at});
}

void answer_one(RequestContext& x, queue::JobId id) {
  const auto stats = x.engine().job_stats(x.now(), id);
  if (!stats) throw no_such_job(id);
  // The end of a lease is in no tag: it moves each time that the worker asks for more time.
  const bool is_held = stats->state == queue::JobState::kReserved;
  if (std::string tag = etag_of(*stats); !is_held && is_known(x.request, tag)) {
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

queue::JobId named_job(RequestContext& x, const JobKey& named) {
  if (const auto id = find_key(x, named)) return *id;
  throw no_such_key(kNotFound, named);
}

// --- Changing.

// Returns the attributes after the change.
std::string attributes_after(RequestContext& x, queue::JobId id, const JobChange& change) {
  const auto stats = x.engine().job_stats(x.now(), id);
  if (!stats) throw no_such_job(id);
  boost::json::object patch;
  if (change.content_type.given) patch["content_type"] = nullptr;
  if (change.content_type.value) patch["content_type"] = *change.content_type.value;
  if (change.metadata.given) patch["metadata"] = nullptr;
  if (change.metadata.value) patch["metadata"] = change.metadata.value->object;
  try {
    return merged_attributes(stats->record.extras->attributes, patch);
  } catch (const std::invalid_argument& error) {
    const std::string pointer = "/" + std::string(patch.begin()->key());
    throw Problem(kBadField, fmt::format("{}: {}", pointer, error.what()),
                  {{.pointer = pointer, .detail = error.what()}});
  }
}

// Answers with the job after a change. A caller who may change it, but not read it, gets its id.
void answer_after(RequestContext& x, queue::JobId id, queue::Sequence durable_at) {
  const auto stats = x.engine().job_stats(x.now(), id);
  const auto job = x.engine().peek(x.now(), id);
  if (stats && job && x.caller().may(Needs::kRead)) {
    if (stats->record.body_bytes > queue::kBodyPiece) return answer_with(x, *stats, std::nullopt);
    return x.read_body(
        *job,
        [stats = *stats](RequestContext& then, std::string_view body) {
          answer_with(then, stats, body);
        },
        [stats = *stats](RequestContext& then, const Body& body) {
          then.service().report_store_failure(body.error);
          answer_with(then, stats, std::nullopt, body.error);
        });
  }
  Reply reply{.body = text_of(KnownJob{.id = id, .state = {}}), .durable_at = durable_at};
  if (stats) reply.headers.emplace_back("ETag", etag_of(*stats));
  x.answer(std::move(reply));
}

// Returns what the engine is asked, apart from the attributes, and notes what does not go together.
// It points into the change.
queue::Patch patch_of(Reader& reader, const JobChange& change) {
  if (change.delay && change.due) reader.fault("due", "does not go with `delay`");
  if (change.expires_at.given && change.expires_in)
    reader.fault("expires_in", "does not go with `expires_at`");
  queue::Patch patch{.priority = change.priority, .at_expiry = change.at_expiry};
  if (change.ttr) patch.ttr = change.ttr->ms;
  if (change.delay) patch.due_in = change.delay->ms;
  if (change.due) patch.due_at = change.due->at;
  if (change.body) patch.body = change.body->bytes;
  if (change.expires_in) patch.expires_in = change.expires_in->ms;
  if (change.expires_at.given)
    patch.expires_at = change.expires_at.value.value_or(Moment{queue::kNeverExpires}).at;
  return patch;
}

void change_one(RequestContext& x, queue::JobId id, JobChange change, queue::Patch patch) {
  if (change.body && change.body->is_json && !change.content_type.given)
    change.content_type = {.given = true, .value = std::string(kJsonType)};
  require_match(x, id);
  if (patch.body) {
    x.require_room();
    require_size(x, *patch.body);
  }
  std::string attributes;
  if (change.content_type.given || change.metadata.given) {
    attributes = attributes_after(x, id, change);
    patch.attributes = attributes;
  }
  queue::ChangeOutcome outcome;
  try {
    outcome = x.engine().patch(x.now(), id, patch);
  } catch (const queue::NeverRuns& refused) {
    throw never_runs(refused, patch.expires_at.has_value());
  }
  using Result = queue::ChangeOutcome::Result;
  switch (outcome.result) {
    case Result::kDone:
    case Result::kAsked:
      return answer_after(x, id, outcome.durable_at);
    case Result::kReserved:
      throw Problem(kConflict, fmt::format("job {} is reserved", id));
    case Result::kNone:
      throw no_such_job(id);
    case Result::kTooFar:
      throw too_far(x, {.due_in = patch.due_in.value_or(0),
                        .due_at = patch.due_at,
                        .expires_at = patch.expires_at});
  }
}

// Answers if the job was deleted as done.
bool finish_one(RequestContext& x, queue::JobId id) {
  const queue::Outcome outcome = x.engine().remove(x.client(), x.now(), id);
  if (outcome.done) x.answer({.status = 204, .durable_at = outcome.durable_at});
  return outcome.done;
}

void cancel_one(RequestContext& x, queue::JobId id, const CancelOptions& asked) {
  require_match(x, id);
  if (asked.done && finish_one(x, id)) return;
  using Result = queue::ChangeOutcome::Result;
  const queue::ChangeOutcome outcome =
      x.engine().cancel(x.now(), id, asked.if_reserved == IfReserved::kAsk);
  switch (outcome.result) {
    case Result::kDone:
      return x.answer({.status = 204, .durable_at = outcome.durable_at});
    case Result::kAsked:
      return x.answer(
          {.status = 202, .body = text_of(CancelAsked()), .durable_at = outcome.durable_at});
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

// --- The functions of the rows.

void get_job(RequestContext& x, const JobId& asked) {
  answer_one(x, asked.id);
}

void get_job_body(RequestContext& x, const JobId& asked) {
  answer_body(x, asked.id);
}

void patch_job(RequestContext& x, const ChangeJob& asked, Reader& reader) {
  const queue::Patch patch = patch_of(reader, asked);
  reader.throw_if_any();
  change_one(x, asked.id, asked, patch);
}

void cancel_job(RequestContext& x, const CancelJob& asked) {
  cancel_one(x, asked.id, asked);
}

void kick_job(RequestContext& x, const JobId& asked) {
  require_match(x, asked.id);
  const queue::Outcome outcome = x.engine().kick_job(x.now(), asked.id);
  if (!outcome.done) {
    const auto stats = x.engine().job_stats(x.now(), asked.id);
    if (!stats) throw no_such_job(asked.id);
    const auto state = static_cast<std::size_t>(stats->state);
    throw Problem(kConflict, fmt::format("job {} is {}, neither buried nor delayed", asked.id,
                                         kWords<State>[state]));
  }
  answer_after(x, asked.id, outcome.durable_at);
}

void get_key(RequestContext& x, const JobKey& asked) {
  answer_one(x, named_job(x, {asked.tube, asked.key}));
}

void patch_key(RequestContext& x, const ChangeKey& asked, Reader& reader) {
  const queue::Patch patch = patch_of(reader, asked);
  reader.throw_if_any();
  change_one(x, named_job(x, {asked.tube, asked.key}), asked, patch);
}

void cancel_key(RequestContext& x, const CancelKey& asked) {
  cancel_one(x, named_job(x, {asked.tube, asked.key}), asked);
}

void answer_next(RequestContext& x, const PeekTube& asked,
                 const std::optional<queue::JobView>& found) {
  if (found) return answer_one(x, found->id);
  throw Problem(kNotFound, fmt::format("tube {} has no {} job", asked.tube,
                                       kWords<WaitsAs>[static_cast<std::size_t>(asked.state)]));
}

// Each step visits a few of the delayed jobs.
void peek_delayed(RequestContext& x, const PeekTube& asked,
                  const std::shared_ptr<queue::DelayedPeek>& peek) {
  x.engine().peek_delayed(x.client(), x.now(), *peek);
  if (peek->done) return answer_next(x, asked, peek->found);
  x.later([asked, peek](RequestContext& then) { peek_delayed(then, asked, peek); });
}

void bury_job(RequestContext& x, const BuryJob& asked) {
  using Result = queue::ChangeOutcome::Result;
  require_match(x, asked.id);
  const queue::ChangeOutcome outcome = x.engine().bury_job(x.now(), asked.id, asked.priority);
  if (outcome.result == Result::kReserved)
    throw Problem(kConflict, fmt::format("job {} is reserved", asked.id));
  if (outcome.result != Result::kDone) throw no_such_job(asked.id);
  answer_after(x, asked.id, outcome.durable_at);
}

void peek_tube(RequestContext& x, const PeekTube& asked) {
  // To use a tube makes it, and a client that reads makes nothing.
  if (!x.engine().tube_stats(x.now(), asked.tube)) return answer_next(x, asked, std::nullopt);
  x.use_tube();
  switch (asked.state) {
    case WaitsAs::kReady:
      return answer_next(x, asked, x.engine().peek_ready(x.client(), x.now()));
    case WaitsAs::kDelayed:
      return peek_delayed(x, asked, std::make_shared<queue::DelayedPeek>());
    case WaitsAs::kBuried:
      return answer_next(x, asked, x.engine().peek_buried(x.client(), x.now()));
  }
}

// --- The rows.

constexpr Success kStopsLater{.status = 202,
                              .help = "Its worker is asked to stop, and it goes then.",
                              .answer = &kShape<CancelAsked>};

// A job is shown, changed and cancelled by its id, and in the same way by its key.
constexpr std::string_view kShows = "Shows a job with its body and failed attempts.";
constexpr std::string_view kPatches = "Changes a job that nobody has reserved.";
constexpr std::string_view kCancels = "Cancels a job.";
constexpr Operation kPatchOne{.appends = Appends::kYes,
                              .problems = "404 409 413 503",
                              .headers = "If-Match",
                              .brief = &kShape<KnownJob>,
                              .answer_headers = kTold};
constexpr Operation kCancelOne{
    .appends = Appends::kYes, .problems = "404 409", .headers = "If-Match", .also = kStopsLater};

constexpr Operation kMoveOne{.appends = Appends::kYes,
                             .problems = "404 409",
                             .headers = "If-Match",
                             .brief = &kShape<KnownJob>,
                             .answer_headers = kTold};

constexpr Operation of_key(Operation row) {
  row.tag = "keys";
  return row;
}

constexpr auto kJobRows = rows(
    "jobs",
    operation<get_job, Job>("GET /v1/jobs/{id}", {Needs::kRead, Reach::kJob}, kShows, kShowsTagged),
    operation<patch_job, Job>("PATCH /v1/jobs/{id}", {Needs::kPut, Reach::kJob}, kPatches,
                              kPatchOne),
    operation<cancel_job>("DELETE /v1/jobs/{id}", {Needs::kPut, Reach::kJob}, kCancels, kCancelOne),
    operation<get_job_body>("GET /v1/jobs/{id}/body", {Needs::kRead, Reach::kJob},
                            "The body alone, of any size.",
                            {.status = 200, .problems = "404 503", .media = kBytesType}),
    operation<kick_job, Job>("POST /v1/jobs/{id}:kick", {Needs::kAdmin, Reach::kJob},
                             "Makes a delayed, buried or dead job ready.", kMoveOne),
    operation<bury_job, Job>(
        "POST /v1/jobs/{id}:bury", {Needs::kAdmin, Reach::kJob},
        "Sets a job aside that nobody has reserved, until somebody kicks or retries it.", kMoveOne),
    operation<peek_tube, Job>(
        "GET /v1/tubes/{tube}/next", {Needs::kRead, Reach::kTube},
        "Shows the job that leaves its state next: that goes out, is due, or is kicked.",
        kShowsTagged),
    operation<get_key, Job>("GET /v1/tubes/{tube}/keys/{key}", {Needs::kRead, Reach::kTube}, kShows,
                            of_key(kShowsTagged)),
    operation<patch_key, Job>("PATCH /v1/tubes/{tube}/keys/{key}", {Needs::kPut, Reach::kTube},
                              kPatches, of_key(kPatchOne)),
    operation<cancel_key>("DELETE /v1/tubes/{tube}/keys/{key}", {Needs::kPut, Reach::kTube},
                          kCancels, of_key(kCancelOne)));

}  // namespace

std::span<const Operation> job_operations() {
  return kJobRows;
}

Problem no_such_job(queue::JobId id) {
  return Problem(kNotFound, fmt::format("there is no job {}", id));
}

std::string path_of_job(queue::JobId id) {
  return fmt::format("/v1/jobs/{}", id);
}

Problem no_such_key(const ProblemKind& kind, const JobKey& named) {
  return Problem(kind, fmt::format("tube {} has no job with the key {}", named.tube, named.key));
}

std::optional<queue::JobId> find_key(RequestContext& x, const JobKey& named) {
  x.engine().use(x.client(), named.tube);
  return x.engine().job_with_key(x.client(), named.key);
}

void require_match(RequestContext& x, queue::JobId id) {
  const std::string_view wanted = x.request.header("if-match");
  if (wanted.empty()) return;
  const auto stats = x.engine().job_stats(x.now(), id);
  if (!stats) throw no_such_job(id);
  const std::string tag = etag_of(*stats);
  if (wanted != "*" && !names_tag(wanted, tag))
    throw Problem(kChanged, fmt::format("job {} has the tag {} now, and not {}", id, tag, wanted));
}

void answer_body(RequestContext& x, queue::JobId id) {
  const auto job = x.engine().peek(x.now(), id);
  if (!job) throw no_such_job(id);
  x.hold(std::min<std::size_t>(job->body_bytes, queue::kBodyPiece));
  x.read_body(
      id, job->body_id,
      [job = *job](RequestContext& then, std::string_view piece) {
        Reply reply{.type = kBytesType, .body = std::string(piece), .durable_at = job.durable_at};
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

}  // namespace carillon::server
