// Changes of many jobs that nobody waits for: each goes on in the turns of the event loop, and
// whoever has its number may ask how far it is.
//
//   const std::uint64_t id = operations.begin(bulk, now);
//   while (operations.has_work()) operations.work(now());        // a step: see Engine::change_jobs
//   tell(*operations.find(id));
//
// LongChanges hold as long as the process. What was changed is durable; the rest of an operation
// that a restart has ended is asked for again, from where it was (`bulk.list.next`).
//
// Thread safety: none; they belong to the thread that owns the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "carillon/queue/engine.h"
#include "carillon/queue/job_bulk.h"

namespace carillon::server {

struct LongChange {
  queue::JobBulk bulk;
  queue::UtcMs began = 0;
  queue::UtcMs ended = 0;  // 0: it goes on
  bool stopped = false;    // before its end, because somebody has asked for that
  std::string error = {};  // why it has ended before its end
};

class LongChanges {
 public:
  // At most so many go on at once; and so many that have ended are kept.
  static constexpr std::size_t kMost = 16;
  static constexpr std::size_t kMostKept = 1'000;

  explicit LongChanges(queue::Engine& engine) : engine_(engine) {}

  // Returns its number. REQUIRES: not are_full().
  std::uint64_t begin(queue::JobBulk bulk, queue::Now now);
  // Null: there is none, or it was forgotten.
  const LongChange* find(std::uint64_t id) const;
  // Does nothing if it has ended.
  void stop(std::uint64_t id, queue::Now now);

  bool are_full() const { return running_.size() == kMost; }
  bool has_work() const { return !running_.empty(); }
  // Goes on with one of them: they take turns. REQUIRES: has_work().
  void work(queue::Now now);

 private:
  void end(std::uint64_t id, queue::Now now);

  queue::Engine& engine_;
  std::map<std::uint64_t, LongChange> all_;
  std::deque<std::uint64_t> running_;  // the first one is next
  std::deque<std::uint64_t> ended_;    // the first one goes first
  std::uint64_t last_ = 0;
};

}  // namespace carillon::server
