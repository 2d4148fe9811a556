// Starts and closes an engine, adds clients, and does what the passing of time makes due (advance).

#include "carillon/queue/engine.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "queue/engine/state/engine_state.h"

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

// Each firing is an append: together they take some 0.2 ms.
constexpr std::size_t kFiringsAtOnce = 16;

std::int64_t lead_at_the_end(const Watermarks& stored, const EngineClock& clock) {
  const std::int64_t lead = EngineClock::lead_of(stored);
  return lead == kNoLead ? clock.lead() : lead;
}

// Gives up bodies whose put a crash has cut short. Bodies that it cannot give up are left to the
// next start.
void give_up(const std::vector<UnfinishedBody>& bodies, Appender& appender) try {
  for (const UnfinishedBody& body : bodies) {
    appender.changes.given_up = body;
    appender.append();
  }
} catch (const StoreError&) {
}

}  // namespace

EngineState::EngineState(Store& in, const EngineOptions& with, Recovered recovered, Now now)
    : store(in),
      options(with),
      clock(now, recovered.watermarks, with.boot),
      lead_before(lead_at_the_end(recovered.watermarks, clock)),
      appender(store, options, clock, counts, tubes, schedules, recovered.watermarks),
      tubes(options, counts, ripening, far, retention, throttle),
      jobs(store, clock, appender, counts, tubes, ripening, far, endings, clients, throttle,
           placing),
      ripening(clock, counts, jobs),
      far(store, options, clock, appender, counts, jobs, endings, placing),
      placing(store, clock, appender, tubes, jobs, far),
      throttle(clock, counts),
      clients(options, clock, appender, counts, tubes, jobs, far, endings, throttle),
      keys(store, clock, appender, tubes),
      puts(store, clock, appender, counts, tubes, jobs, far, keys, endings, placing, throttle),
      removals(appender, counts, tubes, jobs, far, keys, clients),
      retention(store, clock, appender, counts, removals, far.wheel()),
      endings(store, clock, appender, counts, tubes, jobs, far, clients, throttle, removals,
              retention),
      schedules(store, options, clock, appender, tubes, jobs, puts, keys) {
  tubes.take_over(std::move(recovered.tubes));
  tubes.for_each([this](Tube& tube) {
    tube.follow_put_rate(clock.mono());
    if (!tube.is_lane()) retention.follow(tube);
    throttle.take_over(tube);
  });
  // The time by the present clock, which may have been set back meanwhile.
  const std::int64_t set_back = std::min<std::int64_t>(0, clock.lead() - lead_before);
  const UtcMs last_known = appender.stored_time() + static_cast<UtcMs>(set_back);
  endpoints = std::move(recovered.endpoints);
  for (ScheduleRecord& record : recovered.schedules)
    schedules.take_over(std::move(record), last_known);
  give_up(recovered.unfinished, appender);
  restore(recovered.leases);
  placing.begin();
}

// Jobs, clients and timers must be unlinked before they are destroyed.
EngineState::~EngineState() {
  jobs.for_each([this](LoadedJob& job) { jobs.detach(job); });
  tubes.unlink_all();
}

void EngineState::advance(Now now) {
  constexpr std::size_t kCommandStep = 64;
  advance(now, std::min(options.step, kCommandStep));
}

void EngineState::advance(Now now, std::size_t step) {
  observe(now);
  // First make ready all jobs that become ready now, and then hand them out, the lowest (priority,
  // id) first. Otherwise a job that was put earlier would go before one of a lower priority number.
  std::vector<Tube*> served;
  std::vector<std::uint32_t> emptied;
  ripening.go_on(served, step);
  endings.expire(served, step);
  endings.decide_doubted(served, step);
  clients.advance_ttrs(step, [this, &served](LoadedJob& job) {
    Tube& tube = *job.tube;
    ++counts.timeouts;
    ++job.history.timeouts;
    if (endings.is_stored(job, Ending::kTimedOut)) return endings.queue(job, Ending::kTimedOut);
    appender.lease_is_over(job);
    jobs.detach(job);
    jobs.enqueue(job);
    if (served.empty() || served.back() != &tube) served.push_back(&tube);
  });
  endings.store_some(served, emptied, step);
  throttle.advance(served, step);
  load_what_is_near(served, emptied, step);
  if (placing.is_pending()) placing.go_on(served, step);
  clients.serve(served);
  for (const std::uint32_t number : emptied) tubes.forget_if_unreferenced(number);
  clients.advance_waits(step);
  clients.clear_up(step);
  keys.sweep(step);
  schedules.fire(std::min(step, kFiringsAtOnce));
}

void EngineState::load_what_is_near(std::vector<Tube*>& loaded_tubes,
                                    std::vector<std::uint32_t>& emptied, std::size_t budget) {
  while (budget > 0) {
    TubeTimer* const timer = far.take_due();
    if (timer == nullptr) return;
    Tube& tube = *timer->tube;
    if (timer == &tube.load_time) loaded_tubes.push_back(&tube);
    try {
      budget -=
          std::min(budget, 1 + (Retention::has(*timer) ? retention.go_on(tube, budget, emptied)
                                                       : far.go_on(*timer, budget)));
    } catch (const StoreError& error) {
      --budget;
      far.failed(*timer, error);
    }
  }
}

void EngineState::on_clock_step(bool back) {
  appender.clock_was_set();
  keys.clock_was_set();
  endings.clock_was_set();
  try {
    appender.append();  // so that the next start knows of this step, and of what it finds itself
  } catch (const StoreError& error) {
    appender.failed(error.what());  // the next append stores the step
  }
  placing.begin();
  tubes.for_each([this, back](Tube& tube) {
    far.count_after_step(tube);
    jobs.follow_the_clock(tube, back);
    retention.follow_the_clock(tube);
    far.follow_the_clock(tube);
  });
  schedules.follow_the_clock(back);
}

void EngineState::check_invariants() const {
  JobCounts found;
  std::uint64_t scheduled = 0;
  std::uint64_t ending = 0;
  std::size_t in_lines = 0;
  tubes.for_each([&](Tube& tube) {
    tubes.check_invariants(tube);
    jobs.check_invariants(tube);
    far.check_invariants(tube);
    retention.check_invariants(tube);
    clients.check_invariants(tube);
    found.urgent += tube.urgent_jobs();
    found.ready += tube.ready_jobs();
    found.reserved += tube.reserved;
    found.buried += tube.record.buried;
    found.loaded += tube.loaded;
    scheduled += tube.record.scheduled;
    ending += tube.ending;
    in_lines += tube.waiting.size();
  });
  const JobCounts& sums = counts.sums;
  check_invariant(found.urgent == sums.urgent && found.ready == sums.ready &&
                      found.reserved == sums.reserved && found.buried == sums.buried &&
                      scheduled == counts.scheduled,
                  "the sums are those of all tubes", "ready, reserved, buried and urgent jobs");
  check_invariant(found.loaded == jobs.size(), "every job in memory is in a tube",
                  std::to_string(found.loaded));
  jobs.check_invariants();
  clients.check_invariants(found.reserved, endings.held(), in_lines);
  endings.check_invariants(ending);
  keys.check_invariants();
  for (const auto* wheel : {&ripening.wheel(), &far.wheel(), &throttle.wheel()})
    wheel->check_invariants();
  schedules.check_invariants();
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
  state_->far.look_at_all(state_->tubes.in_order());
  state_->far.look_at_all(state_->tubes.lanes());
  state_->keys.sweep(options.step);
}

Engine::~Engine() = default;

ClientId Engine::connect() {
  return state_->clients.connect().id;
}

void Engine::name_client(ClientId id, std::string_view name) {
  state_->clients.client(id).name = base::beginning(name, kMaxWorkerName);
}

const std::string& Engine::name_of(ClientId id) const {
  return state_->clients.client(id).name;
}

void Engine::disconnect(ClientId id, Now now) {
  state_->observe(now);
  state_->clients.disconnect(id);
}

void Engine::advance(Now now) {
  state_->advance(now, state_->options.step);
  if (const auto failure = state_->appender.take_failure()) throw StoreError(*failure);
}

std::optional<std::uint64_t> Engine::next_wakeup() const {
  const EngineState& s = *state_;
  std::optional<std::uint64_t> wake;
  const auto sooner = [&wake](std::uint64_t ns) { wake = wake ? std::min(*wake, ns) : ns; };
  const auto sooner_tick = [&](std::optional<Tick> tick) {
    if (tick) sooner(s.clock.mono_ns_at_tick(*tick));
  };
  if (s.clients.has_left_anything()) sooner_tick(0);
  sooner_tick(s.ripening.next());
  sooner_tick(s.far.wheel().next_wakeup());
  sooner_tick(s.schedules.next_wakeup());
  if (const auto steady = s.keys.next_sweep()) sooner_tick(s.clock.tick_of_steady(*steady));
  if (s.placing.is_pending()) sooner_tick(s.placing.next());
  if (const auto ns = s.endings.next_wakeup()) sooner(*ns);
  for (const auto* wheel : {&s.clients.ttrs(), &s.throttle.wheel(), &s.clients.waits()}) {
    if (const auto tick = wheel->next_wakeup()) sooner(EngineClock::mono_ns_at(*tick));
  }
  return wake;
}

std::vector<Delivery> Engine::take_deliveries() {
  return state_->clients.take_deliveries();
}

std::int64_t Engine::clock_moved() const {
  return state_->clock.lead() - state_->lead_before;
}

Sequence Engine::last_sequence() const {
  return state_->appender.last_sequence();
}

void Engine::append_barrier() {
  state_->appender.append();
}

void Engine::close() {
  state_->appender.close();
}

void Engine::check_invariants() const {
  state_->check_invariants();
}

}  // namespace carillon::queue
