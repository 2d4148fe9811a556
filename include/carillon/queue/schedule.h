// What a schedule is: a name, the times at which it *occurs*, and the job that is put each time.
//
//   Schedule nightly{.tube = "reports", .body = "sales"};
//   nightly.cron = "30 2 * * MON-FRI";
//   nightly.zone = "Europe/Berlin";
//   engine.set_schedule(now, "sales-report", nightly);      // engine_schedules.h
//
// An *occurrence* is a moment by the wall clock. It *fires* when its job is put. The new job, and
// the fact that the occurrence has fired, are one change of the store. So no crash loses or doubles
// an occurrence. An occurrence that does not fire is *skipped*; a ScheduleEvent says why.
// docs/queue.md#schedules says what happens when.
//
// Thread safety: these are plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "carillon/queue/detail/rare.h"
#include "carillon/queue/job.h"

namespace carillon::queue {

// The longest name, cron expression and name of a zone, and the largest body, in bytes.
inline constexpr std::size_t kMaxScheduleText = 200;
inline constexpr std::size_t kMaxScheduleBody = 64 << 10;
// The shortest time from one occurrence to the next.
inline constexpr Millis kMinEvery = 1'000;
// The longest of `every`, `spread`, `catch_up_window` and `expires_in`: ten years.
inline constexpr Millis kMaxScheduleSpan = 3'652 * Millis{86'400'000};
// An occurrence is *missed* if it is later than this when the engine decides it, because the server
// was down, or the schedule could not put its job.
inline constexpr Millis kOnTime = 10'000;

// Which missed occurrences fire after all.
enum class CatchUp : std::uint8_t {
  kNone,
  kLast,  // the last one, if no other one has come since
  kAll,   // each that is not older than Schedule::catch_up_window
};

// What an occurrence does while the schedule's last job is still there: ready, delayed or reserved.
// A buried job does not count.
enum class Overlap : std::uint8_t {
  kAllow,  // fires
  kSkip,   // is skipped
  kQueue,  // waits, and fires when that job is gone; is skipped if another one waits
};

// A schedule as a user sets it. It has either `cron` or `every`.
struct Schedule {
  // Where the jobs are put: 1 to 200 bytes.
  std::string tube = "default";
  Priority priority = 0;
  // The ttr of the jobs, in ms, limited to kMinTtr .. kMaxTtr.
  Millis ttr = 60'000;
  // At most kMaxScheduleBody bytes.
  std::string body = {};
  // The following are as in PutOrder.
  std::string group = {};
  RetryPolicy retry = {};
  std::string attributes = {};
  // If it is not 0, a job expires this many ms after it is due, or after its put if that is later.
  Millis expires_in = 0;
  AtExpiry at_expiry = AtExpiry::kDrop;

  // An expression that EngineOptions::calendar reads, and a time zone that it knows.
  std::string cron = {};
  std::string zone = "UTC";
  // If an occurrence is at a time of day that the zone's clocks skip when they go forward: true: it
  // comes right after the gap; false: it is skipped.
  bool run_after_gap = true;

  // The schedule occurs at `start`, and then at this interval, in ms: from kMinEvery to
  // kMaxScheduleSpan.
  Millis every = 0;
  // If it is not given: the time at which the schedule is set, and the first occurrence is `every`
  // ms later.
  std::optional<UtcMs> start = {};

  CatchUp catch_up = CatchUp::kLast;
  Millis catch_up_window = 0;
  Overlap overlap = Overlap::kAllow;
  // A job is due up to this many ms after its occurrence, always as many for the same name and
  // occurrence. So schedules that occur together are spread.
  Millis spread = 0;

  // Returns true if both occur at the same times.
  bool occurs_as(const Schedule& other) const {
    return cron == other.cron && zone == other.zone && every == other.every && start == other.start;
  }

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// Occurrences that have fired: the first, the last, and all between them.
struct FiredSpan {
  UtcMs first = 0;
  UtcMs last = 0;

  friend bool operator==(const FiredSpan&, const FiredSpan&) = default;
};

// A schedule's record, decoded.
struct ScheduleRecord {
  // 1 to kMaxScheduleText bytes.
  std::string name;
  Schedule schedule;
  bool paused = false;
  // The last moment that was decided: all occurrences up to it have fired or were skipped.
  UtcMs decided = 0;
  // Occurrences that have fired, in ascending order. Some are after `decided` if the wall clock was
  // set back. At most kMostSpans; if there were one more, two are joined.
  static constexpr std::size_t kMostSpans = 8;
  std::vector<FiredSpan> spans = {};
  // The occurrence that waits for `last_job` to go; 0: no occurrence waits.
  UtcMs waiting = 0;
  // The last job that was put: its id, and its occurrence (0 if it was triggered). 0: no job yet.
  JobId last_job = 0;
  UtcMs last_occurrence = 0;
  // The tube of that job, by its number; 0: unknown. If the job is moved to another tube, the
  // schedule does not wait for it.
  std::uint32_t last_tube = 0;
  // How many occurrences have fired and were skipped.
  std::uint64_t fired = 0;
  std::uint64_t skipped = 0;
  UtcMs created = 0;
  // The uptime (Watermarks::up_ns), in ms, when the schedule was last set or resumed.
  Millis since = 0;
  // Fields of the record that a newer version of Carillon has written, as their bytes. This version
  // keeps them, and writes them again with the record.
  detail::Rare<std::string> newer = {};

  friend bool operator==(const ScheduleRecord&, const ScheduleRecord&) = default;
};

// An occurrence, and what the zone's clocks do then.
struct Occurrence {
  enum class Clocks : std::uint8_t {
    kEven,
    kAfterGap,    // the time of day was skipped: this is when the clocks have gone forward
    kShownTwice,  // the time of day comes once more, when the clocks have gone back
  };
  UtcMs at = 0;
  Clocks clocks = Clocks::kEven;
};

// Returns the first occurrence after a moment, or none.
using Timetable = std::function<std::optional<Occurrence>(UtcMs after)>;

// Reads a cron expression for a zone. Throws std::invalid_argument, with one line that says what is
// wrong, where, and what is allowed.
using Calendar = std::function<Timetable(const std::string& cron, const std::string& zone)>;

// Something that the owner of a schedule should know.
struct ScheduleEvent {
  enum class What : std::uint8_t {
    // Skipped occurrences:
    kMissed,      // `count` from `occurrence` on; if it is kMostCounted, perhaps more
    kOverlap,     // the job before is still there
    kPaused,      // as kMissed, when the schedule is resumed
    kInGap,       // the zone's clocks have skipped the time of day
    kShownTwice,  // the time of day comes twice; it has fired the first time, and will not again
    kBroken,      // the expression or zone cannot be read any more: `why`
  };
  // Skipped occurrences are counted up to here.
  static constexpr std::uint64_t kMostCounted = 1'000;

  What what = What::kMissed;
  std::string name;
  UtcMs occurrence = 0;
  std::uint64_t count = 1;
  std::string why = {};
};

// A schedule as a client gets to see it.
struct ScheduleView {
  ScheduleRecord record;
  // The next occurrences, as many as were asked for. Empty if it is paused or broken.
  std::vector<UtcMs> next;
  // Why the expression or zone cannot be read any more, or an empty string.
  std::string broken;
};

}  // namespace carillon::queue
