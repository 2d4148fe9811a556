// Opens, writes, syncs and closes the database.

#include "queue/store/rocks_database.h"

#include <rocksdb/iterator.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

#include "queue/store/entries.h"
#include "queue/store/log_check.h"
#include "queue/store/record_codec.h"
#include "queue/store/warnings_log.h"

namespace carillon::queue {

using rocksdb::Slice;
using rocksdb::Status;
using rocksdb::WriteBatch;

namespace {

// The version of all that is in the directory. A store with another one is refused.
constexpr std::string_view kFormatKey = "f";
constexpr std::string_view kFormat = "carillon-queue 1";
// The same with a journal. Version 2 had journal records of another form.
constexpr std::string_view kFormatWithJournal = "carillon-queue 3";

// Disk space for the log is taken in steps of this many bytes.
constexpr std::uint64_t kLogStep = 2 << 20;

// RocksDB's threads rest for a second after an error, and Resume() would wait for them. So it is
// not called before.
constexpr std::chrono::milliseconds kRest{1'100};

// Returns how many bytes of the log a record of `size` bytes takes at most, with the headers of its
// fragments and the unused ends of blocks.
std::uint64_t bytes_in_log(std::uint64_t size) {
  constexpr std::uint64_t kBlockBytes = 32'768;
  constexpr std::uint64_t kOverhead = 13;
  return size + kOverhead * (size / (kBlockBytes - kOverhead) + 2);
}

// Sets `number` to `to`, unless it is greater already.
void raise(std::atomic<std::uint64_t>& number, std::uint64_t to) {
  std::uint64_t now = number.load(std::memory_order_relaxed);
  while (now < to && !number.compare_exchange_weak(now, to, std::memory_order_release)) {
  }
}

}  // namespace

class RocksDatabase::Troubles final : public rocksdb::EventListener {
 public:
  // Called in RocksDB's threads:
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, Status* status) override {
    if (reason == rocksdb::BackgroundErrorReason::kCompaction) {
      compaction_fails_.store(true);  // RocksDB tries again by itself
    } else {
      stop(*status);
    }
  }
  void OnCompactionCompleted(rocksdb::DB*, const rocksdb::CompactionJobInfo& info) override {
    if (info.status.ok()) compaction_fails_.store(false);
  }

  // Returns true if RocksDB writes nothing until it is resumed.
  bool stopped() const { return stopped_.load(); }
  bool compaction_fails() const { return compaction_fails_.load(); }

  // Tries to resume. If that fails, returns why.
  Status resume(rocksdb::DB& database) {
    {
      const std::lock_guard lock(mutex_);
      if (std::chrono::steady_clock::now() < resume_at_) return cause_;
      stopped_.store(false);
    }
    Status status = database.Resume();
    if (!status.ok()) stop(status);
    return status;
  }

 private:
  void stop(const Status& cause) {
    const std::lock_guard lock(mutex_);
    cause_ = cause;
    resume_at_ = std::chrono::steady_clock::now() + kRest;
    stopped_.store(true);
  }

  std::atomic<bool> stopped_ = false;
  std::atomic<bool> compaction_fails_ = false;
  std::mutex mutex_;
  // Protected by mutex_:
  Status cause_;
  std::chrono::steady_clock::time_point resume_at_;
};

RocksDatabase::RocksDatabase(const std::string& path, const RocksStoreOptions& options)
    : directory_(path),
      files_(std::make_shared<StoreFiles>(directory_.path(), kLogStep)),
      env_(rocksdb::NewCompositeEnv(files_)),
      troubles_(std::make_shared<Troubles>()) {
  if (directory_.has_store()) refuse_other_families();
  open(options);
  check_format();
  warn_of_cut_log();
  written_number_ = durable_number_ = database().GetLatestSequenceNumber();
}

RocksDatabase::~RocksDatabase() {
  try {
    if (!failed_ && appended_ > 0) seal();
  } catch (const StoreError&) {
    // A destructor cannot report it; sync() called before can.
  }
}

RocksDatabase::Opened::~Opened() {
  if (!database) return;
  for (rocksdb::ColumnFamilyHandle* family : families) {
    if (family != nullptr) database->DestroyColumnFamilyHandle(family).PermitUncheckedError();
  }
  database->Close().PermitUncheckedError();
}

// Recognizes a store of another program, or of a newer version, by its column families, before
// anything is changed in it.
void RocksDatabase::refuse_other_families() const {
  rocksdb::DBOptions options;
  options.env = env_.get();
  std::vector<std::string> names;
  if (Status status = rocksdb::DB::ListColumnFamilies(options, directory_.path(), &names);
      !status.ok()) {
    throw error("cannot be opened", status);
  }
  const auto ours = family_descriptors({});
  for (const std::string& name : names) {
    const auto same = [&name](const auto& family) { return family.name == name; };
    if (std::any_of(ours.begin(), ours.end(), same)) continue;
    throw StoreError(directory_.message(
        "was made by a newer version of Carillon, or by another program: it has a "
        "column family '" +
        name + "'"));
  }
}

void RocksDatabase::open(const RocksStoreOptions& options) {
  rocksdb::DBOptions database_options = carillon::queue::database_options(options);
  database_options.env = env_.get();
  database_options.info_log = std::make_shared<WarningsLog>(directory_.path());
  database_options.listeners = {troubles_};
  std::vector<rocksdb::ColumnFamilyDescriptor> present = family_descriptors(options);
  std::vector<rocksdb::ColumnFamilyDescriptor> missing;
  if (!directory_.has_store()) {
    // Makes the families all at once: RocksDB's Open() would write its options anew after each.
    missing.assign(present.begin() + 1, present.end());
    present.resize(1);
  }
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  Status status =
      rocksdb::DB::Open(database_options, directory_.path(), present, &handles, &opened);
  if (!status.ok()) throw error("cannot be opened", status);
  opened_.database.reset(opened);
  auto end = std::copy(handles.begin(), handles.end(), opened_.families.begin());
  if (missing.empty()) return;
  status = opened->CreateColumnFamilies(missing, &handles);
  std::copy(handles.begin(), handles.end(), end);
  if (!status.ok()) throw error("cannot be made", status);
}

void RocksDatabase::check_format() {
  if (const auto format = get(kMeta, kFormatKey)) {
    if (*format == kFormat || *format == kFormatWithJournal) return;
    throw StoreError(directory_.message("was made by another version of Carillon: its format is '" +
                                        *format + "', and this version knows '" +
                                        std::string(kFormat) + "' and '" +
                                        std::string(kFormatWithJournal) + "'"));
  }
  for (const Family family : {kMeta, kJobs, kIndex, kBodies}) {
    const std::unique_ptr<rocksdb::Iterator> any(database().NewIterator({}, this->family(family)));
    any->SeekToFirst();
    check(*any);
    if (any->Valid())
      throw StoreError(directory_.message("was not made by Carillon: it says no format"));
  }
  // This needs no sync: nothing written later becomes durable before it.
  const Status status = database().Put({}, family(kMeta), slice(kFormatKey), slice(kFormat));
  if (!status.ok()) throw error("cannot be written", status);
}

void RocksDatabase::warn_of_cut_log() {
  if (!files_->checked()) return;
  std::uint64_t bytes = 0;
  for (const CheckedLog& log : files_->checked()->logs) bytes += log.left_out;
  if (bytes == 0) return;
  opening_warning_ = directory_.message(
      "was not closed cleanly: the last " + std::to_string(bytes) +
      " bytes of its log were never synced and are not whole; they have been left out");
}

void RocksDatabase::reserve(std::uint64_t bytes) {
  const Status status = files_->reserve(bytes_in_log(bytes));
  if (!status.ok()) throw error("cannot be written", status);
}

void RocksDatabase::put_format(bool with_journal, WriteBatch& batch) const {
  batch.Put(family(kMeta), slice(kFormatKey), slice(with_journal ? kFormatWithJournal : kFormat))
      .PermitUncheckedError();
}

// The calls into WriteBatch fail only for keys and values of more than 4 GiB, which no entry has.
WriteBatch RocksDatabase::batch(std::string_view entries) const try {
  // Bytes for what goes before the entries, and for what may be added behind them.
  constexpr std::size_t kMore = 256;
  WriteBatch batch(entries.size() + kMore);
  const auto mark = durability_mark(durable_number_.load(std::memory_order_acquire));
  batch.PutLogData({mark.data(), mark.size()}).PermitUncheckedError();
  for_each_entry(entries, [&](const Entry& entry) {
    if (entry.is_put) {
      batch.Put(family(entry.family), slice(entry.key), slice(entry.value)).PermitUncheckedError();
    } else {
      batch.Delete(family(entry.family), slice(entry.key)).PermitUncheckedError();
    }
  });
  return batch;
} catch (const StoreError& why) {
  throw StoreError(directory_.message(std::string("is damaged: ") + why.what()));
}

Sequence RocksDatabase::write(WriteBatch& batch) {
  refuse_if_failed();
  reserve(batch.GetDataSize());
  if (troubles_->stopped()) {
    if (const Status status = troubles_->resume(database()); !status.ok())
      throw error("cannot be written", status);
  }
  rocksdb::WriteOptions options;
  // While compaction fails, RocksDB would make writes wait for it, in vain.
  options.no_slowdown = troubles_->compaction_fails();
  if (const Status status = database().Write(options, &batch); !status.ok()) {
    const StoreError failure = error("cannot be written", status);
    if (files_->log_broken()) fail_for_good(failure);
    throw failure;
  }
  written_number_.store(database().GetLatestSequenceNumber(), std::memory_order_release);
  return appended_.fetch_add(1, std::memory_order_acq_rel) + 1;
}

Sequence RocksDatabase::sync() {
  refuse_if_failed();
  const std::uint64_t number = written_number_.load(std::memory_order_acquire);
  const Sequence sequence = appended_.load(std::memory_order_acquire);
  if (durable_.load(std::memory_order_acquire) == sequence) return sequence;
  if (const Status status = database().SyncWAL(); !status.ok()) {
    const StoreError failure = error("cannot be synced", status);
    fail_for_good(failure);
    throw failure;
  }
  raise(durable_number_, number);
  raise(durable_, sequence);
  return sequence;
}

void RocksDatabase::flush(Family family) {
  const Status status = database().Flush({}, this->family(family));
  if (!status.ok()) throw error("cannot be written", status);
}

// Adds a log record that changes nothing. Its mark shows that all records before it were synced.
void RocksDatabase::seal() {
  sync();
  WriteBatch nothing = batch();
  write(nothing);
  sync();
}

void RocksDatabase::fail_for_good(const StoreError& why) {
  const std::lock_guard lock(failure_mutex_);
  if (failed_) return;
  failure_ = std::string(why.what()) + "; nothing more is written until it is opened anew";
  failed_.store(true, std::memory_order_release);
}

void RocksDatabase::refuse_if_failed() const {
  if (!failed_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(failure_mutex_);
  throw StoreError(failure_);
}

std::optional<std::string> RocksDatabase::get(Family family, std::string_view key,
                                              Overlay* overlay) const {
  std::string value;
  rocksdb::ColumnFamilyHandle* const in = this->family(family);
  const Status status = overlay == nullptr ? database().Get({}, in, slice(key), &value)
                                           : overlay->entries().GetFromBatchAndDB(
                                                 &database(), {}, in, slice(key), &value);
  if (status.IsNotFound()) return std::nullopt;
  if (!status.ok()) throw error("cannot be read", status);
  return value;
}

std::unique_ptr<rocksdb::Iterator> RocksDatabase::scan(Family family, std::string_view from,
                                                       const Slice& end, Overlay* overlay) const {
  rocksdb::ReadOptions options;
  options.iterate_upper_bound = &end;
  std::unique_ptr<rocksdb::Iterator> iterator(
      database().NewIterator(options, this->family(family)));
  if (overlay != nullptr) {
    iterator.reset(
        overlay->entries().NewIteratorWithBase(this->family(family), iterator.release(), &options));
  }
  iterator->Seek(slice(from));
  return iterator;
}

void RocksDatabase::check(const rocksdb::Iterator& iterator) const {
  if (!iterator.status().ok()) throw error("cannot be read", iterator.status());
}

StoreError RocksDatabase::error(const std::string& what, const Status& status) const {
  return StoreError(directory_.message(what + ": " + status.ToString()));
}

}  // namespace carillon::queue
