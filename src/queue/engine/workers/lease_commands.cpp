// Leases: reservations that the store has, too. A lease ends as any reservation does. What ends it
// erases its record, or lets the next append do so.

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

Leased EngineWorkers::lease(ClientId id, Now now, std::span<const JobId> ids,
                            std::string_view secret, std::optional<Millis> time) {
  EngineState& s = state_;
  s.advance(now);
  Client& client = s.clients.client(id);
  Leased leased;
  const auto time_of = [&](const LoadedJob& job) {
    return std::clamp(time.value_or(job.record.ttr), kMinTtr, kMaxTtr);
  };
  for (const JobId job_id : ids) {
    const LoadedJob* const job = s.jobs.held_by(client, job_id);
    if (job == nullptr) continue;
    s.appender.changes.leases.push_back(
        {job_id, LeaseRecord{.job = job_id,
                             .secret = std::string(secret),
                             .worker = client.name,
                             .until = s.clock.steady_from() + time_of(*job),
                             .time = time_of(*job)}});
    leased.jobs.push_back(job_id);
  }
  if (leased.jobs.empty()) return leased;
  leased.durable_at = s.appender.append();
  for (const JobId job_id : leased.jobs) {
    LoadedJob& job = *s.jobs.loaded(job_id);
    s.clients.set_deadline(job, s.clock.mono_from() + time_of(job));
    job.has_stored_lease = true;
  }
  return leased;
}

std::optional<ClientId> EngineWorkers::holder_of(JobId id) const {
  const LoadedJob* const job = state_.jobs.loaded(id);
  if (job == nullptr || job->holder == nullptr) return std::nullopt;
  return job->holder->id;
}

const std::vector<FormerWorker>& EngineWorkers::former_workers() const {
  return state_.former_workers;
}

void EngineState::watch_only(Client& client, Tube& tube) {
  if (client.watches_tube(tube)) return;
  clients.watch(client, tube);
  clients.unwatch(*client.watches.front());
}

// A lease whose time is over is restored, too: its end is then found, and stored, as of any other.
void EngineState::restore(const std::vector<LeaseRecord>& leases) {
  std::unordered_map<std::string_view, Client*> workers;
  std::vector<const LeaseRecord*> of_no_job;
  for (const LeaseRecord& lease : leases) {
    std::optional<JobRecord> record;
    try {
      record = jobs.record_of(lease.job);
    } catch (const StoreDamage& damage) {
      appender.failed(damage.what());
      continue;
    }
    if (!record || record->buried()) {
      of_no_job.push_back(&lease);
      continue;
    }
    Client*& worker = workers[lease.secret];
    if (worker == nullptr) {
      worker = &clients.connect();
      worker->name = lease.worker;
      watch_only(*worker, tubes.numbered(record->tube).head());
      former_workers.push_back({.client = worker->id, .secret = lease.secret});
    }
    LoadedJob* job = jobs.loaded(lease.job);
    if (job == nullptr) {
      far.note(tubes.numbered(record->tube), *record, -1);
      job = &jobs.add_to_memory(*record);
    }
    job->has_stored_lease = true;
    clients.hold(*worker, *job);
    --counts.totals.reserved;  // it was counted before the start
    const Millis left = lease.until - std::min(lease.until, clock.steady());
    clients.set_deadline(*job, clock.mono_from() + std::min(left, lease.time));
  }
  for (const LeaseRecord* const lease : of_no_job)
    appender.changes.leases.push_back({lease->job, std::nullopt});
  if (of_no_job.empty()) return;
  try {
    appender.append();
  } catch (const StoreError&) {
    // The next start finds them again.
  }
}

}  // namespace carillon::queue
