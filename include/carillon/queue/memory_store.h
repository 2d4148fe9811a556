// A Store in memory: for queues that may be lost with their process, for tests, and for
// simulations.
//
//   MemoryStore store;
//   Engine engine(store, {}, now);
//   ... later another Engine may take over the same store, as after a restart.
//
// Nothing is written to a disk. So an append is as durable as it will ever be when it returns;
// `sync` does nothing, and neither of them throws StoreError. A read throws only StoreDamage, for a
// body of a job that does not exist. If memory runs out in an append (std::bad_alloc), a part of
// the change may be applied: the queue is lost then, as it is with its process.
//
// Complexity: a put is one hash look-up and one insertion into the tube's order: O(1) if the job is
// due after all others of its tube, else O(log jobs of the tube). A deletion is O(1). Memory: about
// 260 bytes a job, and its body.
//
// Thread safety: as for every Store (store.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "carillon/queue/detail/split_table.h"
#include "carillon/queue/store.h"

namespace carillon::queue {

class MemoryStore : public Store {
 public:
  Sequence append(const Changes& changes) override;
  Sequence sync() override { return appended_.load(std::memory_order_acquire); }
  void write() override {}
  std::string failure() const override { return {}; }

  Recovered recover() const override;
  std::optional<JobRecord> find(JobId id) const override;
  std::string body(JobId id, std::uint32_t piece = 0) const override;
  std::vector<JobRecord> scan_due(std::uint32_t tube, DueKey from,
                                  std::size_t limit) const override;
  std::vector<JobRecord> scan_buried(std::uint32_t tube, std::uint64_t from,
                                     std::size_t limit) const override;
  std::optional<KeyRecord> find_key(std::uint32_t tube, std::string_view key) const override;
  std::vector<KeyRecord> scan_ended_keys(UtcMs from, std::size_t limit) const override;
  std::vector<Attempt> story(JobId id) const override;

  // Returns the number of jobs.
  std::size_t size() const { return jobs_.size(); }
  // Returns about how many bytes of memory they take. O(1).
  std::size_t bytes() const { return body_bytes_ + jobs_.size() * kJobBytes; }

 private:
  static constexpr std::size_t kJobBytes = 260;

  struct Job;
  // These point into jobs_, whose elements never move.
  using ByDue = std::map<DueKey, const Job*>;
  using ByBurial = std::map<std::uint64_t, const Job*>;

  struct Job {
    JobRecord record;
    std::string body;
    // The job's entry in one of its tube's two orders: `burial` if it is buried, else `due`.
    ByDue::iterator due;
    ByBurial::iterator burial;
  };

  struct Tube {
    ByDue due;
    ByBurial buried;
  };

  void put(const JobChange& change);
  void erase(JobId id);
  void erase_large_body(JobId id);
  void move(const JobChange& change);
  void set_body(Job& job, std::string_view body);
  void erase_body(Job& job);
  const Job* job_with_body(JobId id) const;
  void apply(const KeyChange& change);
  void enter(Job& job);
  void leave(const Job& job);

  template <class Key, class Value>
  using Table = detail::SplitTable<std::unordered_map<Key, Value>>;

  Table<JobId, Job> jobs_;
  Table<std::uint32_t, Tube> tubes_;  // only those that have jobs
  Table<std::uint32_t, TubeRecord> tube_records_;
  Watermarks watermarks_;
  std::map<std::pair<std::uint32_t, std::string>, KeyRecord, std::less<>> keys_;
  std::set<std::tuple<UtcMs, std::uint32_t, std::string>> ended_keys_;
  std::unordered_map<JobId, std::vector<Attempt>> stories_;
  std::unordered_map<JobId, LeaseRecord> leases_;
  std::unordered_map<std::string, ScheduleRecord> schedules_;
  Endpoints endpoints_;
  // Jobs by JobRecord::body_id(), if that is not their own id.
  std::unordered_map<JobId, JobId> other_bodies_;
  std::size_t body_bytes_ = 0;
  // The pieces of bodies that came in pieces. Each is a string of its own, because one string would
  // take up to twice the memory while it grows, and be copied as a whole now and then.
  std::unordered_map<JobId, std::vector<std::string>> large_bodies_;
  std::unordered_map<JobId, std::uint32_t> unfinished_;  // bodies without a job yet: their bytes
  std::atomic<Sequence> appended_ = 0;  // `sync` reads it, perhaps in another thread
};

}  // namespace carillon::queue
