// The fields of each record, and the messages for those that are not as they should be.

#include "queue/store/state/record_values.h"

#include <string>
#include <utility>
#include <vector>

#include "queue/store/state/record_keys.h"
#include "queue/store/state/value_fields.h"

namespace carillon::queue {

namespace {

// --- Which fields a record has. `field` is called with the tag of each and a reference to it.

template <typename Job, typename Field>
void each_field_of_job(Job& job, Field&& field) {
  field(1, job.priority);
  field(2, job.due);
  field(3, job.burial);
  field(4, job.ttr);
  field(5, job.delay);
  field(6, job.created);
  field(7, job.body_bytes);
  field(8, job.history.reserves);
  field(9, job.history.timeouts);
  field(10, job.history.releases);
  field(11, job.history.buries);
  field(12, job.history.kicks);
  field(13, job.lead);
  field(14, job.era);
}

template <typename Extras, typename Field>
void each_field_of_extras(Extras& extras, Field&& field) {
  field(15, extras.key);
  field(16, extras.key_window);
  field(17, extras.body);
  field(18, extras.retry.max_attempts);
  field(19, extras.retry.backoff);
  field(20, extras.retry.backoff_max);
  field(21, extras.retry.jitter);
  field(22, extras.retry.lost_fails);
  field(23, extras.attempts);
  field(24, extras.death);
  field(25, extras.has_story);
  field(26, extras.cancel_asked);
  field(27, extras.expires);
  field(28, extras.at_expiry);
  field(29, extras.attributes);
  field(30, extras.retry.counts_empty);
  field(31, extras.died);
  field(32, extras.died_lead);
  field(33, extras.expires_lead);
}

template <typename Tube, typename Field>
void each_field_of_tube(Tube& tube, Field&& field) {
  field(1, tube.scheduled);
  field(2, tube.buried);
  field(3, tube.name);
  field(4, tube.ended_keys);
  field(31, tube.head);
  field(32, tube.lanes);
}

template <typename Settings, typename Field>
void each_field_of_settings(Settings& settings, Field&& field) {
  field(5, settings.retry.max_attempts);
  field(6, settings.retry.backoff);
  field(7, settings.retry.backoff_max);
  field(8, settings.retry.jitter);
  field(9, settings.retry.lost_fails);
  field(10, settings.limits.max_running);
  field(11, settings.limits.rate);
  field(12, settings.limits.period);
  field(13, settings.limits.burst);
  field(30, settings.refuses_puts);
  field(33, settings.weight);
  field(34, settings.put_rate.rate);
  field(35, settings.put_rate.period);
  field(36, settings.put_rate.burst);
  field(37, settings.retention);
}

template <typename Marks, typename Field>
void each_field_of_watermarks(Marks& marks, Field&& field) {
  field(1, marks.next_id);
  field(2, marks.next_burial);
  field(3, marks.time);
  field(4, marks.boot);
  field(5, marks.wall_ns);
  field(6, marks.steady_ns);
  field(7, marks.boot_lead);
  field(8, marks.job_lead);
  field(9, marks.gained_ns);
  field(10, marks.era);
  field(11, marks.boot_era);
  field(12, marks.up_ns);
  field(13, marks.rises);
  field(14, marks.wrong_since);
}

}  // namespace

void append_job_value(std::string& bytes, const JobRecord& job) {
  const auto append = begin_value(bytes);
  each_field_of_job(job, append);
  if (!job.extras) return;
  each_field_of_extras(*job.extras, append);
  bytes.append(job.extras->newer);
}

JobRecord read_job_value(std::string_view key, std::string_view bytes) {
  const StoredValue value("the job record", key, bytes);
  JobRecord job;
  job.ttr = 0;
  JobExtras extras;
  extras.newer = value.read([&](auto&& field) {
    each_field_of_job(job, field);
    each_field_of_extras(extras, field);
  });
  job.extras = detail::Rare(std::move(extras));
  JobRecord named;
  if (!set_job_of_key(key, named)) value.fail("is under a key of another kind");
  job.id = named.id;
  job.tube = named.tube;
  if (view(index_key_of(job)) != key)
    value.fail("belongs under the key " + hex(view(index_key_of(job))));
  return job;
}

void append_tube_value(std::string& bytes, const TubeRecord& tube) {
  const auto append = begin_value(bytes);
  each_field_of_tube(tube, append);
  if (tube.settings) each_field_of_settings(*tube.settings, append);
  bytes.append(*tube.newer);
}

TubeRecord read_tube_value(std::uint32_t number, std::string_view bytes) {
  const TubeKey key = tube_key(number);
  const StoredValue value("the tube record", view(key), bytes);
  TubeRecord tube;
  tube.number = number;
  TubeSettings settings;
  tube.newer = NewerFields(value.read([&](auto&& field) {
    each_field_of_tube(tube, field);
    each_field_of_settings(settings, field);
  }));
  tube.settings = detail::Rare(settings);
  return tube;
}

void append_watermarks_value(std::string& bytes, const Watermarks& watermarks) {
  each_field_of_watermarks(watermarks, begin_value(bytes));
  bytes.append(*watermarks.newer);
}

Watermarks read_watermarks_value(std::string_view bytes) {
  const StoredValue value("the record of the watermarks", kWatermarksKey, bytes);
  Watermarks marks;
  marks.newer =
      NewerFields(value.read([&marks](auto&& field) { each_field_of_watermarks(marks, field); }));
  return marks;
}

void append_key_value(std::string& bytes, const KeyRecord& key) {
  const auto append = begin_value(bytes);
  append(1, key.id);
  append(2, key.until);
  append(4, key.batch->puts);
  append(5, key.batch->fingerprint);
  if (!key.batch->job) return;
  const JobAsPut& job = *key.batch->job;
  std::string value;
  append_job_value(value, job.record);
  append(6, std::string(view(index_key_of(job.record))));
  append(7, value);
  append(8, job.tube);
  append(9, job.group);
}

KeyRecord read_key_value(std::uint32_t tube, std::string_view key, std::string_view bytes) {
  const std::string stored_under = key_key(tube, key);
  const StoredValue value("the record of a key", stored_under, bytes);
  KeyRecord record{.tube = tube, .key = std::string(key)};
  BatchAnswer batch;
  JobAsPut job;
  std::string job_key;
  std::string job_value;
  value.read([&](auto&& field) {
    field(1, record.id);
    field(2, record.until);
    field(4, batch.puts);
    field(5, batch.fingerprint);
    field(6, job_key);
    field(7, job_value);
    field(8, job.tube);
    field(9, job.group);
  });
  try {
    if (!job_value.empty()) job.record = read_job_value(job_key, job_value);
  } catch (const StoreDamage& error) {
    value.fail(std::string("has a job that cannot be read: ") + error.what());
  }
  if (!job_value.empty()) batch.job = detail::Rare(std::move(job));
  record.batch = detail::Rare(std::move(batch));
  return record;
}

void append_story_value(std::string& bytes, const std::vector<Attempt>& story) {
  begin_value(bytes)(1, story);
}

std::vector<Attempt> read_story_value(JobId id, std::string_view bytes) {
  const StoryKey key = story_key(id);
  const StoredValue value("the story of a job", view(key), bytes);
  std::vector<Attempt> story;
  value.read([&story](auto&& field) { field(1, story); });
  return story;
}

void append_lease_value(std::string& bytes, const LeaseRecord& lease) {
  const auto append = begin_value(bytes);
  append(1, lease.secret);
  append(2, lease.worker);
  append(3, lease.until);
  append(4, lease.time);
}

LeaseRecord read_lease_value(JobId id, std::string_view bytes) {
  const LeaseKey key = lease_key(id);
  const StoredValue value("the lease of a job", view(key), bytes);
  LeaseRecord lease{.job = id};
  value.read([&lease](auto&& field) {
    field(1, lease.secret);
    field(2, lease.worker);
    field(3, lease.until);
    field(4, lease.time);
  });
  if (lease.secret.empty()) value.fail("has no secret");
  return lease;
}

void append_unfinished_value(std::string& bytes, const UnfinishedBody& body) {
  begin_value(bytes)(1, body.bytes);
}

UnfinishedBody read_unfinished_value(JobId id, std::string_view bytes) {
  const UnfinishedKey key = unfinished_key(id);
  const StoredValue value("the record of an unfinished body", view(key), bytes);
  UnfinishedBody body{.id = id};
  value.read([&body](auto&& field) { field(1, body.bytes); });
  return body;
}

}  // namespace carillon::queue
