#pragma once
// The file system as RocksDB is to see it: its log taken space for ahead and checked before a replay, its errors retryable.
//
// Thread safety: as for any rocksdb::FileSystem; the verbs added here are for the thread that appends.

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "queue/log_check.h"
#include "queue/log_file.h"

namespace carillon::queue {

class StoreFiles final : public rocksdb::FileSystemWrapper {
 public:
  // `step`: space for the log is taken by so many bytes at a time.
  explicit StoreFiles(std::uint64_t step);

  const char* Name() const override { return "CarillonStoreFiles"; }

  // Makes sure that the log has room for the next `bytes` bytes. When it fails, nothing has changed.
  rocksdb::IOStatus reserve(std::uint64_t bytes);
  // Whether a write to the log has failed: what it ends in is unknown, and nothing may be added to it.
  bool log_broken() const;
  // What the check of the logs found. None: there was no log to replay.
  const std::optional<LogCheck>& checked() const { return checked_; }

  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;

 private:
  rocksdb::IOStatus check_logs_from(const std::string& path);

  const std::uint64_t step_;
  std::uint64_t reserved_ = 0;  // what the last `reserve` asked for: a log made meanwhile must have room for it too
  LogFile::Newest newest_ = nullptr;
  std::optional<LogCheck> checked_;
};

}  // namespace carillon::queue
