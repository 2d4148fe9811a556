// A small file in which synced changes stand until the database has them for good: one write makes
// a record durable.
//
//   Journal::make(path, identity, blocks);                // once; durable when it returns
//   Journal journal(path, identity, applied);             // throws StoreError when a record after
//                                                         // `applied` is missing
//   for (const std::string& bytes : journal.take_recovered()) apply(bytes);
//   ...
//   if (!journal.has_room(bytes.size())) {
//     make the database durable;
//     journal.release(number it has applied);
//   }
//   const std::uint64_t number = journal.write(bytes);    // durable when it returns
//
// Why not leave this to the database's own log. A put is to be acknowledged as soon as a disk can
// have it. RocksDB's log is appended to through the page cache and then synced: two system calls, a
// page that is dirtied and cleaned again, and before both of them RocksDB's own work. A record here
// is written past the page cache into blocks that exist already, and durable when that one write
// returns (O_DIRECT and O_DSYNC). On a virtual disk of 100 us per sync that alone saves 7 us, and
// what is gained by not waiting for RocksDB is more.
//
// The file is a ring of blocks of 4 KiB. A record begins at a block, and no block is shared: a
// write that is cut short by a crash damages no other record, on a disk of sectors of up to that
// size.
//
//   block 0  := magic:16 identity:u64 blocks:u32 crc32c:u32
//               (checksum of what stands before it)
//   record   := crc32c:u32 size:u32 number:u64 bytes, then zeros
//               (checksum of the identity, the block, and what follows it)
//
// Numbers go up by one, over all the life of the journal. The identity is random and secret, and
// the checksum of each record includes it. So bytes sent by a client, or a record of another
// journal, are never taken for a record.
//
// RocksDB stores the number of the last record it has. Later records must follow without a gap.
// Only the last may be cut short: it was not durable.
//
// Thread safety: one thread at a time; `release` may be called by one other at a time meanwhile.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"

namespace carillon::queue {

class Journal {
 public:
  static constexpr std::size_t kBlock = 4'096;
  // Bytes of a record at the most.
  static constexpr std::size_t kLargest = 64 << 10;

  // Makes the file, durably, in place of any other. Throws StoreError. REQUIRES: blocks enough for
  // two of the largest records, and the first.
  static void make(const std::string& path, std::uint64_t identity, std::uint32_t blocks);

  // Opens it and reads what was written after record number `applied`. Throws StoreError when the
  // file is missing, is another journal, or is damaged where it counts.
  Journal(std::string path, std::uint64_t identity, std::uint64_t applied);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // The records after `applied`, in order: the first has number applied + 1. Their room is taken
  // until they are released.
  std::vector<std::string> take_recovered() { return std::exchange(recovered_, {}); }

  // The number of the last record, or the one given as applied if that is greater.
  std::uint64_t last() const { return last_; }
  // Returns true if a record of so many bytes can be written now.
  bool has_room(std::size_t bytes) const;
  // Of the file.
  std::uint32_t blocks() const { return blocks_; }
  // Returns true if less than a quarter of the file is free.
  bool nearly_full() const;
  // Writes a record and returns its number, last() + 1 before. Throws StoreError; what the file
  // holds is unknown then, and nothing may follow. REQUIRES: has_room(bytes.size()), at most
  // kLargest bytes.
  std::uint64_t write(std::string_view bytes);
  // The records up to this number are in the database for good, and may be overwritten.
  void release(std::uint64_t number) {
    if (number > released_.load(std::memory_order_relaxed))
      released_.store(number, std::memory_order_release);
  }

 private:
  struct Place {
    std::uint32_t block;
    std::uint32_t blocks;
  };
  struct Free {
    void operator()(char* bytes) const { std::free(bytes); }
  };

  std::string message(const std::string& what) const;
  std::string read() const;
  void recover(std::string_view bytes, std::uint64_t applied);
  std::optional<Place> place(std::size_t bytes) const;
  void write_blocks(Place at) const;

  const std::string path_;
  const std::uint64_t identity_;
  base::FileDescriptor file_;
  std::vector<std::string> recovered_;
  std::unique_ptr<char, Free> buffer_;  // of a record; aligned, as O_DIRECT wants it
  std::size_t used_;                    // of the buffer: behind it are zeros

  std::uint64_t last_ = 0;
  std::atomic<std::uint64_t> released_ = 0;
  std::uint32_t next_ = 1;  // the block behind the last record
  std::uint32_t blocks_ = 0;
  std::vector<std::uint32_t>
      begins_;  // by number, modulo blocks_: the block at which an unreleased record begins
};

}  // namespace carillon::queue
