// LogSegment: a preallocated file of a local log, used again and again.
//
//   block 0   := magic:16 version:u32 blocks:u32 identity:u64 life:u64 life_before:u64 boot:u64
//                serial:u64 first:u64 before:u32 crc32c:u32
//   then records (log_record.h), each from the beginning of a block
//
// A block has 4 KiB, and no two records share one: a write that a crash cuts short damages no other
// record, on a disk with sectors of up to that size. All blocks are written with zeros when the
// file is made, so that no later write has to wait for the file system.
//
// Each time the file is used anew it gets the next serial number, and the number of the first
// change that it may hold. Each opening of the log draws a random number, its `life`; `life_before`
// is the life of the segment before. So a segment says which one it follows. A segment from a copy
// of the directory, which has had another life since, follows no segment of the original. The
// checksums and stamps of the records cover the life, the serial number and the block. So neither
// the bytes of a client, nor a record of an earlier use, nor a record of another log passes for a
// record.
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

#include "base/directory.h"
#include "base/file_descriptor.h"
#include "carillon/queue/log.h"
#include "carillon/queue/store.h"
#include "queue/store/log/log_record.h"

namespace carillon::queue {

// How the bytes of a record get to the disk.
enum class LogWrites : std::uint8_t {
  kDurable,   // each write past the page cache, and durable when it returns (O_DIRECT and O_DSYNC)
  kBuffered,  // each write into the page cache, durable after sync()
};

// Memory that is aligned to a block, as reads and writes past the page cache need it.
struct DeleteBlocks {
  void operator()(char* bytes) const;
};
using BlockBytes = std::unique_ptr<char, DeleteBlocks>;
// Throws std::bad_alloc. REQUIRES: `size` is a number of whole blocks.
BlockBytes allocate_blocks(std::size_t size);

// One use of a segment.
struct LogUse {
  std::uint64_t life = 0;
  std::uint64_t life_before = 0;  // 0: this is the first segment of a log
  std::uint64_t boot = 0;         // identifies the boot of the machine; 0: unknown
  std::uint64_t serial = 0;       // 0: the file was never used
  LogNumber first = 0;
  std::uint32_t before = 0;  // checksum of the record with change `first` - 1
};

struct LogSegmentHeader;

// Thread safety: as for a file descriptor.
class LogSegment {
 public:
  // Thrown where the medium lacks space or descriptors, which may pass. Nothing has changed.
  class Shortage : public StoreError {
   public:
    using StoreError::StoreError;
  };

  // The name of segment n, and the number in such a name; nothing if `name` is no segment's.
  static std::string name_of(std::uint64_t number);
  static std::optional<std::uint64_t> number_of(std::string_view name);
  // What is added to the name of a file that is being made.
  static constexpr std::string_view kUnfinished = ".new";

  // Makes a file of `blocks` blocks, durably, open for writing. Throws Shortage or StoreError; no
  // file is left then. `directory` must outlive the segment, here and in open().
  static LogSegment make(const base::Directory& directory, const std::string& name,
                         std::uint64_t identity, std::uint32_t blocks, LogWrites writes);
  // Opens a file that make() has made. Throws StoreError if the file cannot be read, is damaged, or
  // was made by another version. (A header lies in one sector, so a crash leaves the old one or the
  // new one.) It is not open for writing.
  static LogSegment open(const base::Directory& directory, const std::string& name,
                         LogWrites writes);

  // A segment has a descriptor only while it is open for writing: from make() or open_to_write() to
  // close(), by when all of it is durable. open_to_write() throws Shortage or StoreError.
  bool is_open() const { return static_cast<bool>(file_); }
  void open_to_write();
  void close() { file_ = {}; }

  // Begins the next use of the file, in memory. The caller must call write_header() next.
  void begin(const LogUse& use) { use_ = use; }
  // Makes the next use durable: the file has no record then.
  void write_header() const;

  // The bytes with which a file of such a segment begins.
  static std::string header_of(std::uint64_t identity, std::uint32_t blocks, const LogUse& use);

  // Writes a record at `block` and returns its checksum. `bytes` are as LogWindow::finish() leaves
  // them, aligned to a block; stamps and checksums are set. REQUIRES: they fit; is_open().
  std::uint32_t write(char* bytes, std::size_t size, std::uint32_t block) const;
  // Makes durable what write() has written. With LogWrites::kDurable, and after close(), it is so
  // already.
  void sync() const;

  // All bytes of the file: from the page cache, which may have more than the disk; or from the
  // disk, if the file system can read past the cache. Both throw StoreError if the file cannot be
  // read or has been cut short.
  struct Bytes {
    BlockBytes begin;
    std::size_t size = 0;
    std::string_view view() const { return {begin.get(), size}; }
  };
  Bytes read() const;
  Bytes read_from_disk() const;
  // What find_log_record() finds at `block` of the bytes.
  LogFound find(const Bytes& bytes, std::uint32_t block, LogRecord& record) const;
  // Returns whether any sector from `block` on was written in this use.
  bool is_written_from(const Bytes& bytes, std::uint32_t block) const;
  // Makes the records in `bytes` before block `end` durable; writes only the blocks that the disk
  // does not have. Throws StoreError.
  void make_durable(const Bytes& bytes, std::uint32_t end) const;

  std::uint64_t identity() const { return identity_; }
  const LogUse& use() const { return use_; }
  std::uint64_t serial() const { return use_.serial; }
  LogNumber first() const { return use_.first; }
  std::uint32_t blocks() const { return blocks_; }  // with the header's
  std::size_t bytes() const { return std::size_t{blocks_} * kLogBlock; }
  const std::string& name() const { return name_; }
  std::string path() const { return directory_->path_of(name_); }  // for messages

 private:
  LogSegment() = default;
  LogSegmentHeader header() const;
  LogPlace place(std::uint32_t block) const;
  Bytes read(const base::FileDescriptor& file) const;
  void write_blocks(std::string_view bytes, std::uint32_t block) const;
  [[noreturn]] void fail(const char* what, int error) const;

  const base::Directory* directory_ = nullptr;
  std::string name_;
  base::FileDescriptor file_;
  LogWrites writes_ = LogWrites::kDurable;
  std::uint64_t identity_ = 0;
  std::uint32_t blocks_ = 0;
  LogUse use_;
};

}  // namespace carillon::queue
