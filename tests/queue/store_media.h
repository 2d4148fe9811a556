// The stores that one test suite runs over, as media that can be closed and opened again, and the
// jobs that these tests put.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "carillon/queue/memory_store.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {

// Makes failures readable.
inline void PrintTo(const JobRecord& job, std::ostream* out) {
  *out << "job " << job.id << " of tube " << job.tube << " due " << job.due << " burial "
       << job.burial << " priority " << job.priority;
}

// So small that a random test makes the state flush its files, and the log change its segments,
// many times.
inline constexpr DiskStoreOptions kSmallDisk{.recent = 512 << 10,
                                             .read_cache = 1 << 20,
                                             .large_body = 1 << 10,
                                             .log_bytes = 512 << 10,
                                             .log_segment_bytes = 64 << 10};

struct InMemory {
  MemoryStore store;
  void reopen() {}
};

struct OnDisk {
  DiskStoreOptions options = kSmallDisk;
  TemporaryDirectory directory;
  std::unique_ptr<DiskStore> opened;

  explicit OnDisk(bool durable_writes = true) {
    options.durable_writes = durable_writes;
    reopen();
  }
  void reopen() {
    opened.reset();
    opened = std::make_unique<DiskStore>(directory / "data", options);
  }
};

// As under `--sync os`.
struct OnDiskBuffered : OnDisk {
  OnDiskBuffered() : OnDisk(false) {}
};

inline Store& store_of(InMemory& medium) {
  return medium.store;
}
inline Store& store_of(OnDisk& medium) {
  return *medium.opened;
}

inline JobRecord job(JobId id, std::uint32_t tube, UtcMs due) {
  return {.id = id,
          .tube = tube,
          .priority = 100,
          .due = due,
          .ttr = 60'000,
          .created = 1'000,
          .history = {}};
}

inline JobRecord buried(JobRecord job, std::uint64_t burial) {
  job.burial = burial;
  return job;
}

inline std::vector<JobId> ids(const std::vector<JobRecord>& jobs) {
  std::vector<JobId> ids;
  for (const JobRecord& job : jobs) ids.push_back(job.id);
  return ids;
}

using Ids = std::vector<JobId>;

using Media = testing::Types<InMemory, OnDisk, OnDiskBuffered>;

}  // namespace carillon::queue
