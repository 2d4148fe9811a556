// BodyReader: reads bodies, and reads ahead.
//
//   BodyReader bodies(state);
//   std::optional<std::string> body = bodies.at_hand(7);   // without a wait for the disk
//   if (!body) body = bodies.read(7);                      // in any thread
//   ...
//   bodies.put(8);                                         // body 8 was put
//
// Jobs mostly go out in the order of their ids, and bodies are stored in that order. A look-up
// searches the memtables and several files. Going on to the next body is a small step. So when the
// ids that are asked for follow each other closely, up to 64 bodies are read at once, and kept
// until they are asked for.
//
// Workers of several tubes take jobs from several places at once. So the reader follows up to 8
// *runs* of ids. While read() reads on in one of them, at_hand() returns none for the ids that come
// next.
//
// The body under an id never changes, and no id is given twice. So a body that was read ahead stays
// right for as long as there is its job.
//
// Memory: at most 128 KiB for each run. Thread safety: one thread calls at_hand() and put(), one
// other may call read() at the same time.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "carillon/queue/store.h"
#include "queue/store/state/rocks_state.h"

namespace carillon::queue {

class BodyReader {
 public:
  // `state` must outlive the reader.
  explicit BodyReader(const RocksState& state) : state_(state) {}

  // Throws StoreDamage if there is no such body, and StoreError if the state cannot be read.
  std::string read(JobId id, std::uint32_t piece = 0);

  // Returns none if it would have to wait for the disk. Throws as read().
  std::optional<std::string> at_hand(JobId id, std::uint32_t piece = 0);

  // A body with this id has been put.
  void put(JobId id) {
    newest_.store(std::max(id, newest_.load(std::memory_order_relaxed)), std::memory_order_relaxed);
  }

 private:
  using Bodies = std::deque<std::pair<JobId, std::string>>;  // by id

  struct Run {
    JobId last = 0;
    std::size_t reach = 1;   // how many bodies the next read takes; doubled by each read
    std::uint64_t used = 0;  // when it was last used: the run that was used longest ago makes room
    Bodies ahead;            // read and not asked for yet
    bool reading = false;    // read() reads what comes after `last`
  };

  Run* continued_by(JobId id);
  Run& oldest();
  Run& move_on(Run* run, JobId id);
  static std::optional<std::string> take(Run& run, JobId id);
  std::optional<std::string> look_up(JobId id, std::uint32_t piece) const;
  std::size_t worth_reading(const Run& run, JobId from) const;
  Bodies read_on(JobId from, std::size_t most) const;

  const RocksState& state_;
  std::atomic<JobId> newest_ = 0;  // the last one put since the store was opened; 0: none
  std::mutex mutex_;
  // Protected by mutex_:
  std::array<Run, 8> runs_;
  std::uint64_t reads_ = 0;
};

}  // namespace carillon::queue
