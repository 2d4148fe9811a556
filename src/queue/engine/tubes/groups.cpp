// The order in which the lanes of a tube take turns (groups.h).

#include "queue/engine/tubes/groups.h"

#include <algorithm>
#include <tuple>

#include "carillon/require.h"
#include "queue/engine/tubes/tube.h"

namespace carillon::queue {

namespace {

// Compares times: whole + part / weight.
bool is_earlier(const Turn& a, const Turn& b) {
  if (a.whole != b.whole) return a.whole < b.whole;
  return std::uint64_t{a.part} * b.weight < std::uint64_t{b.part} * a.weight;
}

void add_one_job(Turn& turn) {
  if (++turn.part < turn.weight) return;
  turn.part = 0;
  ++turn.whole;
}

// Sets `turn` to its last possible time that is not after the other's.
void round_down_to(Turn& turn, const Turn& other) {
  turn.whole = other.whole;
  turn.part = static_cast<std::uint32_t>(std::uint64_t{other.part} * turn.weight / other.weight);
}

}  // namespace

bool Groups::ByTurn::operator()(const Turn& a, const Turn& b) const {
  if (a.priority != b.priority) return a.priority < b.priority;
  if (is_earlier(a, b)) return true;
  if (is_earlier(b, a)) return false;
  return a.arrival < b.arrival;
}

bool Groups::ByNumber::operator()(const Turn& a, const Turn& b) const {
  return a.tube->record.number < b.tube->record.number;
}

Groups::Groups(Tube& head) : head_(head) {
  head.turn = std::make_unique<Turn>(head, head);
  sums = {.ready = head.ready_jobs(),
          .urgent = head.urgent_jobs(),
          .reserved = head.reserved,
          .ending = head.ending,
          .scheduled = head.record.scheduled,
          .buried = head.record.buried,
          .loaded = head.loaded};
  follow(head);
  follow_due(head);
  follow_record(head);
}

Groups::~Groups() {
  line_.clear();
  due_.clear();
  numbers_.clear();
  buried_.clear();
  head_.turn.reset();
}

void Groups::add(Tube& lane) noexcept {
  CARILLON_REQUIRE(lane.turn != nullptr, lane.record.name);
  numbers_.insert(*lane.turn);
  ++lanes_;
  sums.scheduled += lane.record.scheduled;
  sums.buried += lane.record.buried;
  follow_record(lane);
}

void Groups::remove(Tube& lane) {
  CARILLON_REQUIRE(lane.loaded == 0, lane.record.name, lane.loaded);
  leave_line(*lane.turn);
  if (lane.turn->due_hook.is_linked()) due_.erase(due_.iterator_to(*lane.turn));
  if (lane.turn->buried_hook.is_linked()) buried_.erase(buried_.iterator_to(*lane.turn));
  numbers_.erase(numbers_.iterator_to(*lane.turn));
  sums.scheduled -= lane.record.scheduled;
  sums.buried -= lane.record.buried;
  lane.turn.reset();
  --lanes_;
}

Tube* Groups::from_number(std::uint32_t number) const {
  struct Before {
    bool operator()(const Turn& turn, std::uint32_t than) const {
      return turn.tube->record.number < than;
    }
    bool operator()(std::uint32_t than, const Turn& turn) const {
      return than < turn.tube->record.number;
    }
  };
  const auto found = numbers_.lower_bound(number, Before());
  return found == numbers_.end() ? nullptr : found->tube;
}

const Turn* Groups::first_with(Priority priority) const {
  struct Before {
    bool operator()(const Turn& turn, Priority than) const { return turn.priority < than; }
    bool operator()(Priority than, const Turn& turn) const { return than < turn.priority; }
  };
  const auto found = line_.lower_bound(priority, Before());
  return found == line_.end() || found->priority != priority ? nullptr : &*found;
}

void Groups::leave_line(Turn& turn) {
  if (turn.line_hook.is_linked()) line_.erase(line_.iterator_to(turn));
}

void Groups::stand_in_line(Turn& turn) {
  CARILLON_REQUIRE(!turn.tube->ready.empty() && !turn.rests && !turn.line_hook.is_linked(),
                   turn.tube->record.name, turn.rests);
  turn.priority = turn.tube->ready.begin()->record.priority;
  turn.arrival = ++arrivals_;
  turn.whole = 0;
  turn.part = 0;
  if (const Turn* const first = first_with(turn.priority)) {
    round_down_to(turn, *first);
    add_one_job(turn);
  }
  line_.insert(turn);
}

void Groups::follow(Tube& lane) {
  Turn& turn = *lane.turn;
  const bool is_ready = !lane.ready.empty() && !turn.rests;
  if (turn.line_hook.is_linked()) {
    if (is_ready && lane.ready.begin()->record.priority == turn.priority) return;
    leave_line(turn);
  }
  if (is_ready) stand_in_line(turn);
}

void Groups::follow_due(Tube& lane) noexcept {
  Turn& turn = *lane.turn;
  if (turn.due_hook.is_linked()) due_.erase(due_.iterator_to(turn));
  if (lane.delayed.empty()) return;
  turn.due_from = lane.delayed.begin()->due_at;
  due_.insert(turn);
}

void Groups::let_rest(Tube& lane, bool rests) {
  lane.turn->rests = rests;
  follow(lane);
}

void Groups::charge(Tube& lane) {
  Turn& turn = *lane.turn;
  leave_line(turn);
  add_one_job(turn);
  turn.arrival = ++arrivals_;
  line_.insert(turn);
}

void Groups::follow_record(Tube& lane) {
  Turn& turn = *lane.turn;
  if (turn.buried_hook.is_linked() != (lane.record.buried > 0)) {
    if (lane.record.buried > 0) {
      buried_.push_back(turn);
    } else {
      buried_.erase(buried_.iterator_to(turn));
    }
  }
  const std::uint32_t weight = &lane == &head_ ? 1 : lane.record.settings->weight;
  if (weight == turn.weight) return;
  leave_line(turn);
  turn.weight = weight;
  follow(lane);
}

Groups::Sums Groups::counted() const {
  Sums counted;
  const auto count = [&counted](const Tube& tube) {
    counted.ready += tube.ready_jobs();
    counted.urgent += tube.urgent_jobs();
    counted.reserved += tube.reserved;
    counted.ending += tube.ending;
    counted.scheduled += tube.record.scheduled;
    counted.buried += tube.record.buried;
    counted.loaded += tube.loaded;
  };
  count(head_);
  for (const Turn& turn : numbers_) count(*turn.tube);
  return counted;
}

std::uint64_t Groups::stored() const {
  return static_cast<std::uint64_t>(
      std::count_if(numbers_.begin(), numbers_.end(),
                    [](const Turn& turn) { return !turn.tube->record.empty(); }));
}

bool Groups::check_invariants() const {
  const auto is_in_place = [this](const Turn& turn) {
    const Tube& tube = *turn.tube;
    const bool is_ready = !tube.ready.empty() && !turn.rests;
    if (turn.head != &head_ || turn.line_hook.is_linked() != is_ready) return false;
    const bool has_due = turn.due_hook.is_linked();
    if (!tube.delayed.empty() && (!has_due || tube.delayed.begin()->due_at < turn.due_from))
      return false;
    if (turn.buried_hook.is_linked() != (tube.record.buried > 0)) return false;
    if (!is_ready) return true;
    const Turn& first = *first_with(turn.priority);
    Turn latest(*turn.tube, head_);
    latest.weight = turn.weight;
    round_down_to(latest, first);
    add_one_job(latest);
    return turn.priority == tube.ready.begin()->record.priority && !is_earlier(turn, first) &&
           !is_earlier(latest, turn);
  };
  return is_in_place(*head_.turn) && lanes_ == numbers_.size() &&
         std::all_of(numbers_.begin(), numbers_.end(), is_in_place);
}

}  // namespace carillon::queue
