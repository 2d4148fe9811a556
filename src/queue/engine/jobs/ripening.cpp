#include "queue/engine/jobs/ripening.h"

#include <algorithm>

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

void Ripening::forget(Tube& tube) noexcept {
  wheel_.cancel(tube.due_time);
  if (tube.ripening()) line_.erase(Line::s_iterator_to(tube));
}

void Ripening::await_first_delayed(Tube& lane) {
  if (lane.turn) {
    const Turn& turn = *lane.turn;
    const bool is_awaited =
        turn.due_hook.is_linked() && turn.due_from <= lane.delayed.begin()->due_at;
    if (!is_awaited) lane.head().groups->follow_due(lane);
  }
  await_due(lane.head());
}

void Ripening::await_due(Tube& tube) {
  const std::optional<UtcMs> first = tube.due_from();
  if (!first || tube.ripening()) return;
  Tick tick = clock_.tick_of(*first);
  // The tick may have come already: if the wall clock was set back by so little that it is no step.
  if (*first > clock_.utc()) tick = std::max(tick, clock_.tick() + 1);
  if (!tube.due_time.armed() || tick < tube.due_time.expiry())
    wheel_.reschedule(tube.due_time, Moment{tick});
}

// A tube with many due jobs gets no more time than the others, however many groups these jobs have:
// lanes share the turn of their tube.
void Ripening::go_on(std::vector<Tube*>& ripe, std::size_t budget) {
  wheel_.advance(
      clock_.tick(),
      [this](TimerNode& node) {
        Tube& tube = *static_cast<TubeTimer&>(node).tube;
        tube.ripe_until = clock_.utc();
        line_.push_back(tube);
      },
      budget);
  constexpr std::size_t kAtOnce = 16;
  while (budget > 0 && !line_.empty()) {
    Tube& tube = line_.front();
    const std::size_t part = std::min(budget, kAtOnce);
    budget -= part;
    line_.pop_front();
    if (ripen(tube, part)) {
      await_due(tube);
      ripe.push_back(&tube);
    } else {
      line_.push_back(tube);
    }
  }
}

bool Ripening::ripen(Tube& tube, std::size_t budget) {
  for (auto first = tube.due_from(); first && *first <= tube.ripe_until; first = tube.due_from()) {
    if (budget == 0) return false;
    Tube& lane = tube.groups ? *tube.groups->first_due()->tube : tube;
    // The lane may have lost its first jobs: then count the visit.
    budget -= std::max<std::size_t>(1, ripen_lane(lane, tube.ripe_until, budget));
    if (tube.groups) tube.groups->follow_due(lane);
  }
  return true;
}

std::size_t Ripening::ripen_lane(Tube& lane, UtcMs until, std::size_t budget) {
  std::size_t ripe = 0;
  for (; ripe < budget && !lane.delayed.empty(); ++ripe) {
    LoadedJob& first = *lane.delayed.begin();
    if (first.due_at > until) break;
    jobs_.detach(first);
    jobs_.make_ready(first);
    ++counts_.fired;
  }
  return ripe;
}

}  // namespace carillon::queue
