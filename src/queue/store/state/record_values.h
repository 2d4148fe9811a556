// How jobs, tubes and watermarks are written as values, in the state and in the log.
//
// A value is a version byte (format_version.h) and tagged fields (tagged_fields.h). The fields of a
// job are
//
//    1 priority   2 due        3 burial     4 ttr      5 delay     6 created   7 body_bytes
//    8 reserves   9 timeouts  10 releases  11 buries  12 kicks  13 lead  14 era
//   15 key (bytes)            16 key_window 17 body
//
// A tube has 1 scheduled, 2 buried, 3 name (bytes), 4 ended_keys. A key has 1 id, 2 until; the key
// of a token also 4 answer, 5 fingerprint (bytes), and for its job 6 index key, 7 value, 8 tube, 9
// group. The watermarks have 1 next_id, 2 next_burial, 3 time, 4 boot (bytes), 5 wall_ns, 6
// steady_ns, 7 boot_lead, 8 job_lead, 9 gained_ns, 10 era, 11 boot_era; a lease 1 secret (bytes), 2
// worker (bytes), 3 until, 4 time; an unfinished body 1 bytes. A lead may be negative, as may 5, 6
// and 9 of the watermarks: 1, 2, 3, 4, ... stand for 0, -1, 1, -2, ... No field stands for no lead.
//
// The key says which job or tube it is (record_keys.h). Fields that this version does not know are
// kept, and written again with the record.
//
// Reading throws StoreDamage, which names the key, if a value is not as written above.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "carillon/queue/job.h"
#include "carillon/queue/store.h"

namespace carillon::queue {

void append_job_value(std::string& bytes, const JobRecord& job);
// `key` is the job's index key.
JobRecord read_job_value(std::string_view key, std::string_view value);

void append_tube_value(std::string& bytes, const TubeRecord& tube);
TubeRecord read_tube_value(std::uint32_t number, std::string_view value);

void append_watermarks_value(std::string& bytes, const Watermarks& watermarks);
Watermarks read_watermarks_value(std::string_view value);

void append_key_value(std::string& bytes, const KeyRecord& key);
KeyRecord read_key_value(std::uint32_t tube, std::string_view key, std::string_view value);

void append_story_value(std::string& bytes, const std::vector<Attempt>& story);
std::vector<Attempt> read_story_value(JobId id, std::string_view value);

void append_lease_value(std::string& bytes, const LeaseRecord& lease);
LeaseRecord read_lease_value(JobId id, std::string_view value);

void append_unfinished_value(std::string& bytes, const UnfinishedBody& body);
UnfinishedBody read_unfinished_value(JobId id, std::string_view value);

}  // namespace carillon::queue
