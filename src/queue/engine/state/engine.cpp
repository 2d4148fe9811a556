// Here an engine starts and closes, clients come, and the passing of time takes effect (advance).

#include "carillon/queue/engine.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "queue/engine/jobs/retention.h"
#include "queue/engine/schedules/schedules.h"

namespace carillon::queue {

namespace {

const EngineOptions& checked(const EngineOptions& options) {
  const auto refuse = [](const std::string& what) {
    throw std::invalid_argument("queue engine: " + what);
  };
  if (options.step == 0) refuse("step is 0; it must be at least 1");
  if (options.max_loaded_per_tube == 0) refuse("max_loaded_per_tube is 0; it must be at least 1");
  if (options.load_ahead > kLastDue) {
    refuse("load_ahead is " + std::to_string(options.load_ahead) + " ms; the most is " +
           std::to_string(kLastDue));
  }
  return options;
}

// An append each: together some 0.2 ms.
constexpr std::size_t kFiringsAtOnce = 16;

std::int64_t lead_at_the_end(const Watermarks& stored, const EngineClock& clock) {
  const std::int64_t lead = EngineClock::lead_of(stored);
  return lead == kNoLead ? clock.lead() : lead;
}

}  // namespace

EngineMemory::EngineMemory(Store& in, const EngineOptions& with, const Recovered& recovered,
                           Now now)
    : store(in),
      options(with),
      clock(now, recovered.watermarks, with.boot),
      due(clock.tick()),
      loading(clock.tick()),
      expiries(clock.tick()),
      ttrs(clock.mono()),
      pauses(clock.mono()),
      waits(clock.mono()),
      lead_before(lead_at_the_end(recovered.watermarks, clock)),
      stored_marks(recovered.watermarks),
      job_lead(std::max(recovered.watermarks.job_lead, clock.lead())),
      next_id(recovered.watermarks.next_id),
      next_burial(recovered.watermarks.next_burial) {}

EngineState::EngineState(Store& in, const EngineOptions& with, Recovered recovered, Now now)
    : EngineMemory(in, with, recovered, now), schedules(std::make_unique<Schedules>(*this)) {
  const auto by_number = [](const auto& a, const auto& b) { return a.number < b.number; };
  std::vector<TubeRecord>& in_order = recovered.tubes;
  if (!std::is_sorted(in_order.begin(), in_order.end(), by_number))
    std::sort(in_order.begin(), in_order.end(), by_number);
  if (!in_order.empty()) next_tube = in_order.back().number + 1;
  const auto add_all = [&](bool lanes_alone) {
    for (TubeRecord& record : in_order) {
      if ((record.head != 0) != lanes_alone) continue;
      scheduled += record.scheduled;
      sums.buried += record.buried;
      Tube& tube = add_tube(std::move(record));
      tube.follow_put_rate(clock.mono());
      if (!lanes_alone) Retention::follow(*this, tube);
      if (tube.record.settings->limits == Limits()) continue;
      tube.limits = std::make_unique<TubeLimits>(tube, tube.record.settings->limits, clock.mono());
      if (tube.is_lane()) may_start(tube);
    }
  };
  add_all(false);
  add_all(true);
  default_tube = &tube_named("default");
  // What the present clock showed then: it may have been set back meanwhile.
  const std::int64_t set_back = std::min<std::int64_t>(0, clock.lead() - lead_before);
  const UtcMs last_known = stored_marks.time + static_cast<UtcMs>(set_back);
  endpoints = std::move(recovered.endpoints);
  for (ScheduleRecord& record : recovered.schedules)
    schedules->take_over(std::move(record), last_known);
  give_up_unfinished(recovered.unfinished);
  begin_placing();
}

EngineState::~EngineState() {
  // Jobs, clients and timers must be unlinked before they are destroyed.
  jobs.for_each([this](JobId, const auto& job) { detach(*job); });
  for (auto& [id, each] : clients) waits.cancel(*each);
  leaving_lines.clear();
  ripening.clear();
  for_each_tube([this](Tube& tube) {
    tube.waiting.clear();
    due.cancel(tube.due_time);
    loading.cancel(tube.load_time);
    if (tube.retained) loading.cancel(tube.retained->time);
    end_count(tube);
    pauses.cancel(tube.pause_end);
    if (tube.limits) pauses.cancel(tube.limits->wake);
  });
  for (Tube* tube : tube_order) tube->groups.reset();
}

Client& EngineState::client(ClientId id) {
  return *clients.at(id);
}

void EngineState::advance(Now now) {
  constexpr std::size_t kCommandStep = 64;
  advance(now, std::min(options.step, kCommandStep));
}

void EngineState::advance(Now now, std::size_t step) {
  observe(now);
  // First make ready all jobs that become ready now, and then hand them out: the lowest (priority,
  // id) first. Otherwise a job that was put earlier would win over one of a lower priority.
  std::vector<Tube*> served;
  std::vector<std::uint32_t> emptied;
  const auto runs_out = [this, &served](TimerNode& node) {
    auto& job = static_cast<LoadedJob&>(node);
    Tube& tube = *job.tube;
    ++timeouts;
    ++job.history.timeouts;
    if (end_is_stored(job, Ending::kTimedOut)) return queue_ending(job, Ending::kTimedOut);
    detach(job);
    enqueue(job);
    if (served.empty() || served.back() != &tube) served.push_back(&tube);
  };
  due.advance(
      clock.tick(),
      [this](TimerNode& node) {
        Tube& tube = *static_cast<TubeTimer&>(node).tube;
        tube.ripe_until = clock.utc();
        ripening.push_back(tube);
      },
      step);
  ripen(served, step);
  expire(served, step);
  decide_doubted(served, step);
  ttrs.advance(clock.mono(), runs_out, step);
  end_attempts(served, emptied, step);
  pauses.advance(
      clock.mono(),
      [this, &served](TimerNode& node) {
        Tube& tube = *static_cast<TubeTimer&>(node).tube;
        if (tube.is_lane()) may_start(tube);
        served.push_back(&tube);
      },
      step);
  load_what_is_near(served, emptied, step);
  if (!to_place.empty()) place_more(served, step);
  serve(served);
  for (const std::uint32_t number : emptied) forget_if_unreferenced(number);
  waits.advance(
      clock.mono(), [this](TimerNode& node) { wait_is_over(static_cast<Client&>(node)); }, step);
  clear_up(step);
  sweep_keys(step);
  schedules->fire(std::min(step, kFiringsAtOnce));
}

void EngineState::await_first_delayed(Tube& lane) {
  if (lane.turn) {
    const Turn& turn = *lane.turn;
    const bool is_awaited =
        turn.due_hook.is_linked() && turn.due_from <= lane.delayed.begin()->due_at;
    if (!is_awaited) lane.head().groups->follow_due(lane);
  }
  await_due(lane.head());
}

void EngineState::await_due(Tube& tube) {
  const std::optional<UtcMs> first = tube.due_from();
  if (!first || tube.ripening()) return;
  Tick tick = clock.tick_of(*first);
  // The tick may have come already: if the wall clock was set back by so little that it is no step.
  if (*first > clock.utc()) tick = std::max(tick, clock.tick() + 1);
  if (!tube.due_time.armed() || tick < tube.due_time.expiry())
    due.reschedule(tube.due_time, Moment{tick});
}

// A tube that many jobs of are due at once gets no more of the time than the others, however many
// groups these jobs have: lanes share the turn of their tube.
void EngineState::ripen(std::vector<Tube*>& ripe, std::size_t budget) {
  constexpr std::size_t kAtOnce = 16;
  while (budget > 0 && !ripening.empty()) {
    Tube& tube = ripening.front();
    const std::size_t part = std::min(budget, kAtOnce);
    budget -= part;
    ripening.pop_front();
    if (ripen(tube, part)) {
      await_due(tube);
      ripe.push_back(&tube);
    } else {
      ripening.push_back(tube);
    }
  }
}

bool EngineState::ripen(Tube& tube, std::size_t budget) {
  for (auto first = tube.due_from(); first && *first <= tube.ripe_until; first = tube.due_from()) {
    if (budget == 0) return false;
    Tube& lane = tube.groups ? *tube.groups->first_due()->tube : tube;
    // That lane may have lost its first jobs: then the look counts.
    budget -= std::max<std::size_t>(1, ripen_lane(lane, tube.ripe_until, budget));
    if (tube.groups) tube.groups->follow_due(lane);
  }
  return true;
}

std::size_t EngineState::ripen_lane(Tube& lane, UtcMs until, std::size_t budget) {
  std::size_t ripe = 0;
  for (; ripe < budget && !lane.delayed.empty(); ++ripe) {
    LoadedJob& first = *lane.delayed.begin();
    if (first.due_at > until) break;
    detach(first);
    make_ready(first);
    ++fired;
  }
  return ripe;
}

void EngineState::load_what_is_near(std::vector<Tube*>& loaded_tubes,
                                    std::vector<std::uint32_t>& emptied, std::size_t budget) {
  while (budget > 0) {
    TubeTimer* timer = nullptr;
    loading.advance(
        clock.tick(), [&timer](TimerNode& node) { timer = &static_cast<TubeTimer&>(node); }, 1);
    if (timer == nullptr) return;
    Tube& tube = *timer->tube;
    const bool loads = timer == &tube.load_time;
    const bool lets_go = tube.retained && timer == &tube.retained->time;
    if (loads) loaded_tubes.push_back(&tube);
    try {
      budget -= std::min(budget, 1 + (loads     ? load(tube, budget)
                                      : lets_go ? Retention::go_on(*this, tube, budget, emptied)
                                                : count_more(tube, budget)));
    } catch (const StoreError& error) {
      --budget;
      loading_failed(*timer, error);
    }
  }
}

Engine::Engine(std::unique_ptr<EngineState> state)
    : EngineJobs(*state),
      EngineWorkers(*state),
      EngineTubes(*state),
      EngineSchedules(*state),
      EngineReports(*state),
      state_(std::move(state)) {}

Engine::Engine(Store& store, const EngineOptions& options, Now now)
    : Engine(std::make_unique<EngineState>(store, checked(options), store.recover(), now)) {
  state_->look_at_all(state_->tube_order);
  state_->look_at_all(state_->lanes);
  state_->sweep_keys(options.step);
}

Engine::~Engine() = default;

ClientId Engine::connect() {
  EngineState& s = *state_;
  const ClientId id = s.next_client++;
  Client& client = *s.clients.emplace(id, std::make_unique<Client>(id)).first->second;
  s.use(client, *s.default_tube);
  s.watch(client, *s.default_tube);
  return id;
}

void Engine::advance(Now now) {
  state_->advance(now, state_->options.step);
  if (const auto failure = std::exchange(state_->load_failure, std::nullopt))
    throw StoreError(*failure);
}

std::optional<std::uint64_t> Engine::next_wakeup() const {
  const EngineState& s = *state_;
  std::optional<std::uint64_t> wake;
  if (!s.ripening.empty() || !s.gone.empty() || !s.leaving_lines.empty())
    return s.clock.mono_ns_at_tick(0);
  const auto sooner = [&wake](std::uint64_t ns) { wake = wake ? std::min(*wake, ns) : ns; };
  for (const auto* wheel : {&s.due, &s.loading, &s.expiries}) {
    if (const auto tick = wheel->next_wakeup()) sooner(s.clock.mono_ns_at_tick(*tick));
  }
  if (const auto tick = s.schedules->next_wakeup()) sooner(s.clock.mono_ns_at_tick(*tick));
  if (s.keys_end != UINT64_MAX) sooner(s.clock.mono_ns_at_tick(s.clock.tick_of_steady(s.keys_end)));
  if (!s.doubted.held.empty())
    sooner(s.clock.mono_ns_at_tick(s.to_decide > 0 ? 0 : s.clock.tick_beyond_doubt()));
  if (!s.to_place.empty()) sooner(s.clock.mono_ns_at_tick(s.place_at));
  if (!s.pending_endings.held.empty()) sooner(EngineClock::mono_ns_at(s.endings_at));
  for (const auto* wheel : {&s.ttrs, &s.pauses, &s.waits}) {
    if (const auto tick = wheel->next_wakeup()) sooner(EngineClock::mono_ns_at(*tick));
  }
  return wake;
}

std::vector<Delivery> Engine::take_deliveries() {
  return std::exchange(state_->deliveries, {});
}

std::int64_t Engine::clock_moved() const {
  return state_->clock.lead() - state_->lead_before;
}

Sequence Engine::last_sequence() const {
  return state_->last_sequence;
}

void Engine::close() {
  EngineState& s = *state_;
  Changes exact;
  exact.watermarks = s.watermarks(s.next_id, s.next_burial);
  s.last_sequence = s.store.append(exact);
  s.stored_marks = *exact.watermarks;
}

}  // namespace carillon::queue
