// LogSegment: a preallocated file of a local log, used again and again.
//
//   block 0   := magic:16 version:u32 blocks:u32 identity:u64 serial:u64 first:u64 unused:u32
//                crc32c:u32
//   record    := crc32c:u32 size:u32 first:u64 durable:u64 count:u32 version:u32 (size:u32 change)*
//                and then zeros
//
// A block has 4 KiB. A record begins at a block, and no block is shared: a write that a crash cuts
// short damages no other record, on a disk with sectors of up to that size. All blocks are written
// with zeros when the file is made, so that no later write has to wait for the file system.
//
// Each time the file is used anew it gets the next serial number, and the number of the first
// change that it may hold. The checksum of a record covers the identity of the log (random, known
// to nobody outside), the serial number and the block. So neither the bytes of a client, nor a
// record of an earlier use, nor one of another log passes for a record.
//
// Numbers stand in the file as they do in memory: a data directory does not move between machines
// of different byte orders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "carillon/queue/store.h"
#include "queue/store/log.h"

namespace carillon::queue {

// How the bytes of a record get to the disk.
enum class LogWrites : std::uint8_t {
  kDurable,   // each write past the page cache, and durable when it returns (O_DIRECT and O_DSYNC)
  kBuffered,  // each write into the page cache, durable after sync()
};

// Memory that is aligned to a block, as writes past the page cache need it.
struct DeleteBlocks {
  void operator()(char* bytes) const;
};
using BlockBytes = std::unique_ptr<char, DeleteBlocks>;
// Throws std::bad_alloc. REQUIRES: `size` is a number of whole blocks.
BlockBytes allocate_blocks(std::size_t size);

// What stands in front of the changes of a window.
struct LogRecordHead {
  std::uint32_t checksum = 0;
  std::uint32_t size = 0;   // bytes of the changes, each with its size in front
  LogNumber first = 0;      // number of the first change
  LogNumber durable = 0;    // number of the last change that was durable before
  std::uint32_t count = 0;  // changes
  std::uint32_t version = 1;

  LogNumber last() const { return first + count - 1; }
};
static_assert(sizeof(LogRecordHead) == 32);

struct LogSegmentHeader;

class LogSegment {
 public:
  static constexpr std::size_t kBlock = 4'096;

  // How many blocks a record with so many bytes of changes takes.
  static constexpr std::size_t blocks_for(std::size_t bytes) {
    return (sizeof(LogRecordHead) + bytes + kBlock - 1) / kBlock;
  }

  // There is no space, descriptor or memory for it now.
  class Shortage : public StoreError {
   public:
    using StoreError::StoreError;
  };

  // The end of the name of a file that make() has not finished.
  static constexpr std::string_view kUnfinished = ".new";

  // Makes a file of `blocks` blocks, durably, in place of any other. It gets its name when it has
  // all its bytes: a file that is short was damaged. Throws Shortage, or StoreError if the disk
  // failed; there is no file then.
  static LogSegment make(std::string path, std::uint64_t identity, std::uint32_t blocks,
                         LogWrites writes);

  // Opens a file that make() has made. Its serial number is 0 if it was never used. Throws
  // StoreError if the file cannot be read, is damaged, or belongs to another log. (A header lies in
  // one sector, so a crash leaves the old one or the new one.) It is not open for writing.
  static LogSegment open(std::string path, std::uint64_t identity, LogWrites writes);

  // A segment has a descriptor only while it is open for writing: from make() or open_to_write() to
  // close(), by when all of it is durable. open_to_write() throws Shortage or StoreError.
  bool is_open() const { return static_cast<bool>(file_); }
  void open_to_write();
  void close() { file_ = {}; }

  // Begins the next use of the file, in memory. It is to be followed by write_header().
  void begin(std::uint64_t serial, LogNumber first) {
    serial_ = serial;
    first_ = first;
  }
  // Makes the next use durable: the file has no record then.
  void write_header() const;

  // Writes a record at `block`. `bytes` are head and changes, filled up with zeros to whole blocks;
  // the head's checksum is set by it. REQUIRES: `bytes` is aligned to a block and fits; is_open().
  void write(char* bytes, std::size_t size, std::uint32_t block) const;
  // Makes durable what write() has written. With LogWrites::kDurable, and after close(), it is so
  // already.
  void sync() const;

  // A record that was read.
  struct Record {
    LogRecordHead head;
    std::string_view changes;  // within the bytes it was read from
  };

  // Returns all bytes of the file, which are durable then.
  std::string read() const;
  // The record that begins at `block` of the bytes, or nothing if there is none.
  std::optional<Record> record_at(std::string_view bytes, std::uint32_t block) const;

  std::uint64_t serial() const { return serial_; }
  LogNumber first() const { return first_; }
  std::uint32_t blocks() const { return blocks_; }  // with the header's
  std::size_t bytes() const { return std::size_t{blocks_} * kBlock; }
  const std::string& path() const { return path_; }

 private:
  LogSegment() = default;
  LogSegmentHeader header() const;
  std::uint32_t checksum_of(std::uint32_t block, std::string_view behind_checksum) const;
  void write_blocks(std::string_view bytes, std::uint32_t block) const;
  [[noreturn]] void fail(const char* what, int error) const;

  std::string path_;
  base::FileDescriptor file_;
  LogWrites writes_ = LogWrites::kDurable;
  std::uint64_t identity_ = 0;
  std::uint64_t serial_ = 0;
  LogNumber first_ = 0;
  std::uint32_t blocks_ = 0;
};

}  // namespace carillon::queue
