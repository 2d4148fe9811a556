// The ring of blocks: where a record goes, what is in it, and what of it can be read again.

#include "queue/store/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>
#include <new>
#include <type_traits>
#include <utility>

#include "base/crc32c.h"
#include "base/file_io.h"
#include "carillon/queue/store.h"

namespace carillon::queue {

namespace {

// Numbers stand in the file as they do in memory: a data directory does not move between machines
// of different byte orders.
struct FileHeader {
  std::array<char, 16> magic{'c', 'a', 'r', 'i', 'l', 'l', 'o', 'n',
                             '-', 'j', 'o', 'u', 'r', 'n', 'a', 'l'};
  std::uint64_t identity = 0;
  std::uint32_t blocks = 0;
  std::uint32_t checksum = 0;
};

struct RecordHeader {
  std::uint32_t checksum = 0;
  std::uint32_t size = 0;
  std::uint64_t number = 0;
};

// What a record's checksum begins with.
struct Seed {
  std::uint64_t identity;
  std::uint64_t number;
  std::uint32_t block;
  std::uint32_t size;
};

template <typename Plain>
std::string_view bytes_of(const Plain& plain) {
  static_assert(std::has_unique_object_representations_v<Plain>);
  return {reinterpret_cast<const char*>(&plain), sizeof plain};
}

FileHeader header_of(std::uint64_t identity, std::uint32_t blocks) {
  FileHeader header{.identity = identity, .blocks = blocks};
  header.checksum = base::crc32c(0, bytes_of(header).substr(0, offsetof(FileHeader, checksum)));
  return header;
}

std::uint32_t checksum_of(const Seed& seed, std::string_view bytes) {
  return base::crc32c(base::crc32c(0, bytes_of(seed)), bytes);
}

std::uint32_t blocks_for(std::size_t bytes) {
  return static_cast<std::uint32_t>((sizeof(RecordHeader) + bytes + Journal::kBlock - 1) /
                                    Journal::kBlock);
}

// Returns an errno.
int make_file(const std::string& path, std::string_view bytes) {
  const base::FileDescriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file) return errno;
  if (const int error = base::write_at(file.get(), bytes, 0); error != 0) return error;
  if (::fsync(file.get()) != 0) return errno;
  const std::string directory = path.substr(0, path.rfind('/') + 1);
  return base::sync_directory(directory.c_str());
}

}  // namespace

void Journal::make(const std::string& path, std::uint64_t identity, std::uint32_t blocks) {
  std::string bytes(bytes_of(header_of(identity, blocks)));
  bytes.resize(blocks * kBlock);
  if (const int error = make_file(path, bytes); error != 0) {
    ::unlink(path.c_str());  // of a full disk it would be the last
    throw StoreError("the journal " + path + " cannot be made: " + std::strerror(error));
  }
}

Journal::Journal(std::string path, std::uint64_t identity, std::uint64_t applied)
    : path_(std::move(path)),
      identity_(identity),
      buffer_(static_cast<char*>(std::aligned_alloc(kBlock, blocks_for(kLargest) * kBlock))),
      used_(blocks_for(kLargest) * kBlock),
      last_(applied),
      released_(applied) {
  if (!buffer_) throw std::bad_alloc();
  file_ = base::FileDescriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_ && errno == ENOENT)
    throw StoreError(message("is missing; restore the whole directory from one copy"));
  if (!file_) throw StoreError(message(std::string("cannot be opened: ") + std::strerror(errno)));
  recover(read(), applied);
  // Not every file system can write past the page cache. Then the same writes go through it.
  const int flags = O_RDWR | O_DSYNC | O_CLOEXEC;
  file_ = base::FileDescriptor(::open(path_.c_str(), flags | O_DIRECT));
  if (!file_) file_ = base::FileDescriptor(::open(path_.c_str(), flags));
  if (!file_) throw StoreError(message(std::string("cannot be opened: ") + std::strerror(errno)));
}

std::string Journal::message(const std::string& what) const {
  return "the journal " + path_ + " " + what;
}

// The whole file.
std::string Journal::read() const {
  const auto read = [this](std::size_t size) {
    std::string bytes(size, '\0');
    const int error = base::read_at(file_.get(), bytes.data(), size, 0);
    if (error != 0)
      throw StoreError(message(std::string("cannot be read: ") + std::strerror(error)));
    bytes.resize(size);
    return bytes;
  };
  FileHeader header;
  const std::string first = read(sizeof header);
  if (first.size() < sizeof header) throw StoreError(message("has been cut short"));
  std::memcpy(&header, first.data(), sizeof header);
  if (first != bytes_of(header_of(identity_, header.blocks))) {
    throw StoreError(message("is not the one that belongs to this database"));
  }
  std::string bytes = read(header.blocks * kBlock);
  if (bytes.size() != header.blocks * kBlock) throw StoreError(message("has been cut short"));
  return bytes;
}

void Journal::recover(std::string_view bytes, std::uint64_t applied) {
  blocks_ = static_cast<std::uint32_t>(bytes.size() / kBlock);
  begins_.resize(blocks_);
  std::map<std::uint64_t, std::uint32_t> found;  // by number: the block at which it begins
  const auto record_at = [bytes](std::uint32_t block) {
    RecordHeader record;
    std::memcpy(&record, bytes.data() + block * kBlock, sizeof record);
    return record;
  };
  const auto contents_at = [bytes](std::uint32_t block, const RecordHeader& record) {
    return bytes.substr(block * kBlock + sizeof record, record.size);
  };
  for (std::uint32_t block = 1; block < blocks_; ++block) {
    const RecordHeader record = record_at(block);
    if (record.number <= applied || record.size > kLargest ||
        block + blocks_for(record.size) > blocks_)
      continue;
    const Seed seed{identity_, record.number, block, record.size};
    if (record.checksum == checksum_of(seed, contents_at(block, record)))
      found.emplace(record.number, block);
  }
  for (const auto& [number, block] : found) {
    if (number != last_ + 1) {
      throw StoreError(message("is damaged: it has record " + std::to_string(number) +
                               " but not record " + std::to_string(last_ + 1) +
                               ", which was durable before"));
    }
    const RecordHeader record = record_at(block);
    recovered_.emplace_back(contents_at(block, record));
    begins_[number % blocks_] = block;
    next_ = block + blocks_for(record.size);
    last_ = number;
  }
}

// Where a record of so many bytes would go; nowhere if there is no room.
std::optional<Journal::Place> Journal::place(std::size_t bytes) const {
  const std::uint32_t blocks = blocks_for(bytes);
  const std::uint64_t released = released_.load(std::memory_order_acquire);
  const bool to_end = next_ + blocks <= blocks_;
  if (released >= last_) return Place{to_end ? next_ : 1, blocks};  // no record is to be kept
  const std::uint32_t oldest = begins_[(released + 1) % blocks_];
  if (next_ <= oldest)
    return next_ + blocks <= oldest ? std::optional(Place{next_, blocks}) : std::nullopt;
  if (to_end) return Place{next_, blocks};
  return 1 + blocks <= oldest ? std::optional(Place{1, blocks}) : std::nullopt;
}

bool Journal::has_room(std::size_t bytes) const {
  return place(bytes).has_value();
}

bool Journal::nearly_full() const {
  const std::uint64_t released = released_.load(std::memory_order_acquire);
  if (released >= last_) return false;
  const std::uint32_t oldest = begins_[(released + 1) % blocks_];
  const std::uint32_t used = (next_ + blocks_ - oldest) % blocks_;  // 0: all of them
  return used == 0 || used > blocks_ / 4 * 3;
}

std::uint64_t Journal::write(std::string_view bytes) {
  const std::optional<Place> at = place(bytes.size());
  if (!at || bytes.size() > kLargest) {
    throw StoreError(
        message("has no room for a record of " + std::to_string(bytes.size()) + " bytes"));
  }
  RecordHeader record{.size = static_cast<std::uint32_t>(bytes.size()), .number = last_ + 1};
  record.checksum = checksum_of({identity_, record.number, at->block, record.size}, bytes);
  char* const to = buffer_.get();
  std::memcpy(to, &record, sizeof record);
  std::memcpy(to + sizeof record, bytes.data(), bytes.size());
  const std::size_t used = sizeof record + bytes.size();
  if (used < used_) std::memset(to + used, 0, used_ - used);
  used_ = used;
  write_blocks(*at);
  begins_[record.number % blocks_] = at->block;
  next_ = at->block + at->blocks;
  return last_ = record.number;
}

void Journal::write_blocks(Place at) const {
  const std::string_view bytes(buffer_.get(), at.blocks * kBlock);
  const std::uint64_t offset = std::uint64_t{at.block} * kBlock;
  int error = base::write_at(file_.get(), bytes, offset);
  // It could be opened to be written past the page cache, but wants other sizes than blocks of ours
  // for it.
  const int flags = error == EINVAL ? ::fcntl(file_.get(), F_GETFL) : 0;
  if ((flags & O_DIRECT) != 0 && ::fcntl(file_.get(), F_SETFL, flags & ~O_DIRECT) == 0) {
    error = base::write_at(file_.get(), bytes, offset);
  }
  if (error != 0)
    throw StoreError(message(std::string("cannot be written: ") + std::strerror(error)));
}

}  // namespace carillon::queue
