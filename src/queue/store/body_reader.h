// BodyReader: reads bodies, and several that come next at once.
//
//   BodyReader bodies(state);
//   std::string body = bodies.read(7);
//   ...
//   bodies.changed(change);           // after each change of a job
//
// Jobs mostly go out in the order of their ids, and bodies are stored in that order. To look one up
// takes a search in the memtables and in several files. To go on to the next one is a small step.
// So when the ids that are asked for follow each other closely, up to 64 bodies are read at once,
// and kept until they are asked for.
//
// Workers of several tubes take jobs in as many orders at once. So up to 8 *runs* of ids are
// followed.
//
// A body never changes, and no id is given twice. So a body that was read ahead stays right until
// its job is deleted.
//
// Memory: at most 128 KiB for each run. Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "carillon/queue/store.h"
#include "queue/store/rocks_state.h"

namespace carillon::queue {

class BodyReader {
 public:
  // `state` must outlive the reader.
  explicit BodyReader(const RocksState& state) : state_(state) {}

  // Throws StoreDamage if there is no such body, and StoreError if the state cannot be read.
  std::string read(JobId id);

  // The state has been changed.
  void changed(const JobChange& change);

 private:
  struct Run {
    JobId last = 0;
    std::size_t reach = 1;   // doubled by each read; so many bodies are worth reading at once
    std::uint64_t used = 0;  // when it was: of the runs, the one used longest ago makes room
    // Read ahead and not asked for yet, by id.
    std::deque<std::pair<JobId, std::string>> ahead;
  };

  Run& run_of(JobId id);
  void read_ahead(Run& run, JobId from);

  const RocksState& state_;
  std::array<Run, 8> runs_;
  std::uint64_t reads_ = 0;
  JobId newest_ = 0;  // that was put since the store was opened; 0: none was
};

}  // namespace carillon::queue
