// DiskStore while RocksDB's compaction is far behind, or cannot go on.

#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "queue/numbered_jobs.h"
#include "queue/second_self.h"
#include "queue/store/state/state_options.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {

namespace {

constexpr DiskStoreOptions kOptions{
    .recent = 64 << 10, .log_bytes = 4 << 20, .log_segment_bytes = 64 << 10};

// RocksDB, with the files of a store, without the store.
class Files {
 public:
  explicit Files(const std::string& path) {
    auto families = state_families(kOptions);
    for (auto& family : families) family.options.disable_auto_compactions = true;
    rocksdb::DB* opened = nullptr;
    const auto status =
        rocksdb::DB::Open(state_options(kOptions), path, families, &families_, &opened);
    EXPECT_TRUE(status.ok()) << status.ToString();
    database_.reset(opened);
  }
  ~Files() {
    for (auto* family : families_) EXPECT_TRUE(database_->DestroyColumnFamilyHandle(family).ok());
    EXPECT_TRUE(database_->Close().ok());
  }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  // Writes a file, with keys that no store has and that overlap those of the other files.
  void add(int number) {
    for (const char* key : {"\x01", "\xff"}) {
      rocksdb::WriteOptions write;
      write.disableWAL = true;
      write.no_slowdown = true;
      const auto status =
          database_->Put(write, families_[kIndex], key + std::to_string(number), "value");
      ASSERT_TRUE(status.ok()) << status.ToString() << ", with " << number << " files";
    }
    ASSERT_TRUE(database_->Flush({}, families_).ok());
  }

  std::string largest_of(const std::string& family) {
    std::vector<rocksdb::LiveFileMetaData> files;
    database_->GetLiveFilesMetaData(&files);
    std::erase_if(files, [&](const auto& file) { return file.column_family_name != family; });
    const auto largest = std::max_element(
        files.begin(), files.end(), [](const auto& a, const auto& b) { return a.size < b.size; });
    return largest->name;
  }

 private:
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
  std::unique_ptr<rocksdb::DB> database_;
};

// Jobs in no order of their due times, so that all files of the index overlap.
void put_anywhere(Store& store, JobId id) {
  JobRecord record = job(id);
  record.due = 1'000 + id * 2'654'435'761 % 100'000'000;
  const std::string body = body_of(id, 1'000);
  store.append({.jobs = {{{}, record, body}}, .tubes = {{1, "default", id, 0}}, .watermarks = {}});
}

}  // namespace

// A start applies what the log has beyond the files, and must not wait for compaction, which would
// begin anew with each start.
TEST(CompactionBehind, KeepsNeitherAWriteNorAStartWaiting) {
  if (SecondSelf::is_this()) {
    DiskStore store(SecondSelf::argument() + "/data", {});
    for (JobId id = 1; id <= 100; ++id) put_anywhere(store, id);
    store.sync();
    ::_exit(0);
  }
  const TemporaryDirectory directory;
  ASSERT_EQ(SecondSelf(directory.path()).wait(), 0);
  {
    Files files(directory / "data");
    for (int n = 1; n <= 120; ++n) ASSERT_NO_FATAL_FAILURE(files.add(n));
  }
  DiskStore store(directory / "data", kOptions);
  for (JobId id = 101; id <= 300; ++id) put_anywhere(store, id);
  EXPECT_EQ(store.recover().tubes.at(0).scheduled, 300U);
}

// The files of the index grow in number then, until reads would be slow. Before that happens, the
// next change is refused, and the error says why.
TEST(CompactionBehind, ByDamageRefusesChangesInTheEndAndNamesIt) {
  const TemporaryDirectory directory;
  JobId id = 0;
  {
    DiskStore store(directory / "data", kOptions);
    while (id < 400) put_anywhere(store, ++id);
  }
  const std::string damaged = directory / "data" + Files(directory / "data").largest_of("index");
  {
    std::fstream file(damaged, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(damaged) / 3));
    file << "damage!!";
  }
  DiskStore store(directory / "data", kOptions);
  std::string complained;
  while (complained.empty() && id < 60'000)
    complained = complaint([&] { put_anywhere(store, ++id); });
  EXPECT_TRUE(contains(complained, "cannot be compacted: Corruption")) << complained << id;
  EXPECT_EQ(store.failure(), "");
  EXPECT_EQ(store.body(id - 1), body_of(id - 1, 1'000));
}

}  // namespace carillon::queue
