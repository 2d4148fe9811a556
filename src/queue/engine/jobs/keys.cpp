#include "queue/engine/jobs/keys.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

constexpr Millis kNoKeyEnds = UINT64_MAX;

// How long keys that have ended wait to be forgotten together, in ms.
constexpr Millis kTogether = 1'000;

}  // namespace

void Keys::add_change(std::optional<KeyRecord> before, std::optional<KeyRecord> after) {
  if (after && after->until != 0) sweep_not_after(after->until);
  appender_.add_key_change(std::move(before), std::move(after));
}

// A producer that puts a job again because it was not done must not be told that it is there.
void Keys::end(const JobRecord& job, Work work) {
  const JobExtras& extras = *job.extras;
  if (extras.key.empty()) return;
  const std::uint32_t tube = tubes_.numbered(job.tube).head().record.number;
  const KeyRecord before{.tube = tube, .key = extras.key, .id = job.id};
  if (extras.key_window == 0 || work == Work::kNotDone) return add_change(before, std::nullopt);
  KeyRecord after = before;
  after.until = std::min(extras.key_window, kLastDue) + clock_.steady_from();
  add_change(before, after);
}

void Keys::sweep_not_after(Millis when) {
  from_ = std::min(from_, when);
  sweep_at_ = std::min(sweep_at_, std::max(when, clock_.steady() + kTogether));
}

void Keys::sweep(std::size_t budget) try {
  const Millis steady = clock_.steady();
  if (steady < sweep_at_) return;
  if (!store_.has_room()) {
    sweep_at_ = steady + kTogether;
    return;
  }
  const std::vector<KeyRecord> ended = store_.scan_ended_keys(from_, budget + 1);
  std::vector<std::uint32_t> of;
  for (const KeyRecord& key : ended) {
    if (key.until > steady || of.size() == budget) break;
    add_change(key, std::nullopt);
    of.push_back(key.tube);
  }
  if (!of.empty()) appender_.append();
  from_ = of.size() < ended.size() ? ended[of.size()].until : kNoKeyEnds;
  sweep_at_ = from_;
  if (sweep_at_ > steady && sweep_at_ != kNoKeyEnds)
    sweep_at_ = std::max(sweep_at_, steady + kTogether);
  for (const std::uint32_t number : of) tubes_.forget_if_unreferenced(number);
} catch (const StoreError& error) {
  appender_.failed(error.what());
  sweep_at_ = clock_.steady() + kTogether;  // tried again then; nobody is harmed meanwhile
}

void Keys::check_invariants() const {
  const std::vector<KeyRecord> keys = store_.scan_ended_keys(0, SIZE_MAX);
  auto counted = static_cast<std::size_t>(std::count_if(
      keys.begin(), keys.end(), [](const KeyRecord& key) { return key.tube == kTokens; }));
  for (const Tube* tube : tubes_.in_order()) counted += tube->record.ended_keys;
  check_invariant(counted == keys.size(), "keys whose jobs are gone are counted",
                  std::to_string(counted));
  check_invariant(keys.empty() || (keys.front().until >= from_ && sweep_at_ != kNoKeyEnds),
                  "keys whose jobs are gone will be forgotten", std::to_string(from_));
}

}  // namespace carillon::queue
