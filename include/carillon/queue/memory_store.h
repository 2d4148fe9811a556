// A Store in memory: for queues that may be lost with their process, for tests, and for
// simulations.
//
//   MemoryStore store;
//   Engine engine(store, {}, now);      // later another Engine may take up the same store, as after a restart
//
// Nothing is ever written to a disk, so all that is appended is as durable as it will ever be:
// `sync` has nothing to wait for, and neither verb ever fails for want of a medium.
//
// Cost: a put or an erase is a hash look-up and a step at one end of its tube's order when jobs
// come and go about in the order of their due times, O(log jobs of the tube) otherwise. Memory:
// about 260 bytes a job beside its body.
//
// Thread safety: as for every Store.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "carillon/queue/store.h"

namespace carillon::queue {

class MemoryStore : public Store {
 public:
  Sequence append(const Changes& changes) override;
  Sequence sync() override { return appended_.load(std::memory_order_acquire); }

  Recovered recover() const override;
  std::optional<JobRecord> find(JobId id) const override;
  std::string body(JobId id) const override;
  std::vector<JobRecord> scan_due(std::uint32_t tube, DueKey from,
                                  std::size_t limit) const override;
  std::vector<JobRecord> scan_buried(std::uint32_t tube, std::uint64_t from,
                                     std::size_t limit) const override;

  std::size_t size() const { return jobs_.size(); }  // jobs

 private:
  struct Job;
  // Points into jobs_, whose elements stay where they are.
  using ByDue = std::map<DueKey, const Job*>;
  using ByBurial = std::map<std::uint64_t, const Job*>;

  struct Job {
    JobRecord record;
    std::string body;
    ByDue::iterator due;        // its place in its tube, unless it is buried
    ByBurial::iterator burial;  // if it is
  };

  struct Tube {
    ByDue due;
    ByBurial buried;
  };

  void put(const JobChange& change);
  void erase(JobId id);
  void move(const JobRecord& after);
  void enter(Job& job);
  void leave(const Job& job);

  std::unordered_map<JobId, Job> jobs_;
  std::unordered_map<std::uint32_t, Tube> tubes_;  // those that hold jobs
  std::unordered_map<std::uint32_t, TubeRecord> tube_records_;
  Watermarks watermarks_;
  std::atomic<Sequence> appended_ = 0;  // read by `sync`, perhaps in another thread
};

}  // namespace carillon::queue
