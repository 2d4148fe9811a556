#include "queue/engine/tubes/tubes.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/require.h"
#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

// The memory of one tube, about, in watches.
constexpr std::size_t kWatchesOfATube = 12;

void check_groups(const Tube& tube) {
  const std::string& name = tube.record.name;
  check_invariant(!tube.is_lane() || tube.turn, "a lane has its turn", name);
  if (tube.turn && tube.turn->rests) {
    check_invariant(tube.limits != nullptr, "a group rests for its limits", name);
    const std::uint64_t most = tube.record.settings->limits.max_running;
    check_invariant((most > 0 && tube.running() >= most) || tube.limits->wake.armed(),
                    "a group does not rest for ever", name);
  }
  check_invariant(tube.is_lane() || (tube.turn != nullptr) == (tube.groups != nullptr),
                  "a tube has its turn while it has groups", name);
  check_invariant(tube.groups || tube.record.lanes == 0, "the lanes that are stored are there",
                  name);
  if (!tube.groups) return;
  check_invariant(tube.groups->check_invariants(), "each lane has its place in line", name);
  check_invariant(tube.groups->counted() == tube.groups->sums, "the sums are those of all groups",
                  name);
  check_invariant(tube.groups->stored() == tube.record.lanes, "lanes that are stored are counted",
                  name);
}

constexpr std::size_t kNamesAtOnce = 128;
constexpr std::size_t kTubesAtOnce = 1'024;  // tubes that are not in the list count, too

}  // namespace

void Tubes::unlink_all() {
  for_each([this](Tube& tube) {
    tube.waiting.clear();
    cancel_timers(tube);
  });
  for (Tube* tube : order_) tube->groups.reset();
}

void Tubes::take_over(std::vector<TubeRecord> records) {
  const auto by_number = [](const auto& a, const auto& b) { return a.number < b.number; };
  if (!std::is_sorted(records.begin(), records.end(), by_number))
    std::sort(records.begin(), records.end(), by_number);
  if (!records.empty()) next_number_ = records.back().number + 1;
  const auto add_all = [&](bool lanes_alone) {
    for (TubeRecord& record : records) {
      if ((record.head != 0) != lanes_alone) continue;
      counts_.scheduled += record.scheduled;
      counts_.sums.buried += record.buried;
      add(std::move(record));
    }
  };
  add_all(false);
  add_all(true);
  default_ = &made("default");
}

void Tubes::refuse_more() const {
  if (order_.size() + lanes_.size() + counts_.watches / kWatchesOfATube >= options_.max_tubes)
    throw OverLimit("there are as many tubes and watches of tubes as there may be");
}

Tube& Tubes::named(std::string_view name) {
  if (Tube* tube = find(name)) return *tube;
  if (default_ != nullptr) refuse_more();
  return made(name);
}

Tube& Tubes::made(std::string_view name) {
  CARILLON_REQUIRE(!name.empty() && name.size() <= kMaxTubeName, name);
  if (Tube* tube = find(name)) return *tube;
  TubeRecord record;
  record.number = free_number();
  record.name = name;
  Tube& tube = add(std::move(record));
  ++next_number_;
  return tube;
}

// Groups come and go with their jobs, so all numbers may have been given once. No tube has the
// number 0, nor the last number, because lane_after() adds 1.
std::uint32_t Tubes::free_number() {
  while (next_number_ == 0 || next_number_ == UINT32_MAX || find(next_number_) != nullptr)
    ++next_number_;
  return next_number_;
}

Tube& Tubes::lane_named(Tube& tube, std::string_view group) {
  CARILLON_REQUIRE(group.size() <= kMaxGroup, group);
  if (group.empty()) return tube;
  if (Tube* lane = find(tube, group)) return *lane;
  refuse_more();
  return made_lane(tube, group);
}

Tube& Tubes::made_lane(Tube& tube, std::string_view group) {
  if (group.empty()) return tube;
  if (Tube* lane = find(tube, group)) return *lane;
  TubeRecord record;
  record.number = free_number();
  record.name = group;
  record.head = tube.record.number;
  Tube& lane = add(std::move(record));
  ++next_number_;
  return lane;
}

void Tubes::forget_lane(const Tube& tube, std::string_view group) {
  if (group.empty()) return;
  if (Tube* lane = find(tube, group)) forget_if_unreferenced(*lane);
}

Tube& Tubes::add(TubeRecord record) {
  Tube* const head = record.head == 0 ? nullptr : &numbered(record.head);
  std::deque<Tube*>& order = head == nullptr ? order_ : lanes_;
  auto made = std::make_unique<Tube>(std::move(record));
  made->position = order.size();
  made->made = made_so_far_;
  order.push_back(made.get());
  const bool is_first_lane = head != nullptr && !head->groups;
  try {
    if (is_first_lane) head->groups = std::make_unique<Groups>(*head);
    if (head != nullptr) made->turn = std::make_unique<Turn>(*made, *head);
    Tube& tube = directory_.add(std::move(made));
    ++made_so_far_;
    if (head == nullptr) {
      name_bytes_ += tube.record.name.size();
    } else {
      head->groups->add(tube);
    }
    return tube;
  } catch (...) {
    order.pop_back();
    if (is_first_lane) head->groups.reset();
    throw;
  }
}

Tube& Tubes::numbered(std::uint32_t number) const {
  if (Tube* tube = find(number)) return *tube;
  throw StoreError("a job is in tube number " + std::to_string(number) + ", which is not stored");
}

void Tubes::forget_if_unreferenced(Tube& tube) noexcept {
  if (&tube == default_ || tube.referenced()) return;
  cancel_timers(tube);
  Tube* const head = tube.is_lane() ? &tube.head() : nullptr;
  std::deque<Tube*>& order = head == nullptr ? order_ : lanes_;
  if (head == nullptr) {
    removals_.note(tube, *order_.back());
    name_bytes_ -= tube.record.name.size();
  } else {
    head->groups->remove(tube);
    if (head->groups->empty()) head->groups.reset();
  }
  order[tube.position] = order.back();
  order[tube.position]->position = tube.position;
  order.pop_back();
  directory_.remove(tube);
  if (head != nullptr) forget_if_unreferenced(*head);
}

void Tubes::forget_if_unreferenced(std::uint32_t number) noexcept {
  if (Tube* const tube = find(number)) forget_if_unreferenced(*tube);
}

void Tubes::cancel_timers(Tube& tube) noexcept {
  ripening_.forget(tube);
  retention_.forget(tube);
  far_.forget(tube);
  throttle_.forget(tube);
}

void Tubes::check_invariants(const Tube& tube) const {
  const std::string& name = tube.record.name;
  check_invariant(find(tube.record.number) == &tube, "a tube is found by its number", name);
  check_invariant((tube.is_lane() ? lanes_ : order_)[tube.position] == &tube,
                  "a tube knows its position", name);
  check_invariant(&tube == default_ || tube.referenced(),
                  "a tube that nothing refers to is forgotten", name);
  check_invariant(tube.loaded == tube.ready.size() + tube.delayed.size() + tube.reserved,
                  "loaded = ready + delayed + reserved", name);
  check_invariant(tube.loaded <= tube.record.scheduled, "a loaded job is a scheduled one", name);
  const TubeSettings& settings = *tube.record.settings;
  check_invariant(settings.limits == Limits() || tube.limits, "limits hold", name);
  check_invariant(settings.put_rate == Limits() || tube.puts, "a rate holds", name);
  check_groups(tube);
}

// --- Lists
//
// A list is read by position in the order of tubes, and its length is sent first. Meanwhile tubes
// are made, which stand at the end, and tubes are forgotten: then the last tube takes the position.
// So each removal is noted, and a list that goes on reads the notes since its last step:
//  - A tube that was forgotten ahead of the list is listed now.
//  - A tube that has moved from ahead of the list to behind it is listed now.
// A note serves all lists, so a removal costs the same for any number of them.

void Tubes::end_list(std::optional<TubeListing>& list) {
  if (!list) return;
  list.reset();
  removals_.end_listing();
}

TubeListSize Tubes::begin_list(std::optional<TubeListing>& list) {
  end_list(list);
  list = {.made_before = made_so_far_, .left = order_.size(), .removals_seen = removals_.end()};
  removals_.begin_listing();
  return {.tubes = order_.size(), .name_bytes = name_bytes_};
}

std::optional<std::vector<std::string>> Tubes::next_of(std::optional<TubeListing>& reading) {
  TubeListing& list = reading.value();
  if (list.removals_seen < removals_.first()) {
    end_list(reading);
    return std::nullopt;
  }
  std::vector<std::string> names;
  const std::uint64_t removed = removals_.end();
  for (; list.removals_seen < removed && names.size() < kNamesAtOnce; ++list.removals_seen) {
    const TubeRemovals::Removal& removal = removals_.numbered(list.removals_seen);
    const bool was_ahead = removal.gone.position >= list.next;
    const TubeRemovals::Removal::Of& lost = was_ahead ? removal.gone : removal.moved;
    if (lost.position >= list.next && lost.made < list.made_before) names.push_back(lost.name);
  }
  for (std::size_t looks = 0; looks < kTubesAtOnce && names.size() < kNamesAtOnce; ++looks) {
    if (list.next >= order_.size()) break;
    const Tube& tube = *order_[list.next++];
    if (tube.made < list.made_before) names.push_back(tube.record.name);
  }
  list.left -= names.size();
  if (list.left == 0) end_list(reading);
  return names;
}

}  // namespace carillon::queue
