// The part of the engine for schedules, which put jobs by cron or at an interval, and for
// endpoints, to which the owner posts jobs.
//
//   engine.set_schedule(now, "report", {.tube = "mail", .cron = "0 9 * * MON", .zone = "UTC",
//                                       .body = "weekly"});
//   engine.pause_schedule(now, "report");
//   engine.trigger_schedule(now, "report");      // puts its job now
//   for (const ScheduleEvent& event : engine.take_schedule_events()) ...      // for a log
//
// schedule.h and endpoint.h say what they are; docs/queue.md#schedules says what happens when.
// engine.h has the contracts that all methods keep. REQUIRES: the name of a schedule has 1 to
// kMaxScheduleText bytes. Each command is one append.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/commands.h"
#include "carillon/queue/endpoint.h"
#include "carillon/queue/now.h"
#include "carillon/queue/schedule.h"

namespace carillon::queue {

struct EngineState;  // private

class EngineSchedules {
 public:
  // Makes a schedule, or changes the one with the name. Its jobs, counts and decisions stay; if it
  // occurs at other times from now on, no occurrence before now is caught up. If it is paused, it
  // stays paused. Throws std::invalid_argument, with one line that says what is wrong and what is
  // allowed, and OverLimit if schedules would take more than options.max_schedule_bytes, or if
  // there may be no more tubes. If `paused` is true, it is paused from then on.
  Outcome set_schedule(Now now, std::string_view name, const Schedule& schedule,
                       bool paused = false);
  // The next four do nothing if there is no such schedule. Deletes it; its jobs stay.
  Outcome remove_schedule(Now now, std::string_view name);
  // No occurrence fires until the schedule is resumed. Occurrences that come meanwhile are skipped.
  Outcome pause_schedule(Now now, std::string_view name);
  Outcome resume_schedule(Now now, std::string_view name);
  // Puts the schedule's job now, as a batch of one; also if the schedule is paused, or a job of it
  // is there. If the token of `order` is known, returns its answer again, even if the schedule is
  // gone.
  std::optional<BatchOutcome> trigger_schedule(Now now, std::string_view name,
                                               const BatchOrder& order = {});
  // Returns the schedule with its next `times` occurrences. O(times).
  std::optional<ScheduleView> schedule(Now now, std::string_view name, std::size_t times);
  // Returns the first `limit` names after `name`, in the order of their bytes. O(limit).
  std::vector<std::string> schedules(std::string_view name, std::size_t limit) const;
  // Returns what happened to schedules since the last call, at most the first 1 000 events.
  std::vector<ScheduleEvent> take_schedule_events();

  // --- Endpoints: endpoint.h says which exceptions are thrown.

  Outcome set_endpoint(Now now, std::string_view name, const Endpoint& endpoint);
  Outcome remove_endpoint(Now now, std::string_view name);
  const Endpoints& endpoints() const;
  std::uint64_t endpoint_changes() const;  // grows with each change of an endpoint

 protected:
  explicit EngineSchedules(EngineState& state) : state_(state) {}
  ~EngineSchedules() = default;

 private:
  EngineState& state_;
};

}  // namespace carillon::queue
