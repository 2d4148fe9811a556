// What a job is, in the words of beanstalkd: its identity, its states, and the record of it that a
// store keeps.
//
// A *job* lives in a *tube* and is delayed, ready, reserved or buried. A worker reserves it for its
// *ttr* (time to run), and then deletes it, releases it (perhaps with a delay) or buries it.
#pragma once

#include <cstdint>

namespace carillon::queue {

// Names a job for ever: ids rise from 1 and are never given twice, not even after the job is gone
// and the server restarted.
using JobId = std::uint64_t;

// The smaller, the more urgent. Jobs of one tube go out by (priority, id).
using Priority = std::uint32_t;

// A duration in milliseconds.
using Millis = std::uint64_t;

// A moment: milliseconds since 1970-01-01T00:00:00Z.
using UtcMs = std::uint64_t;

// The last moment a job may be due: 9999-12-31T23:59:59.999Z, the last one that RFC 3339 can write.
// Beyond it a delay is refused.
inline constexpr UtcMs kLastDue = 253'402'300'799'999;

// No job runs for less: a smaller ttr becomes this. In the last second of it the job's holder hears
// DEADLINE_SOON.
inline constexpr Millis kMinTtr = 1'000;
// Nor for more: 2^32 - 1 seconds, beanstalkd's limit.
inline constexpr Millis kMaxTtr = 4'294'967'295'000;
inline constexpr Millis kSafetyMargin = 1'000;

// Ready jobs of a smaller priority than this count as urgent.
inline constexpr Priority kUrgentBelow = 1'024;

enum class JobState : std::uint8_t { kDelayed, kReady, kReserved, kBuried };

// How often each thing happened to a job. Reserving and timing out are not writes, so after a crash
// these two may be behind.
struct JobHistory {
  std::uint32_t reserves = 0;
  std::uint32_t timeouts = 0;
  std::uint32_t releases = 0;
  std::uint32_t buries = 0;
  std::uint32_t kicks = 0;

  friend bool operator==(const JobHistory&, const JobHistory&) = default;
};

// All that is stored of a job but its body. Whether it is ready is not stored: a job that is not
// buried and whose due time has passed *is* ready, so that becoming ready costs no write. Nor is a
// reservation: it ends with the server that gave it.
struct JobRecord {
  JobId id = 0;
  std::uint32_t tube = 0;  // number of its TubeRecord
  Priority priority = 0;
  UtcMs due = 0;             // the moment it is ready, or has been since
  std::uint64_t burial = 0;  // its place in the tube's order of burials, from 1; 0: not buried
  Millis ttr = kMinTtr;
  Millis delay = 0;  // as last asked for, by put or release
  UtcMs created = 0;
  std::uint32_t body_bytes = 0;
  JobHistory history;

  bool buried() const { return burial != 0; }

  friend bool operator==(const JobRecord&, const JobRecord&) = default;
};

}  // namespace carillon::queue
