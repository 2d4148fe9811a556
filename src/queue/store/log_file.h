// A file of the write-ahead log that is written to: its space is taken in steps, ahead of the
// writes.
//
// Why not leave this to RocksDB: a write that makes its file longer makes the next fdatasync commit
// the file system's journal as well. On ext4 a sync took 27 us then, and 18 us when the length was
// there already. RocksDB takes space ahead too, but keeps the length; and it cannot tell that a
// write will not fit before it has begun to write it.
//
// The price: after a crash the log ends in zeros. log_check.h finds where it ends. A clean close
// cuts them off, and so does the sync of a log that is no longer written to: such a one is known to
// be complete.
//
// Thread safety: `Sync` may run beside all others but `Close`. A log that is no longer current may
// be destroyed in any thread.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace carillon::queue {

// The status of a write that failed with this errno. RocksDB takes it as the loss of one file, not
// of the database: once there is room again DB::Resume() writes another.
rocksdb::IOStatus write_failure(const std::string& path, const char* what, int error);

class LogFile final : public rocksdb::FSWritableFile {
 public:
  // The log that is written to, while it exists.
  using Current = std::atomic<LogFile*>;

  // Makes an empty file. Space is taken by `step` bytes at a time. `current` must outlive it.
  static rocksdb::IOStatus create(const std::string& path, std::uint64_t step, Current& current,
                                  std::unique_ptr<LogFile>* file);
  ~LogFile() override;

  // Gives the file this name, and makes it the current one.
  rocksdb::IOStatus become_current(const std::string& path);
  // Makes sure that the next `bytes` bytes can be appended without taking space. When it fails,
  // nothing has changed.
  rocksdb::IOStatus reserve(std::uint64_t bytes);
  // Whether an append has failed. What the file has at its end is unknown then.
  bool broken() const { return broken_; }

  using FSWritableFile::Append;
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Flush(const rocksdb::IOOptions& options,
                          rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                         rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Close(const rocksdb::IOOptions& options,
                          rocksdb::IODebugContext* debug) override;
  bool IsSyncThreadSafe() const override { return true; }
  std::uint64_t GetFileSize(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return written_;
  }
  void PrepareWrite(std::size_t, std::size_t, const rocksdb::IOOptions&,
                    rocksdb::IODebugContext*) override {}

 private:
  LogFile(std::string path, int fd, std::uint64_t step, Current& current);

  int take_space(std::uint64_t size);

  std::string path_;
  const std::uint64_t step_;
  Current& current_;
  int fd_;
  std::uint64_t written_ = 0;
  std::uint64_t size_ = 0;  // of the file: what is written, then zeros
  bool broken_ = false;
};

}  // namespace carillon::queue
