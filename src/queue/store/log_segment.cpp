// The bytes of a segment, and the system calls that write and read them.

#include "queue/store/log_segment.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "base/crc32c.h"
#include "base/file_io.h"

namespace carillon::queue {

struct LogSegmentHeader {
  std::array<char, 16> magic{'c', 'a', 'r', 'i', 'l', 'l', 'o', 'n', ' ', 'l', 'o', 'g'};
  std::uint32_t version = 1;
  std::uint32_t blocks = 0;
  std::uint64_t identity = 0;
  std::uint64_t serial = 0;
  LogNumber first = 0;
  std::uint32_t unused = 0;
  std::uint32_t checksum = 0;  // of what stands before it
};

namespace {

constexpr std::align_val_t kBlockAlignment{LogSegment::kBlock};

// What a record's checksum begins with.
struct Seed {
  std::uint64_t identity;
  std::uint64_t serial;
  std::uint64_t block;
};

template <typename Plain>
std::string_view bytes_of(const Plain& plain) {
  static_assert(std::has_unique_object_representations_v<Plain>);
  return {reinterpret_cast<const char*>(&plain), sizeof plain};
}

std::uint32_t checksum_of(const LogSegmentHeader& header) {
  return base::crc32c(0, bytes_of(header).substr(0, offsetof(LogSegmentHeader, checksum)));
}

BlockBytes zeros(std::size_t size) {
  BlockBytes bytes = allocate_blocks(size);
  std::memset(bytes.get(), 0, size);
  return bytes;
}

// Returns an errno.
int write_zeros(int fd, std::size_t size) {
  constexpr std::size_t kStep = 64 << 10;  // more would be mapped, and its pages zeroed, anew
  const BlockBytes step = zeros(kStep);
  for (std::size_t at = 0; at < size; at += kStep) {
    const std::string_view bytes(step.get(), std::min(kStep, size - at));
    if (const int error = base::write_at(fd, bytes, at); error != 0) return error;
  }
  return 0;
}

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/') + 1);
}

}  // namespace

BlockBytes allocate_blocks(std::size_t size) {
  return BlockBytes(static_cast<char*>(::operator new(size, kBlockAlignment)));
}

void DeleteBlocks::operator()(char* bytes) const {
  ::operator delete(bytes, kBlockAlignment);
}

void LogSegment::fail(const char* what, int error) const {
  const std::string why = "the log " + path_ + " " + what + ": " + std::strerror(error);
  if (std::count(base::kShortages.begin(), base::kShortages.end(), error) != 0) throw Shortage(why);
  throw StoreError(why);
}

LogSegment LogSegment::make(std::string path, std::uint64_t identity, std::uint32_t blocks,
                            LogWrites writes) {
  LogSegment segment;
  segment.path_ = std::move(path);
  segment.writes_ = writes;
  segment.identity_ = identity;
  segment.blocks_ = blocks;
  const char* const name = segment.path_.c_str();
  const std::string unfinished = segment.path_ + std::string(kUnfinished);
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  const base::FileDescriptor file(::open(unfinished.c_str(), flags, 0644));
  if (!file) segment.fail("cannot be made", errno);
  int error = write_zeros(file.get(), segment.bytes());
  const LogSegmentHeader header = segment.header();
  if (error == 0) error = base::write_at(file.get(), bytes_of(header), 0);
  if (error == 0 && ::fsync(file.get()) != 0) error = errno;
  if (error == 0 && ::rename(unfinished.c_str(), name) != 0) error = errno;
  if (error == 0) error = base::sync_directory(folder_of(segment.path_).c_str());
  try {
    if (error != 0) segment.fail("cannot be made", error);
    segment.open_to_write();
  } catch (...) {
    ::unlink(unfinished.c_str());  // it may hold the last free bytes of a disk
    ::unlink(name);
    throw;
  }
  return segment;
}

LogSegment LogSegment::open(std::string path, std::uint64_t identity, LogWrites writes) {
  LogSegment segment;
  segment.path_ = std::move(path);
  segment.writes_ = writes;
  segment.identity_ = identity;
  segment.file_ = base::FileDescriptor(::open(segment.path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!segment.file_) segment.fail("cannot be opened", errno);
  LogSegmentHeader header;
  std::size_t size = sizeof header;
  int error = base::read_at(segment.file_.get(), reinterpret_cast<char*>(&header), size, 0);
  if (error != 0) segment.fail("cannot be read", error);
  if (size < sizeof header) throw StoreError("the log " + segment.path_ + " has been cut short");
  if (header.magic != LogSegmentHeader{}.magic || header.checksum != queue::checksum_of(header))
    throw StoreError("the log " + segment.path_ + " is damaged: its header is broken");
  if (header.version != LogSegmentHeader{}.version) {
    throw StoreError("the log " + segment.path_ + " was made by another version of Carillon: its " +
                     "version is " + std::to_string(header.version));
  }
  if (header.identity != identity)
    throw StoreError("the log " + segment.path_ + " does not belong to this data directory");
  segment.blocks_ = header.blocks;
  segment.serial_ = header.serial;
  segment.first_ = header.first;
  segment.close();
  return segment;
}

// Not every file system can write past the page cache. Then the same writes go through it.
void LogSegment::open_to_write() {
  const int durable = writes_ == LogWrites::kDurable ? O_DSYNC : 0;
  const int direct = writes_ == LogWrites::kDurable ? O_DIRECT : 0;
  const int flags = O_RDWR | O_CLOEXEC | durable;
  file_ = base::FileDescriptor(::open(path_.c_str(), flags | direct));
  if (!file_ && direct != 0) file_ = base::FileDescriptor(::open(path_.c_str(), flags));
  if (!file_) fail("cannot be opened", errno);
}

LogSegmentHeader LogSegment::header() const {
  LogSegmentHeader header{
      .blocks = blocks_, .identity = identity_, .serial = serial_, .first = first_};
  header.checksum = queue::checksum_of(header);
  return header;
}

void LogSegment::write_header() const {
  const BlockBytes block = zeros(kBlock);
  const LogSegmentHeader header = this->header();
  std::memcpy(block.get(), &header, sizeof header);
  write_blocks({block.get(), kBlock}, 0);
  sync();
}

std::uint32_t LogSegment::checksum_of(std::uint32_t block, std::string_view behind) const {
  return base::crc32c(base::crc32c(0, bytes_of(Seed{identity_, serial_, block})), behind);
}

void LogSegment::write(char* bytes, std::size_t size, std::uint32_t block) const {
  LogRecordHead head;
  std::memcpy(&head, bytes, sizeof head);
  const std::string_view record(bytes, sizeof head + head.size);
  head.checksum = checksum_of(block, record.substr(sizeof head.checksum));
  std::memcpy(bytes, &head.checksum, sizeof head.checksum);
  write_blocks({bytes, size}, block);
}

void LogSegment::write_blocks(std::string_view bytes, std::uint32_t block) const {
  const std::uint64_t at = std::uint64_t{block} * kBlock;
  int error = base::write_at(file_.get(), bytes, at);
  // The file could be opened to be written past the page cache, but the file system wants other
  // sizes than our blocks for it.
  const int flags = error == EINVAL ? ::fcntl(file_.get(), F_GETFL) : 0;
  if ((flags & O_DIRECT) != 0 && ::fcntl(file_.get(), F_SETFL, flags & ~O_DIRECT) == 0)
    error = base::write_at(file_.get(), bytes, at);
  if (error != 0) fail("cannot be written", error);
}

void LogSegment::sync() const {
  if (writes_ == LogWrites::kDurable || !is_open()) return;
  if (::fdatasync(file_.get()) != 0) fail("cannot be synced", errno);
}

// What is read may be in the page cache alone: if only the process has died, or after a failed
// sync, which no later sync makes good. So it is written again.
std::string LogSegment::read() const {
  const base::FileDescriptor file(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) fail("cannot be opened", errno);
  std::string bytes(this->bytes(), '\0');
  std::size_t size = bytes.size();
  if (const int error = base::read_at(file.get(), bytes.data(), size, 0); error != 0)
    fail("cannot be read", error);
  if (size != bytes.size()) throw StoreError("the log " + path_ + " has been cut short");
  if (const int error = base::write_at(file.get(), bytes, 0); error != 0)
    fail("cannot be written", error);
  if (::fdatasync(file.get()) != 0) fail("cannot be synced", errno);
  return bytes;
}

std::optional<LogSegment::Record> LogSegment::record_at(std::string_view bytes,
                                                        std::uint32_t block) const {
  if (block >= blocks_) return std::nullopt;
  const std::string_view from = bytes.substr(std::size_t{block} * kBlock);
  Record record;
  std::memcpy(&record.head, from.data(), sizeof record.head);
  if (record.head.size > from.size() - sizeof record.head) return std::nullopt;
  const std::string_view covered =
      from.substr(sizeof record.head.checksum,
                  sizeof record.head - sizeof record.head.checksum + record.head.size);
  if (record.head.checksum != checksum_of(block, covered)) return std::nullopt;
  if (record.head.version != LogRecordHead{}.version) {
    throw StoreError("the log " + path_ + " has a record of version " +
                     std::to_string(record.head.version) + ", which this version does not know");
  }
  record.changes = from.substr(sizeof record.head, record.head.size);
  return record;
}

}  // namespace carillon::queue
