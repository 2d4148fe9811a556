// The bytes of a segment, and the system calls that write and read them.

#include "queue/store/log/log_segment.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "base/crc32c.h"
#include "base/file_io.h"
#include "carillon/require.h"
#include "queue/store/format_version.h"

namespace carillon::queue {

struct LogSegmentHeader {
  std::array<char, 16> magic{'c', 'a', 'r', 'i', 'l', 'l', 'o', 'n', ' ', 'l', 'o', 'g'};
  std::uint32_t version = kFormatVersion;
  std::uint32_t blocks = 0;
  std::uint64_t identity = 0;
  std::uint64_t life = 0;
  std::uint64_t life_before = 0;
  std::uint64_t boot = 0;
  std::uint64_t serial = 0;
  LogNumber first = 0;
  std::uint32_t before = 0;
  std::uint32_t checksum = 0;  // covers the fields above
};

namespace {

constexpr std::align_val_t kBlockAlignment{kLogBlock};

// A name that reads as data: people delete what is called a log.
constexpr std::string_view kPrefix = "jobs-";
constexpr std::string_view kSuffix = ".data";

std::string_view bytes_of(const LogSegmentHeader& header) {
  static_assert(std::has_unique_object_representations_v<LogSegmentHeader>);
  return {reinterpret_cast<const char*>(&header), sizeof header};
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

}  // namespace

BlockBytes allocate_blocks(std::size_t size) {
  CARILLON_REQUIRE(size % kLogBlock == 0, size);
  return BlockBytes(static_cast<char*>(::operator new(size, kBlockAlignment)));
}

void DeleteBlocks::operator()(char* bytes) const {
  ::operator delete(bytes, kBlockAlignment);
}

std::string LogSegment::name_of(std::uint64_t number) {
  return std::string(kPrefix) + std::to_string(number) + std::string(kSuffix);
}

std::optional<std::uint64_t> LogSegment::number_of(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(std::min(kSuffix.size(), name.size()));
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  return whole ? std::optional(number) : std::nullopt;
}

void LogSegment::fail(const char* what, int error) const {
  const std::string why = "the log's file " + path() + " " + what + ": " + std::strerror(error);
  if (std::count(base::kShortages.begin(), base::kShortages.end(), error) != 0) throw Shortage(why);
  throw StoreError(why);
}

LogSegment LogSegment::make(const base::Directory& directory, const std::string& name,
                            std::uint64_t identity, std::uint32_t blocks, LogWrites writes) {
  LogSegment segment;
  segment.directory_ = &directory;
  segment.name_ = name;
  segment.writes_ = writes;
  segment.identity_ = identity;
  segment.blocks_ = blocks;
  const std::string unfinished = name + std::string(kUnfinished);
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  const base::FileDescriptor file = directory.open(unfinished, flags, 0644);
  if (!file) segment.fail("cannot be made", errno);
  int error = write_zeros(file.get(), segment.bytes());
  const LogSegmentHeader header = segment.header();
  if (error == 0) error = base::write_at(file.get(), bytes_of(header), 0);
  if (error == 0 && ::fsync(file.get()) != 0) error = errno;
  if (error == 0) error = directory.rename_to_new(unfinished, name);
  const bool named = error == 0;
  if (error == 0) error = directory.sync();
  try {
    if (error != 0) segment.fail("cannot be made", error);
    segment.open_to_write();
  } catch (...) {
    directory.unlink(unfinished);  // it may hold the last free bytes of a disk
    if (named) directory.unlink(name);
    throw;
  }
  return segment;
}

LogSegment LogSegment::open(const base::Directory& directory, const std::string& name,
                            LogWrites writes) {
  LogSegment segment;
  segment.directory_ = &directory;
  segment.name_ = name;
  segment.writes_ = writes;
  const base::FileDescriptor file = directory.open(name, O_RDONLY | O_CLOEXEC);
  if (!file) segment.fail("cannot be opened", errno);
  const std::string path = segment.path();
  LogSegmentHeader header;
  std::size_t size = sizeof header;
  const auto is_whole = [&header] {
    return header.magic == LogSegmentHeader{}.magic &&
           header.checksum == queue::checksum_of(header);
  };
  // What fails its checksum is read once more: a bit may have changed in memory.
  for (int reads = 0; reads < 2 && !is_whole(); ++reads) {
    const int error = base::read_at(file.get(), reinterpret_cast<char*>(&header), size, 0);
    if (error != 0) segment.fail("cannot be read", error);
  }
  if (size < sizeof header) throw StoreError("the log's file " + path + " has been cut short");
  if (!is_whole()) throw StoreError("the log's file " + path + " is damaged: its header is broken");
  if (header.version != kFormatVersion) {
    throw StoreError("the log's file " + path + " was made by another version of Carillon: its " +
                     "version is " + std::to_string(header.version));
  }
  segment.identity_ = header.identity;
  segment.blocks_ = header.blocks;
  segment.use_ = {.life = header.life,
                  .life_before = header.life_before,
                  .boot = header.boot,
                  .serial = header.serial,
                  .first = header.first,
                  .before = header.before};
  return segment;
}

// Not every file system can write past the page cache. Then the same writes go through it.
void LogSegment::open_to_write() {
  const int durable = writes_ == LogWrites::kDurable ? O_DSYNC : 0;
  const int direct = writes_ == LogWrites::kDurable ? O_DIRECT : 0;
  const int flags = O_RDWR | O_CLOEXEC | durable;
  file_ = directory_->open(name_, flags | direct);
  if (!file_ && direct != 0) file_ = directory_->open(name_, flags);
  if (!file_) fail("cannot be opened", errno);
}

LogSegmentHeader LogSegment::header() const {
  LogSegmentHeader header{.blocks = blocks_,
                          .identity = identity_,
                          .life = use_.life,
                          .life_before = use_.life_before,
                          .boot = use_.boot,
                          .serial = use_.serial,
                          .first = use_.first,
                          .before = use_.before};
  header.checksum = queue::checksum_of(header);
  return header;
}

std::string LogSegment::header_of(std::uint64_t identity, std::uint32_t blocks, const LogUse& use) {
  LogSegment segment;
  segment.identity_ = identity;
  segment.blocks_ = blocks;
  segment.use_ = use;
  return std::string(bytes_of(segment.header()));
}

LogPlace LogSegment::place(std::uint32_t block) const {
  return {.life = use_.life, .serial = use_.serial, .block = block};
}

void LogSegment::write_header() const {
  const BlockBytes block = zeros(kLogBlock);
  const LogSegmentHeader header = this->header();
  std::memcpy(block.get(), &header, sizeof header);
  write_blocks({block.get(), kLogBlock}, 0);
  sync();
}

std::uint32_t LogSegment::write(char* bytes, std::size_t size, std::uint32_t block) const {
  CARILLON_REQUIRE(is_open() && size % kLogBlock == 0 && block + size / kLogBlock <= blocks_,
                   is_open(), size, block, blocks_);
  const std::uint32_t checksum = seal_log_record(bytes, place(block));
  write_blocks({bytes, size}, block);
  return checksum;
}

void LogSegment::write_blocks(std::string_view bytes, std::uint32_t block) const {
  const std::uint64_t at = std::uint64_t{block} * kLogBlock;
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

// --- Reading.

LogSegment::Bytes LogSegment::read(const base::FileDescriptor& file) const {
  if (!file) fail("cannot be opened", errno);
  Bytes bytes{.begin = allocate_blocks(this->bytes()), .size = this->bytes()};
  std::size_t size = bytes.size;
  if (const int error = base::read_at(file.get(), bytes.begin.get(), size, 0); error != 0)
    fail("cannot be read", error);
  if (size != bytes.size) throw StoreError("the log's file " + path() + " has been cut short");
  return bytes;
}

LogSegment::Bytes LogSegment::read() const {
  return read(directory_->open(name_, O_RDONLY | O_CLOEXEC));
}

// If the file system cannot read past the page cache, the cache is asked to forget the file.
LogSegment::Bytes LogSegment::read_from_disk() const {
  if (const auto file = directory_->open(name_, O_RDONLY | O_DIRECT | O_CLOEXEC)) {
    const BlockBytes block = allocate_blocks(kLogBlock);
    std::size_t size = kLogBlock;
    if (base::read_at(file.get(), block.get(), size, 0) != EINVAL) return read(file);
  }
  const base::FileDescriptor file = directory_->open(name_, O_RDONLY | O_CLOEXEC);
  if (file) ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  return read(file);
}

LogFound LogSegment::find(const Bytes& bytes, std::uint32_t block, LogRecord& record) const {
  const std::size_t at = std::size_t{block} * kLogBlock;
  return find_log_record(bytes.view().substr(at), place(block), record);
}

bool LogSegment::is_written_from(const Bytes& bytes, std::uint32_t block) const {
  const std::size_t at = std::size_t{block} * kLogBlock;
  return has_log_stamp(bytes.view().substr(at), place(block));
}

// If only the process has died, the page cache may have what the disk has not. After a failed sync
// that is for ever: no later sync writes those pages. Blocks that the disk already has are not
// written.
void LogSegment::make_durable(const Bytes& bytes, std::uint32_t end) const {
  const base::FileDescriptor file = directory_->open(name_, O_RDWR | O_CLOEXEC);
  if (!file) fail("cannot be opened", errno);
  if (::fdatasync(file.get()) != 0) fail("cannot be synced", errno);
  const Bytes on_disk = read_from_disk();
  bool wrote = false;
  LogRecord record;
  for (std::uint32_t block = 1; block < end;) {
    const bool known = find(bytes, block, record) == LogFound::kRecord;
    const auto blocks = static_cast<std::uint32_t>(known ? log_blocks(record.head.size) : 1);
    if (known && find(on_disk, block, record) != LogFound::kRecord) {
      const std::size_t at = std::size_t{block} * kLogBlock;
      const std::string_view lost = bytes.view().substr(at, blocks * kLogBlock);
      if (const int error = base::write_at(file.get(), lost, at); error != 0)
        fail("cannot be written", error);
      wrote = true;
    }
    block += blocks;
  }
  if (wrote && ::fdatasync(file.get()) != 0) fail("cannot be synced", errno);
}

}  // namespace carillon::queue
