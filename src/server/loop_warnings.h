// What the event loop watches and logs: slow syncs, steps of the clock, a lack of memory, and
// schedules. It asks each of these once a turn, at little cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/log_throttle.h"
#include "carillon/queue/engine.h"
#include "carillon/queue/store.h"

namespace carillon::server {

// SlowSyncs times syncs, and logs when one keeps clients waiting for a second or more. It is asked
// once more before a sync is requested.
class SlowSyncs {
 public:
  // `what` is slow then: "the disk". A literal.
  explicit SlowSyncs(const char* what = "the disk") : what_(what) {}

  // At `mono_ns` (ns of the monotonic clock) syncs are requested up to `requested`, and are done up
  // to `durable`. If the sync that is being timed is done, returns how long it took, in ns, and
  // times another one from then on; otherwise returns none. Cheap.
  [[nodiscard]] std::optional<std::uint64_t> observe(std::uint64_t mono_ns,
                                                     queue::Sequence requested,
                                                     queue::Sequence durable);
  // Since when the sync that is being timed is requested, in ns. None: all that was requested is
  // done.
  std::optional<std::uint64_t> waiting_since() const {
    return pending_ ? std::optional(pending_->since_ns) : std::nullopt;
  }

 private:
  struct Pending {
    queue::Sequence sequence;
    std::uint64_t since_ns;
  };

  const char* what_;
  // One request that is not done. Only one is timed at a time; it stands for all.
  std::optional<Pending> pending_;
  base::LogThrottle throttle_;
};

// ClockSteps logs when somebody has set the wall clock by a second or more.
class ClockSteps {
 public:
  // To be called once a turn. Cheap.
  void observe(const queue::Engine& engine);

 private:
  std::int64_t logged_ = 0;  // Engine::clock_moved() at the last log line
};

// MemoryWarnings logs when jobs stay on disk because memory has no room for them, and when reserved
// jobs take as much memory as they may.
class MemoryWarnings {
 public:
  explicit MemoryWarnings(const queue::EngineOptions& limits) : limits_(limits) {}

  // Call it once a turn, at `mono_ns` (ns of the monotonic clock). It checks once a second.
  void observe(std::uint64_t mono_ns, const queue::Engine& engine);

 private:
  static void look(bool& full, bool now_full, std::size_t used, std::size_t most,
                   std::string_view line);

  queue::EngineOptions limits_;
  std::uint64_t looked_ns_ = 0;
  bool loaded_is_full_ = false;
  bool reserved_is_full_ = false;
};

// ScheduleLog logs the occurrences of schedules that were skipped, those that a change of clocks
// moved, and schedules that cannot be read.
//
//   log.observe(engine, now_ns);     // once a turn
class ScheduleLog {
 public:
  // Logs at most 20 lines a second, and how many more events there were. A schedule that skips
  // because the job before is still there has one line a minute, with the number of occurrences.
  void observe(queue::Engine& engine, std::uint64_t mono_ns);

 private:
  // Returns how many lines of this schedule were held back; nothing if this one must be held back,
  // too.
  std::optional<std::uint64_t> pass_overlap(const std::string& name, std::uint64_t mono_ns);

  static constexpr unsigned kMostLines = 20;  // a second

  std::map<std::string, base::LogThrottle> overlaps_;  // by the names of schedules
  std::uint64_t second_ = 0;
  unsigned lines_ = 0;
  std::uint64_t held_back_ = 0;
};

}  // namespace carillon::server
