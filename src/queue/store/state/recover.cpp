// Each kind of record is one scan.

#include "queue/store/state/recover.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "queue/store/state/endpoint_values.h"
#include "queue/store/state/record_keys.h"
#include "queue/store/state/record_values.h"
#include "queue/store/state/schedule_values.h"

namespace carillon::queue {

namespace {

using rocksdb::Slice;

// Calls `each` with each key from `from` on and before `end`, and its value.
void scan(const RocksState& state, Family family, std::string_view from, std::string_view end,
          const std::function<void(std::string_view, std::string_view)>& each) {
  const Slice before(end.data(), end.size());
  const auto at = state.scan(family, from, before);
  for (; at->Valid(); at->Next()) each(view(at->key()), view(at->value()));
  state.check(*at);
}

// Goes around damage: a lease that is lost makes its job ready again, and a start must go on.
std::vector<LeaseRecord> leases_in(const RocksState& state) {
  std::vector<LeaseRecord> leases;
  const Slice end(kLeaseKeysEnd.data(), kLeaseKeysEnd.size());
  const auto at = state.scan_around(kKeys, kLeaseKeys, end);
  for (; at->Valid(); at->Next()) {
    try {
      leases.push_back(read_lease_value(job_of_lease_key(view(at->key())), view(at->value())));
    } catch (const StoreDamage&) {
      continue;
    }
  }
  state.check(*at);
  return leases;
}

}  // namespace

Recovered recover(RocksState& state) {
  state.write_small_records();
  Recovered recovered;
  scan(state, kMeta, kTubeKeys, kTubeKeysEnd, [&](std::string_view key, std::string_view value) {
    recovered.tubes.push_back(read_tube_value(tube_of_key(key), value));
  });
  scan(state, kMeta, kUnfinishedKeys, kUnfinishedKeysEnd,
       [&](std::string_view key, std::string_view value) {
         recovered.unfinished.push_back(read_unfinished_value(job_of_unfinished_key(key), value));
       });
  recovered.leases = leases_in(state);
  const std::string end(kMaxScheduleText + 1, '\xff');
  scan(state, kSchedules, "", end, [&](std::string_view name, std::string_view value) {
    recovered.schedules.push_back(read_schedule_value(name, value));
  });
  scan(state, kMeta, kEndpointKeys, kEndpointKeysEnd,
       [&](std::string_view key, std::string_view value) {
         const std::string_view name = key.substr(kEndpointKeys.size());
         recovered.endpoints.emplace(name, read_endpoint_value(name, value));
       });
  if (const auto watermarks = state.get(kMeta, kWatermarksKey))
    recovered.watermarks = read_watermarks_value(*watermarks);
  return recovered;
}

}  // namespace carillon::queue
