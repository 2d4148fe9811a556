// Here ready jobs go to clients: at once, or after the client has waited in line.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

constexpr std::uint64_t kNever = UINT64_MAX;

// How long a client that has too many jobs waits before it is looked at again, in ms.
constexpr std::uint64_t kShareWait = 100;

}  // namespace

LoadedJob* EngineState::first_ready(Tube& of) {
  constexpr int kAtOnce = 16;
  Tube& tube = of.head();
  if (!tube.open() || !may_start(tube)) return nullptr;
  for (int expired = 0;; ++expired) {
    LoadedJob* const first = tube.first();
    if (first == nullptr || !clock.has_expired(first->record)) return first;
    if (expired == kAtOnce) break;  // its timer has not fired yet, and will let the tube be served
    queue_ending(*first, std::nullopt);
  }
  return nullptr;
}

LoadedJob* EngineState::best_ready(const Client& client) {
  LoadedJob* best = nullptr;
  for (const auto& watch : client.watches) {
    LoadedJob* const first = first_ready(*watch->tube);
    if (first == nullptr) continue;
    if (best == nullptr || ByPriority()(*first, *best)) best = first;
  }
  return best;
}

bool EngineState::is_hidden(const Client& client) {
  const std::optional<Tick> next = expiries.next_wakeup();
  if (!next || *next > clock.tick()) return false;
  return std::any_of(client.watches.begin(), client.watches.end(), [this](const auto& watch) {
    Tube& tube = watch->tube->head();
    return tube.open() && may_start(tube) && tube.first() != nullptr;
  });
}

Delivery EngineState::hand_over(Client& client, LoadedJob& job) {
  if (job.tube->turn) job.tube->head().groups->charge(*job.tube);
  hold(client, job);
  if (job.history.reserves == 1)
    lateness.add(clock.utc() - std::min(clock.utc(), clock.due_of(job.record)));
  return {.client = client.id, .kind = Delivery::Kind::kReserved, .job = view(job.record)};
}

void EngineState::hold(Client& client, LoadedJob& job) noexcept {
  detach(job);
  job.state = JobState::kReserved;
  job.holder = &client;
  ++job.history.reserves;
  job.tube->reserve(job.record.due);
  ++sums.reserved;
  ++totals.reserved;
  const auto& limits = job.tube->head().limits;
  job.took_token = limits && limits->limiter.start(clock.mono());
  if (job.tube->is_lane()) {
    const auto& own = job.tube->limits;
    job.took_own_token = own && own->limiter.start(clock.mono());
    may_start(*job.tube);
  }
  ttrs.schedule(job, Moment{clock.mono_from() + job.record.ttr});
  client.held.push_back(job);
  client.deadlines.insert(job);
  room_appeared(*job.tube);
}

void EngineState::serve_next(Tube& tube) {
  Client& client = *tube.first_waiting();
  deliveries.push_back(hand_over(client, *tube.first()));
  end_waiting(client);
}

void EngineState::serve(Tube& of) noexcept {
  Tube& tube = of.head();
  while (can_serve(tube)) serve_next(tube);
}

// A heap of the tubes by their first ready jobs. While a tube is in it, its first job stays: only
// serve_next() takes jobs away, and that is called for a tube that is out.
void EngineState::serve(std::vector<Tube*>& those) noexcept {
  for (Tube*& tube : those) tube = &tube->head();
  std::sort(those.begin(), those.end());
  those.erase(std::unique(those.begin(), those.end()), those.end());
  std::erase_if(those, [this](Tube* tube) { return !can_serve(*tube); });
  const auto later = [](Tube* a, Tube* b) { return ByPriority()(*b->first(), *a->first()); };
  std::make_heap(those.begin(), those.end(), later);
  while (!those.empty()) {
    std::pop_heap(those.begin(), those.end(), later);
    Tube& tube = *those.back();
    if (can_serve(tube)) serve_next(tube);
    if (can_serve(tube)) {
      std::push_heap(those.begin(), those.end(), later);
    } else {
      those.pop_back();
    }
  }
}

void EngineState::start_waiting(Client& client, std::optional<Millis> timeout) {
  client.waiting = true;
  ++waiting;
  client.over_share = !may_hold_more(client);
  if (!client.over_share) stand_in_lines(client);

  const std::uint64_t from = clock.mono_from();
  client.give_up_at = timeout && *timeout < kNever - from ? from + *timeout : kNever;
  schedule_wake(client);
}

bool EngineState::may_hold_more(const Client& client) const {
  const std::size_t free =
      options.max_reserved > sums.reserved ? options.max_reserved - sums.reserved : 0;
  return client.held.size() < std::max<std::size_t>(free, 1);
}

void EngineState::stand_in_lines(Client& client) {
  leave_lines(client, client.in_lines);  // to stand at their ends
  for (const auto& watch : client.watches) watch->tube->waiting.push_back(*watch);
  client.in_lines = client.watches.size();
}

void EngineState::schedule_wake(Client& client) {
  const std::uint64_t soon_at =
      client.deadlines.empty() ? kNever : client.deadlines.begin()->expiry() - kSafetyMargin;
  std::uint64_t wake_at = std::min(client.give_up_at, soon_at);
  if (client.over_share) wake_at = std::min(wake_at, clock.mono() + kShareWait);
  if (wake_at != kNever) waits.schedule(client, Moment{wake_at});
}

void EngineState::end_waiting(Client& client) {
  client.waiting = false;
  --waiting;
  waits.cancel(client);
  client.over_share = false;
  leave_lines(client, kLeaveAtOnce);
  if (client.in_lines > 0) leaving_lines.push_back(client);
}

void EngineState::let_reserve(Client& client) {
  client.over_share = false;
  stand_in_lines(client);
  LoadedJob* const job = best_ready(client);
  if (job == nullptr) return schedule_wake(client);
  deliveries.push_back(hand_over(client, *job));
  end_waiting(client);
}

void EngineState::wait_is_over(Client& client) {
  const bool soon = client.deadline_soon(clock.mono_from());
  if (!soon && clock.mono() < client.give_up_at) {
    if (client.over_share && may_hold_more(client)) return let_reserve(client);
    // If the timer was armed for a held job's deadline, that job's ttr ran out in the same long
    // step of time, and the client does not hold it any more.
    return schedule_wake(client);
  }
  if (!soon && !client.over_share && is_hidden(client))
    return waits.schedule(client, Moment{clock.mono()});
  end_waiting(client);
  deliveries.push_back({.client = client.id,
                        .kind = soon ? Delivery::Kind::kDeadlineSoon : Delivery::Kind::kTimedOut,
                        .job = {}});
}

}  // namespace carillon::queue
