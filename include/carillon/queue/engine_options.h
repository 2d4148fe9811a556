// Limits for an engine's memory and for the work of one call, and functions that it asks.
//
//   EngineOptions options{.load_ahead = 10'000, .max_tubes = 100'000};
//   Engine engine(store, options, now);
//
// Thread safety: plain values. The engine calls the functions from the thread that calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "carillon/queue/job.h"
#include "carillon/queue/schedule.h"

namespace carillon::queue {

struct EngineOptions {
  // Milliseconds, at most kLastDue. A job that is due within this time is loaded into memory.
  Millis load_ahead = 60'000;
  // The most ready and delayed jobs of one tube, and of all tubes, that are in memory, about. A
  // tube may have as many as are free, and one in any case. So a single tube has half of
  // max_loaded, and the more tubes have many jobs, the fewer each of them has. At least 1.
  std::size_t max_loaded_per_tube = 1'000'000;
  std::size_t max_loaded = SIZE_MAX;
  // The most jobs that are reserved, about. A client may have as many as are free, and one in any
  // case; if it has more, its `reserve` waits as if no job were ready.
  std::size_t max_reserved = SIZE_MAX;
  // While this returns true, a tube that has a ready or delayed job in memory loads no more: not
  // when jobs are near, nor by a kick, nor after a step of the wall clock. It must not throw.
  // Empty: memory is never short.
  std::function<bool()> memory_is_short = {};
  // The most tubes that may exist, apart from those that have jobs at a start. Twelve watches count
  // as a tube; but a client may watch 16 tubes that exist in any case.
  std::size_t max_tubes = SIZE_MAX;
  // Reads the cron expressions of schedules. Empty: schedules cannot have cron expressions. See
  // queue/schedule.h.
  Calendar calendar = {};
  // While this returns true, no schedule puts a job: occurrences that come meanwhile are decided
  // later, as missed ones. It must not throw. Empty: always false.
  std::function<bool()> refuses_puts = {};
  // The most bytes that all schedules may take together: each counts its name, texts and body, and
  // 1 KiB.
  std::size_t max_schedule_bytes = 100 << 20;
  // One call of `advance` makes at most this many delayed jobs ready, fires at most this many
  // timers of each kind, and loads at most this many jobs. A command does at most 64 of each. At
  // most 16 schedules fire in one call. At least 1.
  std::size_t step = 200;
  // Names the boot of the machine: as long as it is the same, the monotonic clock goes on from one
  // engine of a store to the next one. Linux has it in /proc/sys/kernel/random/boot_id. Empty: each
  // engine counts as a new boot.
  std::string boot = {};
};

}  // namespace carillon::queue
