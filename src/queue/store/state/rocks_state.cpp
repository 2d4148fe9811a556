// Opening, applying, flushing and reading the state.

#include "queue/store/state/rocks_state.h"

#include <rocksdb/iterator.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "carillon/require.h"
#include "queue/store/format_version.h"
#include "queue/store/log/change_codec.h"
#include "queue/store/log/local_log.h"
#include "queue/store/state/checkpoint.h"
#include "queue/store/state/no_wait_files.h"
#include "queue/store/state/perf_counters.h"
#include "queue/store/state/warnings_log.h"
#include "queue/store/state/written_files.h"

namespace carillon::queue {

using rocksdb::Slice;
using rocksdb::Status;
using rocksdb::WriteBatch;

namespace {

rocksdb::WriteOptions without_log() {
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  return options;
}

template <typename Plain>
std::string_view raw_bytes(const Plain& plain) {
  static_assert(std::has_unique_object_representations_v<Plain>);
  return {reinterpret_cast<const char*>(&plain), sizeof plain};
}

std::optional<std::uint64_t> number_of(const std::optional<std::string>& bytes) {
  std::uint64_t number = 0;
  if (!bytes || bytes->size() != sizeof number) return std::nullopt;
  std::memcpy(&number, bytes->data(), sizeof number);
  return number;
}

}  // namespace

RocksState::RocksState(const std::string& path, const DiskStoreOptions& options)
    : RocksState(path, options, LocalLogs({})) {}

RocksState::RocksState(const std::string& path, const DiskStoreOptions& options,
                       const LogSource& logs)
    : directory_(path), troubles_(std::make_shared<RocksTroubles>()) {
  remove_left_checkpoints(files().held_path());
  open(options);
  check_format(logs);
  check_bodies();
  const auto identity = number_of(get(kMeta, kIdentityKey));
  if (!identity) throw StoreError(message("is damaged: its identity is missing"));
  identity_ = *identity;
  flushed_ = position_in_files();
  number_ = flushed_.number;
}

RocksState::~RocksState() {
  if (opened_.database) troubles_->await_resume(database());
}

RocksState::Opened::~Opened() {
  if (!database) return;
  for (rocksdb::ColumnFamilyHandle* family : families) {
    if (family != nullptr) database->DestroyColumnFamilyHandle(family).PermitUncheckedError();
  }
  database->Close().PermitUncheckedError();
}

void RocksState::open(const DiskStoreOptions& options) {
  rocksdb::DBOptions database_options = state_options(options);
  database_options.info_log = std::make_shared<WarningsLog>(files());
  database_options.listeners = {troubles_};
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  const Status status = rocksdb::DB::Open(database_options, files().held_path(),
                                          state_families(options), &handles, &opened);
  // The message names the families. Nothing was changed.
  if (status.IsInvalidArgument()) {
    throw error("was made by a newer version of Carillon, or by another program", status);
  }
  if (!status.ok()) throw cannot_open(status);
  opened_.database.reset(opened);
  std::copy(handles.begin(), handles.end(), opened_.families.begin());
  space_saver_.emplace(database(), opened_.families, files().held_path());
}

// If a table is gone, RocksDB also tries an old name of tables, and names that one in its message.
StoreError RocksState::cannot_open(const Status& status) const {
  std::string why = "cannot be opened: " + status.ToString();
  constexpr std::string_view kOldName = ".ldb";
  if (const auto at = why.find(kOldName); at != std::string::npos)
    why.replace(at, kOldName.size(), ".sst");
  const bool is_hurt = status.IsCorruption() || status.IsPathNotFound();
  return StoreError(message(why + (is_hurt ? salvage_hint(files().path()) : "")));
}

void RocksState::check_format(const LogSource& logs) {
  if (const auto format = get(kMeta, kFormatKey)) {
    if (*format == format_name()) return;
    throw StoreError(message(other_format(*format)));
  }
  for (const Family family : {kMeta, kJobs, kIndex, kBodies, kKeys, kSchedules}) {
    const std::unique_ptr<rocksdb::Iterator> any(database().NewIterator({}, this->family(family)));
    any->SeekToFirst();
    check(*any);
    if (any->Valid()) throw StoreError(message("was not made by Carillon: it says no format"));
  }
  make(logs);
}

// RocksDB itself compares the tables.
void RocksState::check_bodies() {
  try {
    for (const std::string& line : look_at_bodies(files().held_path(), database()))
      notes_.push_back(message(line));
  } catch (const StoreError& why) {
    throw StoreError(message(why.what() + salvage_hint(files().path())));
  }
}

// Makes the log first: so a state that has a format has a log.
void RocksState::make(const LogSource& logs) {
  std::random_device random;
  const std::uint64_t identity = (std::uint64_t{random()} << 32) | random();
  const std::string mark = logs.make(directory_.files(), identity);
  WriteBatch batch;
  batch.Put(family(kMeta), slice(kFormatKey), format_name()).PermitUncheckedError();
  batch.Put(family(kMeta), slice(kIdentityKey), slice(raw_bytes(identity))).PermitUncheckedError();
  if (const Status status = database().Write(without_log(), &batch); !status.ok())
    throw error("cannot be made", status);
  flush(mark);
}

// --- Applying.

// The calls of a batch fail only for keys and values of more than 4 GiB, which no record has.
void RocksState::apply(std::string_view change, LogNumber number) {
  CARILLON_REQUIRE(number == number_ + 1, number, number_);
  batch_.Clear();
  for_each_entry(change, [this](const Entry& entry) {
    if (entry.family == kMeta) return;
    (entry.value ? batch_.Put(family(entry.family), slice(entry.key), slice(*entry.value))
                 : batch_.Delete(family(entry.family), slice(entry.key)))
        .PermitUncheckedError();
  });
  const Status status = write(batch_, [&] { keep_small_records(change); });
  if (!status.ok()) throw error("cannot be written", status);
  constexpr std::size_t kNodeBytes = 64;  // what an entry takes in a memtable, beside key and value
  unflushed_ += batch_.GetDataSize() + kNodeBytes * (1 + batch_.Count());
  number_ = number;
  constexpr std::size_t kKept = 4 << 20;  // a buffer that grew beyond this is given back
  if (batch_.GetDataSize() > kKept) batch_ = WriteBatch();
}

void RocksState::keep_small_records(std::string_view change) {
  for_each_entry(change, [this](const Entry& entry) {
    if (entry.family != kMeta) return;
    const auto known = small_.find(entry.key);
    std::string& value =
        known != small_.end() ? known->second : small_.emplace(entry.key, "").first->second;
    value = entry.value.value_or(std::string_view());
  });
}

// An exception leaves the database unusable, and what it holds unknown: part of the batch is in its
// memtables, and its queue of writers does not move any more.
Status RocksState::write(WriteBatch& batch, const std::function<void()>& then) {
  const Counting off(rocksdb::kDisable);
  try {
    Status status = database().Write(without_log(), &batch);
    if (status.ok()) then();
    return status;
  } catch (const std::exception& why) {
    troubles_->set_broken(why.what());
    return Status::Aborted(why.what());
  }
}

void RocksState::write_small_records() {
  WriteBatch batch;
  for (const auto& [key, value] : small_) {
    (value.empty() ? batch.Delete(family(kMeta), slice(key))
                   : batch.Put(family(kMeta), slice(key), slice(value)))
        .PermitUncheckedError();
  }
  const Status status = write(batch, [this] { small_.clear(); });
  if (!status.ok()) throw error("cannot be written", status);
}

// --- Flushing.

bool RocksState::behind() const {
  constexpr std::uint64_t kMostFiles = 40;  // that a read may have to visit, beside the sorted ones
  const auto many = [this](rocksdb::ColumnFamilyHandle* family) {
    std::string files;
    const bool known = database().GetProperty(
        family, rocksdb::DB::Properties::kNumFilesAtLevelPrefix + "0", &files);
    return known && std::stoull(files) >= kMostFiles;
  };
  if (std::none_of(opened_.families.begin(), opened_.families.end(), many)) return false;
  if (const std::string why = troubles_->compaction_failure(); !why.empty())
    throw StoreError(message("cannot be compacted: " + why));
  return true;
}

void RocksState::begin_flush(std::string_view mark) {
  CARILLON_REQUIRE(!flushing_, number_);
  begin_flush(mark, false);
}

void RocksState::begin_flush(std::string_view mark, bool wait) {
  std::string position(raw_bytes(number_));
  position += mark;
  small_.insert_or_assign(std::string(kPositionKey), std::move(position));
  write_small_records();
  rocksdb::FlushOptions options;
  options.wait = wait;
  const std::vector<rocksdb::ColumnFamilyHandle*> all(opened_.families.begin(),
                                                      opened_.families.end());
  troubles_->forget_flush();
  if (const Status status = database().Flush(options, all); !status.ok())
    throw error("cannot be written", status);
  flush_watch_.begin();
  flushing_ = number_;
  being_flushed_ = std::exchange(unflushed_, 0);
}

// After a failure RocksDB's own wait may last for ever, or end before anything is written. So poll
// the number in the files. If it is the right one already, as when the files are new, use RocksDB's
// wait.
void RocksState::flush(std::string_view mark) {
  troubles_->await_resume(database());
  begin_flush(mark, number_ == flushed());
  while (flushing()) {
    if (const auto why = broken()) throw StoreError(message("cannot be written: " + *why));
    if (stopped()) throw error("cannot be written", troubles_->cause());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

bool RocksState::flushing() {
  if (!flushing_) return false;
  if (troubles_->flush_completed()) flushed_ = position_in_files();
  if (flushed() < *flushing_) {
    if (flush_watch_.is_left(database())) troubles_->flush_is_left();
    return true;
  }
  flushing_.reset();
  being_flushed_ = 0;
  return false;
}

// Reads past the memtables.
LogPosition RocksState::position_in_files() const {
  rocksdb::ReadOptions options;
  options.read_tier = rocksdb::kPersistedTier;
  std::string value;
  const Status status = database().Get(options, family(kMeta), slice(kPositionKey), &value);
  if (!status.ok() && !status.IsNotFound()) throw error("cannot be read", status);
  const auto position = position_of(value);
  if (!position) throw StoreError(message("is damaged: the number of its last change is broken"));
  return *position;
}

std::optional<LogPosition> RocksState::position_of(std::string_view value) {
  LogNumber number = 0;
  if (value.size() < sizeof number) return std::nullopt;
  std::memcpy(&number, value.data(), sizeof number);
  return LogPosition{.number = number, .mark = std::string(value.substr(sizeof number))};
}

bool RocksState::stopped() const {
  return troubles_->stopped();
}

void RocksState::resume(std::string_view mark) {
  if (const Status status = troubles_->resume(database()); !status.ok())
    throw error("cannot be written", status);
  begin_flush(mark, false);  // RocksDB has just flushed more than the number in its files says
}

bool RocksState::resuming() const {
  return troubles_->is_resuming();
}

void RocksState::look_at_path() {
  if (const auto seen = files().moved()) troubles_->set_broken(*seen);
}

std::optional<std::string> RocksState::broken() const {
  return troubles_->broken();
}

// --- Reading.

std::optional<std::string> RocksState::get(Family family, std::string_view key) const {
  const Counting off(rocksdb::kDisable);
  std::string value;
  Status status = database().Get({}, this->family(family), slice(key), &value);
  if (status.IsCorruption()) {
    const FreshRead fresh;
    status = database().Get({}, this->family(family), slice(key), &value);
    // RocksDB does not say where a large body lies.
    if (status.IsCorruption() && status.ToString().find(" offset ") == std::string::npos)
      status =
          Status::Corruption(std::string(status.getState() == nullptr ? "" : status.getState()) +
                             " in " + fresh.last());
  }
  if (status.IsNotFound()) return std::nullopt;
  if (!status.ok()) fail_read(status);
  return value;
}

RocksState::AtHand RocksState::get_at_hand(Family family, std::string_view key,
                                           std::string& value) const {
  const Counting off(rocksdb::kDisable);
  const NoWait no_wait;
  const Status status = database().Get({}, this->family(family), slice(key), &value);
  if (status.ok()) return AtHand::kFound;
  if (status.IsNotFound()) return AtHand::kNone;
  if (!status.IsTimedOut() && !status.IsCorruption()) fail_read(status);
  return AtHand::kOnDisk;
}

std::unique_ptr<rocksdb::Iterator> RocksState::scan(Family family, std::string_view from,
                                                    const Slice& end) const {
  return scan(family, from, end, rocksdb::kReadAllTier);
}

std::unique_ptr<rocksdb::Iterator> RocksState::scan_memory(Family family, std::string_view from,
                                                           const Slice& end) const {
  return scan(family, from, end, rocksdb::kMemtableTier);
}

std::unique_ptr<rocksdb::Iterator> RocksState::scan(Family family, std::string_view from,
                                                    const Slice& end,
                                                    rocksdb::ReadTier tier) const {
  auto at = iterator(family, end, tier);
  at->Seek(slice(from));
  return at;
}

std::unique_ptr<rocksdb::Iterator> RocksState::iterator(Family family, const Slice& end,
                                                        rocksdb::ReadTier tier) const {
  rocksdb::ReadOptions options;
  options.read_tier = tier;
  if (tier == rocksdb::kMemtableTier) options.max_skippable_internal_keys = kMostErased;
  options.iterate_upper_bound = &end;
  // No range is ever deleted. And in RocksDB 7.7 to 8.5 an iterator that reads deleted ranges
  // passes over a file whose beginning cannot be read, and its status does not say so.
  options.ignore_range_deletions = true;
  return std::unique_ptr<rocksdb::Iterator>(database().NewIterator(options, this->family(family)));
}

std::vector<double> RocksState::sizes_in_files(Family family,
                                               const std::vector<IndexKey>& keys) const {
  CARILLON_REQUIRE(keys.size() >= 2, keys.size());
  CARILLON_REQUIRE_DEBUG(
      std::is_sorted(keys.begin(), keys.end(),
                     [](const IndexKey& a, const IndexKey& b) { return view(a) < view(b); }));
  std::vector<double> sizes;
  for (std::size_t i = 0; i + 1 < keys.size(); ++i) {
    const rocksdb::Range range(slice(view(keys[i])), slice(view(keys[i + 1])));
    std::uint64_t size = 0;
    const Status status = database().GetApproximateSizes(rocksdb::SizeApproximationOptions(),
                                                         this->family(family), &range, 1, &size);
    if (!status.ok()) fail_read(status);
    sizes.push_back(static_cast<double>(size));
  }
  return sizes;
}

void RocksState::check(const rocksdb::Iterator& iterator) const {
  if (!iterator.status().ok()) fail_read(iterator.status());
}

void RocksState::fail_read(const Status& status) const {
  const StoreError error = this->error("cannot be read", status);
  if (status.IsCorruption() || status.IsPathNotFound()) throw StoreDamage(error.what());
  throw error;
}

StoreError RocksState::error(const std::string& what, const Status& status) const {
  return StoreError(message(what + ": " + status.ToString()));
}

}  // namespace carillon::queue
