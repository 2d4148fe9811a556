// A merge of iterators, one for each table and one for the memory (tables_apart.h).

#include "queue/store/damage/tables_apart.h"

#include <rocksdb/cache.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "queue/store/damage/around_damage.h"

namespace carillon::queue {

namespace {

using rocksdb::Slice;
using rocksdb::Status;

rocksdb::Options reader_options() {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(1 << 20);
  table.cache_index_and_filter_blocks = true;
  rocksdb::Options options;
  options.env = state_environment();
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

}  // namespace

struct TablesApart::Table {
  Table() : reader(reader_options()) {}

  rocksdb::SstFileReader reader;
  bool is_open = false;
  DamageList damages;
};

// Forward only.
class TablesApart::Merge final : public rocksdb::Iterator {
 public:
  explicit Merge(std::string_view to) : to_(to) {}

  // If two have the same key, the one that was added first counts.
  void add(std::unique_ptr<rocksdb::Iterator> at, std::shared_ptr<Table> table) {
    parts_.push_back({std::move(table), std::move(at)});
  }
  void fail(const Status& status) { status_ = status; }

  bool Valid() const override { return least_ != nullptr; }
  Slice key() const override { return least_->key(); }
  Slice value() const override { return least_->value(); }
  Status status() const override { return status_; }
  void Seek(const Slice& target) override {
    for (Part& part : parts_) part.at->Seek(target);
    find_least();
  }
  void Next() override {
    const std::string passed = key().ToString();
    for (Part& part : parts_) {
      if (part.at->Valid() && view(part.at->key()) == passed) part.at->Next();
    }
    find_least();
  }
  void SeekToFirst() override { Seek(""); }
  void SeekToLast() override { assert(false); }
  void SeekForPrev(const Slice&) override { assert(false); }
  void Prev() override { assert(false); }

 private:
  struct Part {
    std::shared_ptr<Table> table;  // outlives its iterator; none of the memory
    std::unique_ptr<rocksdb::Iterator> at;
  };

  void find_least() {
    least_ = nullptr;
    for (const Part& part : parts_) {
      if (status_.ok()) status_ = part.at->status();
      if (!part.at->Valid() || view(part.at->key()) >= to_) continue;
      if (least_ == nullptr || view(part.at->key()) < view(least_->key())) least_ = part.at.get();
    }
    if (!status_.ok()) least_ = nullptr;
  }

  const std::string to_;
  std::vector<Part> parts_;
  rocksdb::Iterator* least_ = nullptr;
  Status status_;
};

TablesApart::TablesApart() = default;
TablesApart::~TablesApart() = default;

// The memory comes first: what is written to a table meanwhile is in both. A table that is gone
// before it is opened was merged into others.
std::unique_ptr<rocksdb::Iterator> TablesApart::scan(rocksdb::DB& database,
                                                     rocksdb::ColumnFamilyHandle* handle,
                                                     Family family, std::string_view from,
                                                     std::string_view to) {
  constexpr int kTries = 10;
  std::unique_ptr<Merge> merge;
  Status status;
  for (int i = 0; i < kTries; ++i) {
    merge = std::make_unique<Merge>(to);
    rocksdb::ReadOptions in_memory;
    in_memory.read_tier = rocksdb::kMemtableTier;
    in_memory.ignore_range_deletions = true;
    merge->add(std::unique_ptr<rocksdb::Iterator>(database.NewIterator(in_memory, handle)), {});
    rocksdb::ColumnFamilyMetaData files;
    database.GetColumnFamilyMetaData(handle, &files);
    status = add_tables(files, family, from, to, *merge);
    if (!status.IsPathNotFound()) break;
  }
  if (!status.ok()) merge->fail(status);
  merge->Seek(slice(from));
  return merge;
}

// The files of level 0 overlap, and come in the order of their age; each other level is older than
// the one before.
Status TablesApart::add_tables(const rocksdb::ColumnFamilyMetaData& files, Family family,
                               std::string_view from, std::string_view to, Merge& merge) {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::shared_ptr<Table>> needed;
  for (const rocksdb::LevelMetaData& level : files.levels) {
    std::vector<rocksdb::SstFileMetaData> of_level = level.files;
    std::sort(of_level.begin(), of_level.end(), [](const auto& left, const auto& right) {
      return left.largest_seqno > right.largest_seqno;
    });
    for (const rocksdb::SstFileMetaData& file : of_level) {
      if (file.largestkey < from || file.smallestkey >= to) continue;
      const std::string path = file.directory + "/" + file.relative_filename;
      Status status;
      const std::shared_ptr<Table> table = open(path, status);
      if (!status.ok()) return status;
      needed[path] = table;
      if (!table->is_open) continue;
      const auto make = [reader = &table->reader] {
        rocksdb::ReadOptions reading;
        reading.ignore_range_deletions = true;
        return std::unique_ptr<rocksdb::Iterator>(reader->NewIterator(reading));
      };
      merge.add(std::make_unique<AroundDamage>(family, make, table->damages), table);
    }
  }
  tables_ = std::move(needed);
  return Status::OK();
}

std::shared_ptr<TablesApart::Table> TablesApart::open(const std::string& path, Status& status) {
  if (const auto known = tables_.find(path); known != tables_.end()) return known->second;
  auto table = std::make_shared<Table>();
  const Status opened = table->reader.Open(path);
  table->is_open = opened.ok();
  if (!opened.IsCorruption()) status = opened;
  return table;
}

}  // namespace carillon::queue
