// Operations that cancel, retry, move or spread many jobs in steps (bulk.h).
#include "server/api/bulk.h"

#include <fmt/format.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "carillon/queue/engine.h"
#include "server/api/operations.h"
#include "server/api/problem.h"
#include "server/api/tubes.h"
#include "server/text/json_text.h"

namespace carillon::server {

namespace {

using queue::JobBulk;

// A change that takes longer than this many ns becomes an operation.
constexpr std::uint64_t kPatienceNs = 200'000'000;

void tell(const JobBulk& bulk, Changed& told) {
  told.action = bulk.action;
  told.tube = bulk.list.tube;
  if (!bulk.to.empty()) told.to = bulk.to;
  if (bulk.over > 0) told.over = Duration{bulk.over};
  told.dry_run = bulk.dry_run;
  told.changed = bulk.changed;
  told.left = bulk.left;
  told.looked_at = bulk.list.looked_at;
  if (bulk.list.incomplete) told.incomplete = true;
  if (!bulk.list.done) told.next_page_token = bulk.list.next;
}

ChangeInSteps shown(std::uint64_t id, const LongChange& change) {
  ChangeInSteps told;
  tell(change.bulk, told);
  told.id = id;
  told.state = change.ended == 0       ? ChangeState::kRunning
               : change.stopped        ? ChangeState::kStopped
               : !change.error.empty() ? ChangeState::kInError
                                       : ChangeState::kDone;
  told.began.at = change.began;
  if (change.ended != 0) told.ended = Moment{change.ended};
  if (!change.error.empty()) told.error = change.error;
  return told;
}

// Answers how many jobs were changed, also if an error has stopped the change.
void answer_change(RequestContext& x, const JobBulk& bulk, std::string_view error = {}) {
  Changed told;
  tell(bulk, told);
  if (!error.empty()) told.error = error;
  if (bulk.dry_run) x.audited_as.clear();
  x.outcome = error.empty() ? fmt::format("changed {}, left {}", bulk.changed, bulk.left)
                            : fmt::format("changed {}, then: {}", bulk.changed, error);
  answer(x, told);
}

void go_on(RequestContext& x, const std::shared_ptr<JobBulk>& bulk, std::uint64_t until_ns) {
  try {
    x.engine().change_jobs(x.now(), *bulk);
  } catch (const std::runtime_error& error) {  // StoreError, OverLimit
    if (bulk->changed == 0) throw;
    return answer_change(x, *bulk, error.what());
  }
  if (bulk->ended()) return answer_change(x, *bulk);
  LongChanges& changes = x.service().long_changes();
  if (x.now().mono_ns < until_ns || changes.are_full())
    return x.later([bulk, until_ns](RequestContext& then) { go_on(then, bulk, until_ns); });
  if (bulk->dry_run) x.audited_as.clear();
  const std::uint64_t id = changes.begin(std::move(*bulk), x.now());
  x.outcome = fmt::format("goes on as operation {}", id);
  answer_later(x, shown(id, *changes.find(id)), fmt::format("/v1/operations/{}", id));
}

// Begins the change, with the options that all changes have in common.
void begin(RequestContext& x, const ChangeOptions& asked, JobBulk bulk) {
  bulk.dry_run = asked.dry_run;
  bulk.bound = asked.max.value_or(UINT64_MAX);
  if (asked.page_token) bulk.list.next = *asked.page_token;
  found_tube(x, bulk.list.tube);
  const auto shared = std::make_shared<JobBulk>(std::move(bulk));
  go_on(x, shared, x.now().mono_ns + kPatienceNs);
}

// The body names the tube, so the route cannot check the caller's rights for it: this does.
JobBulk bulk_of(RequestContext& x, JobBulk::Action action, const TubeFilter& filter) {
  x.target = filter.tube;
  x.require_tube(filter.tube);
  return {.action = action,
          .list = {.tube = filter.tube, .filter = filter.jobs()},
          .reason = filter.reason.value_or(Bytes()).bytes};
}

[[noreturn]] void refuse(const std::string& pointer, const std::string& why) {
  throw Problem(kBadField, fmt::format("{}: {}", pointer, why), {{pointer, why}});
}

const LongChange& find_change(const RequestContext& x, std::uint64_t id) {
  const LongChange* const found = x.service().long_changes().find(id);
  if (found == nullptr)
    throw Problem(kNotFound,
                  fmt::format("there is no operation {}; a restart of the server ends them", id));
  const std::string what = fmt::format("operation {}", id);
  x.require_tube_of(what, found->bulk.list.tube);
  if (!found->bulk.to.empty()) x.require_tube_of(what, found->bulk.to);
  return *found;
}

// --- The functions.

void cancel_jobs(RequestContext& x, const ChangeJobs& asked) {
  begin(x, asked, bulk_of(x, JobBulk::Action::kCancel, asked.filter));
}

// A filter without states means the buried jobs.
void retry_jobs(RequestContext& x, const ChangeJobs& asked) {
  JobBulk bulk = bulk_of(x, JobBulk::Action::kRetry, asked.filter);
  queue::JobFilter& filter = bulk.list.filter;
  if (!asked.filter.state) filter.states = bit_of(queue::JobState::kBuried);
  if (filter.admits_any(bit_of(queue::JobState::kReady) | bit_of(queue::JobState::kReserved)))
    refuse("/filter/state", "only delayed, buried and dead jobs can be retried");
  begin(x, asked, std::move(bulk));
}

void move_jobs(RequestContext& x, const MoveJobs& asked) {
  if (asked.to == asked.filter.tube) refuse("/to", "the jobs are in this tube");
  JobBulk bulk = bulk_of(x, JobBulk::Action::kMove, asked.filter);
  x.require_tube(asked.to);
  bulk.to = asked.to;
  begin(x, asked, std::move(bulk));
}

void spread_jobs(RequestContext& x, const SpreadJobs& asked) {
  TubeFilter filter;
  filter.tube = asked.filter.tube;
  filter.group = asked.filter.group;
  filter.key_prefix = asked.filter.key_prefix;
  filter.due_after = asked.filter.due_after;
  filter.due_before = asked.filter.due_before;
  JobBulk bulk = bulk_of(x, JobBulk::Action::kSpread, filter);
  bulk.over = asked.over.ms;
  if (const std::string why = bulk.fault(); !why.empty()) refuse("/over", why);
  begin(x, asked, std::move(bulk));
}

// Cancels all jobs of the tube that are not reserved, or those that match the filter.
void clear_tube(RequestContext& x, const ClearTube& asked) {
  found_tube(x, asked.tube);
  require_tube_match(x, asked.tube);
  begin(x, asked,
        {.action = JobBulk::Action::kCancel,
         .list = {.tube = asked.tube, .filter = asked.filter.value_or(Filter()).jobs()}});
}

ChangeInSteps get_operation(RequestContext& x, const OperationId& asked) {
  return shown(asked.id, find_change(x, asked.id));
}

// The jobs that were changed before stay changed.
void stop_operation(RequestContext& x, const OperationId& asked) {
  find_change(x, asked.id);
  x.service().long_changes().stop(asked.id, x.now());
  x.answer({.status = 204, .durable_at = x.engine().last_sequence()});
}

// --- The rows.

constexpr Success kGoesOn{
    .status = 202, .help = "It takes long, and goes on.", .answer = &kShape<ChangeInSteps>};

constexpr Operation change(std::string_view action) {
  return {.appends = Appends::kYes,
          .audited_as = action,
          .problems = "404 503",
          .answer_headers = "Location",
          .also = kGoesOn};
}
constexpr Operation of_tube(Operation row) {
  row.tag = "tubes";
  row.headers = "If-Match";
  return row;
}
constexpr Rights kChangesMany{Needs::kAdmin, Reach::kChecked};

constexpr auto kBulkRows = rows(
    "many jobs",
    operation<cancel_jobs, Changed>("POST /v1/jobs:cancel", kChangesMany,
                                    "Cancels the jobs that a filter means.", change("jobs:cancel")),
    operation<retry_jobs, Changed>(
        "POST /v1/jobs:retry", kChangesMany,
        "Makes buried and dead jobs ready, or delayed ones if the filter says so.",
        change("jobs:retry")),
    operation<move_jobs, Changed>("POST /v1/jobs:move", kChangesMany, "Moves jobs to another tube.",
                                  change("jobs:move")),
    operation<spread_jobs, Changed>("POST /v1/jobs:spread", kChangesMany,
                                    "Deals the delayed jobs of a window out over a longer time.",
                                    change("jobs:spread")),
    operation<clear_tube, Changed>(
        "POST /v1/tubes/{tube}:clear", {Needs::kAdmin, Reach::kTube},
        "Cancels the jobs of the tube, or those of a filter, that nobody has reserved.",
        of_tube(change("tube:clear"))),
    operation<get_operation>("GET /v1/operations/{id}", {Needs::kRead, Reach::kChecked},
                             "How far a long change is.", {.problems = "404"}),
    operation<stop_operation>("DELETE /v1/operations/{id}", {Needs::kAdmin, Reach::kChecked},
                              "Stops it. What was changed stays so.",
                              {.audited_as = "operation:stop", .problems = "404"}));

}  // namespace

std::span<const Operation> bulk_operations() {
  return kBulkRows;
}

}  // namespace carillon::server
