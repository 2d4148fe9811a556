#include "queue/engine/state/appender.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

// The stored watermarks run ahead of the ids given by this many. A larger block means more ids
// skipped after a crash; a smaller one more appends that carry watermarks.
constexpr std::uint64_t kIdBlock = 1'000;
// The stored time is at most about this far behind.
constexpr Millis kTimeStep = 1'000;

void count(TubeRecord& tube, const JobRecord& job, std::int64_t by) {
  std::uint64_t& jobs = job.buried() ? tube.buried : tube.scheduled;
  jobs += static_cast<std::uint64_t>(by);
}

}  // namespace

Appender::Appender(Store& store, const EngineOptions& options, const EngineClock& clock,
                   EngineCounts& counts, Tubes& tubes, Schedules& schedules,
                   const Watermarks& stored)
    : store_(store),
      options_(options),
      clock_(clock),
      counts_(counts),
      tubes_(tubes),
      schedules_(schedules),
      stored_marks_(stored),
      job_lead_(std::max(stored.job_lead, clock.lead())),
      next_id_(stored.next_id),
      next_burial_(stored.next_burial) {}

TubeRecord& Appender::changed_tube(std::uint32_t number) {
  const auto same = [number](const TubeRecord& tube) { return tube.number == number; };
  const auto tube = std::find_if(changes.tubes.begin(), changes.tubes.end(), same);
  return tube != changes.tubes.end() ? *tube
                                     : *changes.tubes.insert(tube, tubes_.numbered(number).record);
}

void Appender::add_change(std::optional<JobRecord> before, std::optional<JobRecord> after,
                          std::string_view body) {
  if (before) count(changed_tube(before->tube), *before, -1);
  if (after) count(changed_tube(after->tube), *after, +1);
  changes.jobs.push_back({std::move(before), std::move(after), body});
}

void Appender::add_key_change(std::optional<KeyRecord> before, std::optional<KeyRecord> after) {
  const std::uint32_t number = before ? before->tube : after->tube;
  if (number != kTokens) {
    TubeRecord& tube = changed_tube(number);
    if (before && before->until != 0) --tube.ended_keys;
    if (after && after->until != 0) ++tube.ended_keys;
  }
  changes.keys.push_back({std::move(before), std::move(after)});
}

Watermarks Appender::watermarks(JobId ids, std::uint64_t burials) const {
  return {.next_id = ids,
          .next_burial = burials,
          .time = clock_.utc(),
          .boot = options_.boot,
          .wall_ns = clock_.wall_ns(),
          .steady_ns = clock_.steady_ns(),
          .boot_lead = clock_.boot_lead(),
          .job_lead = job_lead_,
          .gained_ns = clock_.gained_ns(),
          .era = clock_.era(),
          .boot_era = clock_.boot_era(),
          .up_ns = clock_.up_ns(),
          .rises = clock_.rises(),
          .wrong_since = clock_.wrong_since(),
          .newer = stored_marks_.newer};
}

void Appender::end_lease(const LoadedJob& job) {
  if (job.has_stored_lease) changes.leases.push_back({job.record.id, std::nullopt});
}

void Appender::lease_is_over(LoadedJob& job) {
  if (std::exchange(job.has_stored_lease, false)) leases_over_.push_back(job.record.id);
}

// Goes before the other changes: a job may have another lease by now.
void Appender::erase_leases_over(Changes& in) const {
  in.leases.insert(in.leases.begin(), leases_over_.size(), {});
  for (std::size_t i = 0; i < leases_over_.size(); ++i) in.leases[i].job = leases_over_[i];
}

Sequence Appender::append() {
  struct Clear {
    Changes& changes;
    ~Clear() { changes.clear(); }
  } clear{changes};

  const bool covered =
      next_id_ <= stored_marks_.next_id && next_burial_ <= stored_marks_.next_burial;
  if (!covered || !clock_is_stored_ || clock_.utc() >= stored_marks_.time + kTimeStep) {
    changes.watermarks =
        watermarks(std::max(stored_marks_.next_id, next_id_ + (covered ? 0 : kIdBlock)),
                   std::max(stored_marks_.next_burial, next_burial_ + (covered ? 0 : kIdBlock)));
  }
  add_lane_counts();
  if (!leases_over_.empty()) erase_leases_over(changes);
  last_sequence_ = store_.append(changes);
  leases_over_.clear();
  appended();
  return last_sequence_;
}

void Appender::appended() noexcept {
  if (changes.watermarks) {
    stored_marks_ = std::move(*changes.watermarks);
    clock_is_stored_ = true;
  }
  for (TubeRecord& counted : changes.tubes) {
    Tube& tube = tubes_.numbered(counted.number);
    TubeRecord& record = tube.record;
    counts_.scheduled += counted.scheduled - record.scheduled;
    counts_.sums.buried += counted.buried - record.buried;
    if (tube.turn) {
      tube.sums()->scheduled += counted.scheduled - record.scheduled;
      tube.sums()->buried += counted.buried - record.buried;
    }
    record.scheduled = counted.scheduled;
    record.buried = counted.buried;
    record.ended_keys = counted.ended_keys;
    record.lanes = counted.lanes;
    record.settings = std::move(counted.settings);
    if (tube.turn) tube.head().groups->follow_record(tube);
  }
  schedules_.jobs_left(changes);
}

// A tube is stored as long as any of its lanes is.
void Appender::add_lane_counts() {
  for (std::size_t i = 0; i < changes.tubes.size(); ++i) {
    const TubeRecord& tube = changes.tubes[i];
    const std::uint32_t head = tube.head;
    if (head == 0) continue;
    const bool was_stored = !tubes_.numbered(tube.number).record.empty();
    const bool is_stored = !tube.empty();
    if (is_stored && !was_stored) ++changed_tube(head).lanes;
    if (was_stored && !is_stored) --changed_tube(head).lanes;
  }
}

void Appender::close() {
  Changes exact;
  exact.watermarks = watermarks(next_id_, next_burial_);
  erase_leases_over(exact);
  last_sequence_ = store_.append(exact);
  leases_over_.clear();
  stored_marks_ = *exact.watermarks;
}

JobId Appender::give_id() {
  if (next_id_ > kLastId)
    throw StoreError("the last id, " + std::to_string(kLastId) + ", was given: no job can be put");
  return next_id_++;
}

void Appender::clock_was_set() {
  job_lead_ = std::max(job_lead_, clock_.lead());
  clock_is_stored_ = false;
}

void Appender::leads_are_placed() {
  job_lead_ = clock_.lead();
  clock_is_stored_ = false;
}

}  // namespace carillon::queue
