// FailingStore: a store in memory that fails while a test wants it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "carillon/queue/memory_store.h"

namespace carillon::queue {

class FailingStore : public MemoryStore {
 public:
  // What fails now.
  struct Faults {
    bool appends = false;
    bool records = false;  // the reads of them
    // If not 0: the bodies of all jobs whose id is a multiple of it.
    std::uint64_t bodies = 0;

    bool body(JobId id) const { return bodies != 0 && id % bodies == 0; }
  };
  Faults faults;
  // The jobs whose bodies are damaged.
  std::set<JobId> damaged;

  Sequence append(const Changes& changes) override {
    if (faults.appends) throw StoreError("no space left on device");
    return MemoryStore::append(changes);
  }
  std::optional<JobRecord> find(JobId id) const override {
    refuse_records();
    return MemoryStore::find(id);
  }
  std::string body(JobId id) const override {
    if (damaged.contains(id)) throw StoreDamage("checksum mismatch");
    if (faults.body(id)) throw StoreError("input/output error");
    return MemoryStore::body(id);
  }
  std::vector<JobRecord> scan_due(std::uint32_t tube, DueKey from,
                                  std::size_t limit) const override {
    refuse_records();
    return MemoryStore::scan_due(tube, from, limit);
  }
  std::vector<JobRecord> scan_buried(std::uint32_t tube, std::uint64_t from,
                                     std::size_t limit) const override {
    refuse_records();
    return MemoryStore::scan_buried(tube, from, limit);
  }

 private:
  void refuse_records() const {
    if (faults.records) throw StoreError("input/output error");
  }
};

}  // namespace carillon::queue
