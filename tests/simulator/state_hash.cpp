// One hash for each kind of record (state_hash.h).

#include "simulator/state_hash.h"

#include <functional>

namespace carillon::simulator {

using queue::JobId;

namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t with) {
  hash = (hash ^ with) * 0x9E3779B97F4A7C15;
  return hash ^ (hash >> 29);
}

std::uint64_t mix(std::uint64_t hash, std::string_view with) {
  return mix(hash, std::hash<std::string_view>()(with));
}

std::uint64_t hash_of(const queue::RetryPolicy& policy) {
  std::uint64_t hash = mix(9, policy.max_attempts);
  for (const std::uint64_t field :
       {policy.backoff, policy.backoff_max, std::uint64_t{policy.jitter},
        std::uint64_t{policy.lost_fails}, std::uint64_t{policy.counts_empty}})
    hash = mix(hash, field);
  return hash;
}

}  // namespace

std::uint64_t hash_of(const queue::JobRecord& record) {
  std::uint64_t hash = mix(1, record.id);
  for (const std::uint64_t field :
       {std::uint64_t{record.tube}, std::uint64_t{record.priority}, record.due, record.burial,
        record.ttr, record.delay, record.created, std::uint64_t{record.body_bytes},
        std::uint64_t{record.history.reserves}, std::uint64_t{record.history.timeouts},
        std::uint64_t{record.history.releases}, std::uint64_t{record.history.buries},
        std::uint64_t{record.history.kicks}, static_cast<std::uint64_t>(record.lead),
        std::uint64_t{record.era}})
    hash = mix(hash, field);
  if (!record.extras) return hash;
  const queue::JobExtras& extras = *record.extras;
  for (const std::uint64_t field :
       {extras.key_window, extras.body, std::uint64_t{extras.attempts},
        static_cast<std::uint64_t>(extras.death), std::uint64_t{extras.has_story},
        std::uint64_t{extras.cancel_asked}, extras.expires,
        static_cast<std::uint64_t>(extras.expires_lead),
        static_cast<std::uint64_t>(extras.at_expiry), extras.died,
        static_cast<std::uint64_t>(extras.died_lead)})
    hash = mix(hash, field);
  return mix(mix(mix(hash, extras.key), extras.attributes), hash_of(extras.retry));
}

std::uint64_t hash_of(const queue::TubeRecord& tube) {
  std::uint64_t hash = mix(
      mix(mix(mix(mix(2, tube.number), tube.scheduled), tube.buried), tube.ended_keys), tube.name);
  hash = mix(mix(hash, std::uint64_t{tube.head}), std::uint64_t{tube.lanes});
  if (!tube.settings) return hash;
  hash = mix(hash, std::uint64_t{tube.settings->weight});
  const queue::Limits& limits = tube.settings->limits;
  for (const std::uint64_t field : {std::uint64_t{tube.settings->refuses_puts}, limits.max_running,
                                    limits.rate, limits.period, limits.burst})
    hash = mix(hash, field);
  const queue::Limits& puts = tube.settings->put_rate;
  for (const std::uint64_t field : {puts.rate, puts.period, puts.burst, tube.settings->retention})
    hash = mix(hash, field);
  return mix(hash, hash_of(tube.settings->retry));
}

std::uint64_t hash_of_story(JobId id, const std::vector<queue::Attempt>& story) {
  std::uint64_t hash = mix(8, id);
  for (const queue::Attempt& attempt : story) {
    hash = mix(mix(hash, attempt.at), static_cast<std::uint64_t>(attempt.ending));
    hash = mix(mix(hash, attempt.worker), attempt.error);
  }
  return hash;
}

std::uint64_t hash_of(const queue::KeyRecord& key) {
  std::uint64_t hash = mix(mix(mix(mix(6, key.tube), key.key), key.id), key.until);
  if (key.tube != queue::kTokens) return hash;
  hash = mix(hash, key.batch->fingerprint);
  for (const queue::PutRun& run : key.batch->puts)
    hash = mix(mix(mix(mix(hash, run.result), run.first), run.jobs), run.owner);
  const queue::JobAsPut& job = *key.batch->job;
  if (key.batch->job) hash = mix(mix(mix(hash, hash_of(job.record)), job.tube), job.group);
  return hash;
}

std::uint64_t hash_of(const queue::ScheduleRecord& record) {
  const queue::Schedule& schedule = record.schedule;
  std::uint64_t hash = mix(mix(mix(7, record.name), schedule.cron), schedule.body);
  hash = mix(mix(hash, schedule.zone), schedule.tube);
  hash = mix(mix(mix(hash, schedule.group), schedule.attributes), hash_of(schedule.retry));
  for (const std::uint64_t field : {std::uint64_t{schedule.priority},
                                    schedule.ttr,
                                    std::uint64_t{schedule.run_after_gap},
                                    static_cast<std::uint64_t>(schedule.catch_up),
                                    schedule.catch_up_window,
                                    static_cast<std::uint64_t>(schedule.overlap),
                                    schedule.spread,
                                    schedule.every,
                                    schedule.start.value_or(0),
                                    schedule.expires_in,
                                    static_cast<std::uint64_t>(schedule.at_expiry),
                                    std::uint64_t{record.paused},
                                    record.decided,
                                    record.waiting,
                                    record.last_job,
                                    record.last_occurrence,
                                    record.fired,
                                    record.skipped,
                                    record.created,
                                    record.since,
                                    std::uint64_t{record.last_tube}})
    hash = mix(hash, field);
  for (const queue::FiredSpan& span : record.spans) hash = mix(mix(hash, span.first), span.last);
  return hash;
}

std::uint64_t hash_of(const queue::Watermarks& marks) {
  std::uint64_t hash = mix(3, marks.boot);
  for (const std::uint64_t field :
       {marks.next_id, marks.next_burial, marks.time, static_cast<std::uint64_t>(marks.wall_ns),
        static_cast<std::uint64_t>(marks.steady_ns), static_cast<std::uint64_t>(marks.boot_lead),
        static_cast<std::uint64_t>(marks.job_lead), static_cast<std::uint64_t>(marks.gained_ns),
        std::uint64_t{marks.era}, std::uint64_t{marks.boot_era},
        static_cast<std::uint64_t>(marks.up_ns), marks.wrong_since})
    hash = mix(hash, field);
  for (const queue::ClockRise& rise : marks.rises) {
    for (const std::uint64_t field :
         {rise.shown, rise.to, static_cast<std::uint64_t>(rise.ahead), rise.noticed, rise.gained})
      hash = mix(hash, field);
  }
  return hash;
}

std::uint64_t hash_of(const queue::UnfinishedBody& body) {
  return mix(mix(4, body.id), body.bytes);
}

std::uint64_t hash_of(const queue::BodyPiece& piece) {
  return mix(mix(mix(5, piece.id), piece.number), piece.bytes);
}

std::uint64_t hash_of_body(JobId id, std::string_view body) {
  std::uint64_t hash = hash_of({.id = id, .number = 0, .bytes = body.substr(0, queue::kBodyPiece)});
  for (std::uint32_t n = 1; n * queue::kBodyPiece < body.size(); ++n) {
    const std::string_view piece = body.substr(n * queue::kBodyPiece, queue::kBodyPiece);
    hash += hash_of({.id = id, .number = n, .bytes = piece});
  }
  return hash;
}

std::uint64_t hash_of(const queue::StoreModel& state) {
  std::uint64_t hash = hash_of(state.watermarks);
  for (const auto& [id, job] : state.jobs)
    hash += hash_of(job.record) + hash_of_body(job.record.body_id(), job.body);
  for (const auto& [id, body] : state.unfinished) {
    hash += hash_of(queue::UnfinishedBody{id, body.bytes});
    if (!body.body.empty()) hash += hash_of_body(id, body.body);
  }
  for (const auto& [number, tube] : state.tubes) hash += hash_of(tube);
  for (const auto& [name, key] : state.keys) hash += hash_of(key);
  for (const auto& [id, story] : state.stories) hash += hash_of_story(id, story);
  for (const auto& [name, schedule] : state.schedules) hash += hash_of(schedule);
  return hash;
}

}  // namespace carillon::simulator
