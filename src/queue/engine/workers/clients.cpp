#include "queue/engine/workers/clients.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

void check_client(const Client& client, ClientId id) {
  check_invariant(client.held.size() == client.deadlines.size(), "held jobs have deadlines",
                  std::to_string(id));
  check_invariant(!client.watches.empty(), "a client watches something", std::to_string(id));
  check_invariant(client.by_tube.size() == client.watches.size(),
                  "all watches are found by their tubes", std::to_string(id));
  for (const auto& watch : client.watches) {
    const bool may_be_in_line = watch->position < client.in_lines;
    check_invariant(client.watches[watch->position] == watch, "a watch knows its position",
                    std::to_string(id));
    check_invariant(
        watch->waiting_hook.is_linked() ? may_be_in_line : !client.waiting || client.over_share,
        "a client is in lines as far as it knows", std::to_string(id));
  }
  check_invariant(client.leaving_hook.is_linked() == (client.in_lines > 0 && !client.waiting),
                  "who waits no more leaves the lines", std::to_string(id));
  for (const LoadedJob& job : client.held) {
    check_invariant(job.state == JobState::kReserved && job.holder == &client && job.armed(),
                    "a held job is reserved", std::to_string(id));
  }
}

constexpr std::uint64_t kNever = UINT64_MAX;

// How long a client that has too many jobs waits before it is checked again, in ms.
constexpr std::uint64_t kShareWait = 100;

}  // namespace

Clients::~Clients() {
  for (auto& [id, client] : clients_) waits_.cancel(*client);
  leaving_lines_.clear();
}

Client& Clients::connect() {
  const ClientId id = next_id_++;
  Client& client = *clients_.emplace(id, std::make_unique<Client>(id)).first->second;
  use(client, tubes_.default_tube());
  watch(client, tubes_.default_tube());
  return client;
}

void Clients::use(Client& client, Tube& tube) {
  ++tube.users;
  Tube* before = std::exchange(client.tube_in_use, &tube);
  if (before == nullptr) return;
  --before->users;
  tubes_.forget_if_unreferenced(*before);
}

void Clients::watch(Client& client, Tube& tube) {
  auto made = std::make_unique<Watch>(client, tube);
  made->position = client.watches.size();
  client.watches.push_back(std::move(made));
  client.by_tube.insert(*client.watches.back());
  ++tube.watchers;
  ++counts_.watches;
}

void Clients::unwatch(Watch& watch) {
  Client& client = *watch.client;
  Tube& tube = *watch.tube;
  if (watch.waiting_hook.is_linked()) tube.waiting.erase(tube.waiting.iterator_to(watch));
  client.by_tube.erase(client.by_tube.iterator_to(watch));
  const std::size_t position = watch.position;
  std::swap(client.watches[position], client.watches.back());
  client.watches[position]->position = position;
  client.watches.pop_back();
  client.in_lines = std::min(client.in_lines, client.watches.size());
  --tube.watchers;
  --counts_.watches;
  tubes_.forget_if_unreferenced(tube);
}

std::size_t Clients::leave_lines(Client& client, std::size_t budget) {
  const std::size_t before = client.in_lines;
  while (client.in_lines > before - std::min(before, budget)) {
    Watch& watch = *client.watches[--client.in_lines];
    Tube::WaitingLine& line = watch.tube->waiting;
    if (watch.waiting_hook.is_linked()) line.erase(line.iterator_to(watch));
  }
  if (client.in_lines == 0 && client.leaving_hook.is_linked())
    leaving_lines_.erase(leaving_lines_.iterator_to(client));
  return before - client.in_lines;
}

std::size_t Clients::give_up(Client& client, std::size_t budget) {
  std::size_t done = 0;
  for (; done < budget && !client.held.empty(); ++done) {
    LoadedJob& job = client.held.front();
    if (endings_.is_stored(job, Ending::kLost)) {
      endings_.queue(job, Ending::kLost);
      continue;
    }
    Tube& tube = *job.tube;
    appender_.lease_is_over(job);
    jobs_.detach(job);
    jobs_.enqueue(job);
    serve(tube);
  }
  for (; done < budget && !client.watches.empty(); ++done) unwatch(*client.watches.back());
  return done;
}

void Clients::clear_up(std::size_t budget) {
  while (budget > 0 && !gone_.empty()) {
    budget -= give_up(*gone_.front(), std::min(budget, kLeaveAtOnce));
    if (gone_.front()->watches.empty()) {
      gone_.pop_front();
    } else {
      gone_.splice(gone_.end(), gone_, gone_.begin());
    }
  }
  while (budget > 0 && !leaving_lines_.empty()) {
    Client& client = leaving_lines_.front();
    budget -= leave_lines(client, std::min(budget, kLeaveAtOnce));
    if (client.leaving_hook.is_linked())
      leaving_lines_.splice(leaving_lines_.end(), leaving_lines_, leaving_lines_.begin());
  }
}

void Clients::disconnect(ClientId id) {
  Client& client = this->client(id);
  if (client.waiting) end_waiting(client);
  if (client.leaving_hook.is_linked())
    leaving_lines_.erase(leaving_lines_.iterator_to(client));  // `unwatch` does that too
  tubes_.end_list(client.listing);
  give_up(client, kLeaveAtOnce);
  --client.tube_in_use->users;
  tubes_.forget_if_unreferenced(*client.tube_in_use);
  client.tube_in_use = nullptr;
  const auto at = clients_.find(id);
  if (!client.watches.empty()) gone_.push_back(std::move(at->second));
  clients_.erase(at);
}

void Clients::check_invariants(Tube& tube) const {
  const auto waits = [](const Watch& watch) { return watch.client->waiting; };
  if (std::none_of(tube.waiting.begin(), tube.waiting.end(), waits)) return;
  if (!tube.open()) return;
  const LoadedJob* const first = tube.first();
  if (first == nullptr || clock_.has_expired(first->record)) return;
  const std::string& name = tube.record.name;
  check_invariant(tube.limits != nullptr, "nobody waits while a job is ready and readable", name);
  const std::uint64_t most = tube.record.settings->limits.max_running;
  if (most > 0 && tube.running() >= most) return;
  const TubeLimits& limits = *tube.limits;
  check_invariant(limits.wake.armed(), "who waits for a token is served", name);
  const bool is_due = limits.wake.expiry() <= clock_.mono();
  check_invariant(is_due || !limits.limiter.may_start(tube.running(), clock_.mono()),
                  "nobody waits while the limits let a job go out", name);
}

void Clients::check_invariants(std::uint64_t reserved, std::size_t queued,
                               std::size_t in_lines) const {
  std::size_t held = queued;
  std::size_t linked = 0;
  std::uint64_t waiting = 0;
  for (const auto& [id, client] : clients_) {
    check_client(*client, id);
    held += client->held.size();
    linked += static_cast<std::size_t>(
        std::count_if(client->watches.begin(), client->watches.end(),
                      [](const auto& watch) { return watch->waiting_hook.is_linked(); }));
    waiting += client->waiting ? 1U : 0U;
  }
  for (const auto& client : gone_) {
    check_invariant(!client->watches.empty(), "who has left nothing behind is forgotten",
                    std::to_string(client->id));
    held += client->held.size();
  }
  check_invariant(waiting == counts_.waiting, "waiting clients are counted",
                  std::to_string(counts_.waiting));
  check_invariant(held == reserved, "every reserved job has a holder", std::to_string(held));
  check_invariant(linked == in_lines, "each entry in a waiting line is of a client",
                  std::to_string(linked));
  ttrs_.check_invariants();
  waits_.check_invariants();
}

// --- Reserving

LoadedJob* Clients::first_ready(Tube& of) {
  constexpr int kAtOnce = 16;
  Tube& tube = of.head();
  if (!tube.open() || !throttle_.may_start(tube)) return nullptr;
  for (int expired = 0;; ++expired) {
    LoadedJob* const first = tube.first();
    if (first == nullptr || !clock_.has_expired(first->record)) return first;
    if (expired == kAtOnce) break;  // its timer has not fired yet, and will let the tube be served
    endings_.queue(*first, std::nullopt);
  }
  return nullptr;
}

LoadedJob* Clients::best_ready(const Client& client) {
  LoadedJob* best = nullptr;
  for (const auto& watch : client.watches) {
    LoadedJob* const first = first_ready(*watch->tube);
    if (first == nullptr) continue;
    if (best == nullptr || ByPriority()(*first, *best)) best = first;
  }
  return best;
}

bool Clients::is_hidden(const Client& client) {
  if (!endings_.is_behind()) return false;
  return std::any_of(client.watches.begin(), client.watches.end(), [this](const auto& watch) {
    Tube& tube = watch->tube->head();
    return tube.open() && throttle_.may_start(tube) && tube.first() != nullptr;
  });
}

Delivery Clients::hand_over(Client& client, LoadedJob& job) {
  if (job.tube->turn) job.tube->head().groups->charge(*job.tube);
  hold(client, job);
  if (job.history.reserves == 1)
    counts_.lateness.add(clock_.utc() - std::min(clock_.utc(), clock_.due_of(job.record)));
  return {.client = client.id, .kind = Delivery::Kind::kReserved, .job = jobs_.view(job.record)};
}

void Clients::begin_reservation(LoadedJob& job, Client& holder, std::uint64_t mono) noexcept {
  job.state = JobState::kReserved;
  job.holder = &holder;
  job.tube->reserve(job.record.due);
  ++counts_.sums.reserved;
  ttrs_.schedule(job, Moment{mono});
  holder.held.push_back(job);
  holder.deadlines.insert(job);
}

void Clients::end_reservation(LoadedJob& job) noexcept {
  ttrs_.cancel(job);
  job.holder->held.erase(job.holder->held.iterator_to(job));
  job.holder->deadlines.erase(job.holder->deadlines.iterator_to(job));
  job.holder = nullptr;
  job.tube->end_reservation();
  --counts_.sums.reserved;
}

void Clients::set_deadline(LoadedJob& job, std::uint64_t mono) {
  Client& holder = *job.holder;
  holder.deadlines.erase(holder.deadlines.iterator_to(job));
  ttrs_.reschedule(job, Moment{mono});
  holder.deadlines.insert(job);
}

void Clients::hold(Client& client, LoadedJob& job) noexcept {
  jobs_.detach(job);
  begin_reservation(job, client, clock_.mono_from() + job.record.ttr);
  ++job.history.reserves;
  ++counts_.totals.reserved;
  throttle_.start(job);
  far_.room_appeared(*job.tube);
}

void Clients::serve_next(Tube& tube) {
  Client& client = *tube.first_waiting();
  deliveries_.push_back(hand_over(client, *tube.first()));
  end_waiting(client);
}

void Clients::serve(Tube& of) noexcept {
  Tube& tube = of.head();
  while (can_serve(tube)) serve_next(tube);
}

// Uses a heap of the tubes by their first ready jobs. While a tube is in the heap, its first job
// stays: only serve_next() takes jobs away, and it is called for a tube outside the heap.
void Clients::serve(std::vector<Tube*>& those) noexcept {
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

void Clients::start_waiting(Client& client, std::optional<Millis> timeout) {
  client.waiting = true;
  ++counts_.waiting;
  client.over_share = !may_hold_more(client);
  if (!client.over_share) stand_in_lines(client);

  const std::uint64_t from = clock_.mono_from();
  client.give_up_at = timeout && *timeout < kNever - from ? from + *timeout : kNever;
  schedule_wake(client);
}

bool Clients::may_hold_more(const Client& client) const {
  const std::size_t free = options_.max_reserved > counts_.sums.reserved
                               ? options_.max_reserved - counts_.sums.reserved
                               : 0;
  return client.held.size() < std::max<std::size_t>(free, 1);
}

void Clients::stand_in_lines(Client& client) {
  leave_lines(client, client.in_lines);  // so that it stands at the ends of the lines
  for (const auto& watch : client.watches) watch->tube->waiting.push_back(*watch);
  client.in_lines = client.watches.size();
}

void Clients::schedule_wake(Client& client) {
  const std::uint64_t soon_at =
      client.deadlines.empty() ? kNever : client.deadlines.begin()->expiry() - kSafetyMargin;
  std::uint64_t wake_at = std::min(client.give_up_at, soon_at);
  if (client.over_share) wake_at = std::min(wake_at, clock_.mono() + kShareWait);
  if (wake_at != kNever) waits_.schedule(client, Moment{wake_at});
}

void Clients::end_waiting(Client& client) {
  client.waiting = false;
  --counts_.waiting;
  waits_.cancel(client);
  client.over_share = false;
  leave_lines(client, kLeaveAtOnce);
  if (client.in_lines > 0) leaving_lines_.push_back(client);
}

void Clients::let_reserve(Client& client) {
  client.over_share = false;
  stand_in_lines(client);
  LoadedJob* const job = best_ready(client);
  if (job == nullptr) return schedule_wake(client);
  deliveries_.push_back(hand_over(client, *job));
  end_waiting(client);
}

void Clients::wait_is_over(Client& client) {
  const bool soon = client.deadline_soon(clock_.mono_from());
  if (!soon && clock_.mono() < client.give_up_at) {
    if (client.over_share && may_hold_more(client)) return let_reserve(client);
    // If the timer was armed for a held job's deadline, that job's ttr ran out in the same long
    // step of time, and the client does not hold it any more.
    return schedule_wake(client);
  }
  if (!soon && !client.over_share && is_hidden(client))
    return waits_.schedule(client, Moment{clock_.mono()});
  end_waiting(client, soon ? Delivery::Kind::kDeadlineSoon : Delivery::Kind::kTimedOut);
}

void Clients::end_waiting(Client& client, Delivery::Kind with) {
  end_waiting(client);
  deliveries_.push_back({.client = client.id, .kind = with, .job = {}});
}

void Clients::advance_waits(std::size_t budget) {
  waits_.advance(
      clock_.mono(), [this](TimerNode& node) { wait_is_over(static_cast<Client&>(node)); }, budget);
}

}  // namespace carillon::queue
