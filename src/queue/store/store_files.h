// The file system as RocksDB is to see it: space for its log is taken ahead, the log is checked
// before a replay, errors are retryable, and what need not be synced is not.
//
// Thread safety: as for any rocksdb::FileSystem; of the verbs added here, and writes to the
// database, one at a time.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "queue/store/log_check.h"
#include "queue/store/log_file.h"

namespace carillon::queue {

class StoreFiles final : public rocksdb::FileSystemWrapper {
 public:
  // `directory`: where the logs are. `step`: space for them is taken by so many bytes at a time.
  StoreFiles(const std::string& directory, std::uint64_t step);
  ~StoreFiles() override;

  const char* Name() const override { return "CarillonStoreFiles"; }

  // Makes sure that a record of `bytes` bytes can be appended to the log without taking space, even
  // if RocksDB begins a new log for it. When it fails, nothing has changed.
  rocksdb::IOStatus reserve(std::uint64_t bytes);
  // Whether a write to the log has failed: what it ends in is unknown, and nothing may be added to
  // it.
  bool log_broken() const;
  // What the check of the logs found. None: there was no log to replay.
  const std::optional<LogCheck>& checked() const { return checked_; }

  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* debug) override;

 private:
  rocksdb::IOStatus make_log(const std::string& path,
                             std::unique_ptr<rocksdb::FSWritableFile>* file);
  rocksdb::IOStatus check_logs_from(const std::string& path);

  const std::string directory_;
  const std::uint64_t step_;
  LogFile::Current current_ = nullptr;
  // The next log, made already: RocksDB does not survive a failure to make one (its ScheduleFlushes
  // keeps references then).
  std::unique_ptr<LogFile> next_;
  std::optional<LogCheck> checked_;
};

}  // namespace carillon::queue
