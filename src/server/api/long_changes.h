// Changes of many jobs for which no client waits. Each goes on in the turns of the event loop.
// Clients ask for its progress by its number.
//
//   const std::uint64_t id = operations.begin(bulk, now);
//   while (operations.has_work()) operations.work(now());        // a step: see Engine::change_jobs
//   tell(*operations.find(id));
//
// The numbers do not survive the process. Jobs that were changed stay changed; a client may ask for
// the rest again, from where the change was (`bulk.list.next`).
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
  queue::UtcMs ended = 0;  // 0: it still runs
  bool stopped = false;    // a client has stopped it before its end
  std::string error = {};  // why it has failed before its end
};

class LongChanges {
 public:
  // At most kMost changes run at once; the last kMostKept that have ended are kept.
  static constexpr std::size_t kMost = 16;
  static constexpr std::size_t kMostKept = 1'000;

  explicit LongChanges(queue::Engine& engine) : engine_(engine) {}

  // Returns the number of the change. REQUIRES: not are_full().
  std::uint64_t begin(queue::JobBulk bulk, queue::Now now);
  // Returns null if there is no such change, or if it was forgotten.
  const LongChange* find(std::uint64_t id) const;
  // Does nothing if the change has ended.
  void stop(std::uint64_t id, queue::Now now);

  bool are_full() const { return running_.size() == kMost; }
  bool has_work() const { return !running_.empty(); }
  // Does a step of one change; the changes take turns. REQUIRES: has_work().
  void work(queue::Now now);

 private:
  void end(std::uint64_t id, queue::Now now);

  queue::Engine& engine_;
  std::map<std::uint64_t, LongChange> all_;
  std::deque<std::uint64_t> running_;  // the first one is next
  std::deque<std::uint64_t> ended_;    // the first one is forgotten first
  std::uint64_t last_ = 0;
};

}  // namespace carillon::server
