// Reads of RocksDB that do not wait for the disk: what the page cache of the operating system has
// is read, and the rest is refused.
//
//   environment = rocksdb::NewCompositeEnv(no_wait_files(rocksdb::FileSystem::Default()));
//   ...
//   const NoWait no_wait;                           // reads of this thread, until it goes
//   status = database.Get({}, key, &value);
//   if (status.IsTimedOut()) ...                    // it would have had to wait for the disk
//
// RocksDB's own way (ReadOptions::read_tier) finds only what is in its block cache. A queue mostly
// reads a body once, so there it would find little, although most of what it wants was written a
// moment ago and is in memory still.
//
// A block that fails its checksum may have been damaged in the page cache, or on the way from the
// disk. Read it again from the disk:
//
//   const FreshRead fresh;                          // reads of this thread, until it goes
//   status = database.Get({}, key, &value);         // from the disk
//
// A read outside of both is as RocksDB's own, with the same errors.
//
// Thread safety: any thread.
#pragma once

#include <rocksdb/file_system.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace carillon::queue {

// Returns the file system `below` with this change. If it cannot say what is in memory (tmpfs), it
// refuses all reads of files under NoWait.
std::shared_ptr<rocksdb::FileSystem> no_wait_files(
    const std::shared_ptr<rocksdb::FileSystem>& below);

// While one is there, this thread's reads of files end with Status::TimedOut where they would have
// to wait.
class NoWait {
 public:
  NoWait() noexcept;
  ~NoWait();
  NoWait(const NoWait&) = delete;
  NoWait& operator=(const NoWait&) = delete;
};

// While one is there, this thread's reads of files first drop what the page cache has of their
// bytes. (The system keeps pages that are not on the disk yet.)
class FreshRead {
 public:
  FreshRead() noexcept;
  ~FreshRead();
  FreshRead(const FreshRead&) = delete;
  FreshRead& operator=(const FreshRead&) = delete;

  // Returns "123456.blob offset 7 size 8" for the last read of a file; empty if there was no read.
  std::string last() const;
};

// While one is there, this thread's reads of files first call `go_on` with the number of bytes, and
// fail with Status::Aborted if it returns false. So a slow reader waits there.
class PacedRead {
 public:
  explicit PacedRead(std::function<bool(std::size_t)> go_on);
  ~PacedRead();
  PacedRead(const PacedRead&) = delete;
  PacedRead& operator=(const PacedRead&) = delete;

 private:
  const std::function<bool(std::size_t)> go_on_;
};

}  // namespace carillon::queue
