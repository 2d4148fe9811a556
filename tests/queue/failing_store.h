// FailingStore: a store in memory that fails while a test wants it, and counts changes.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "carillon/queue/memory_store.h"

namespace carillon::queue {

class FailingStore : public MemoryStore {
 public:
  // What fails now.
  struct Faults {
    bool appends = false;
    bool records = false;    // the reads of them
    bool no_buried = false;  // the buried jobs are lost, but not their count
    JobId story = 0;         // the story of this job is damaged
    JobId record = 0;        // so is the record of this one: scans go around it
  };
  Faults faults;
  // How many jobs all appends have changed.
  std::size_t changed = 0;
  // How often the engine has searched for records.
  mutable std::size_t looks = 0;

  Sequence append(const Changes& changes) override {
    if (faults.appends) throw StoreError("no space left on device");
    changed += changes.jobs.size();
    return MemoryStore::append(changes);
  }
  std::optional<JobRecord> find(JobId id) const override {
    refuse_records();
    if (faults.record != 0 && faults.record == id) throw StoreDamage("the record is damaged");
    return MemoryStore::find(id);
  }
  std::vector<JobRecord> scan_due(std::uint32_t tube, DueKey from,
                                  std::size_t limit) const override {
    refuse_records();
    std::vector<JobRecord> found = MemoryStore::scan_due(tube, from, limit);
    std::erase_if(found, [this](const JobRecord& job) { return job.id == faults.record; });
    return found;
  }
  std::vector<JobRecord> scan_buried(std::uint32_t tube, std::uint64_t from,
                                     std::size_t limit) const override {
    refuse_records();
    if (faults.no_buried) return {};
    return MemoryStore::scan_buried(tube, from, limit);
  }
  std::optional<KeyRecord> find_key(std::uint32_t tube, std::string_view key) const override {
    refuse_records();
    return MemoryStore::find_key(tube, key);
  }
  std::vector<KeyRecord> scan_ended_keys(UtcMs from, std::size_t limit) const override {
    refuse_records();
    return MemoryStore::scan_ended_keys(from, limit);
  }
  std::vector<Attempt> story(JobId id) const override {
    refuse_records();
    if (faults.story == id) throw StoreDamage("the story is damaged");
    return MemoryStore::story(id);
  }

 private:
  void refuse_records() const {
    ++looks;
    if (faults.records) throw StoreError("input/output error");
  }
};

}  // namespace carillon::queue
