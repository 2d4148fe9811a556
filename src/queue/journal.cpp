// The ring of blocks: where a record goes, what is in it, and what of it can be read again.

#include "queue/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>
#include <new>
#include <type_traits>
#include <utility>

#include "carillon/queue/store.h"
#include "queue/crc32c.h"
#include "queue/write_at.h"

namespace carillon::queue {

namespace {

constexpr std::size_t kFileBytes = Journal::kBlock * Journal::kBlocks;

// Numbers stand in the file as they do in memory: a data directory does not move between machines of different byte orders.
struct FileHeader {
  std::array<char, 16> magic{'c', 'a', 'r', 'i', 'l', 'l', 'o', 'n', '-', 'j', 'o', 'u', 'r', 'n', 'a', 'l'};
  std::uint64_t identity = 0;
  std::uint32_t blocks = Journal::kBlocks;
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

FileHeader header_of(std::uint64_t identity) {
  FileHeader header{.identity = identity};
  header.checksum = crc32c(0, bytes_of(header).substr(0, offsetof(FileHeader, checksum)));
  return header;
}

std::uint32_t checksum_of(const Seed& seed, std::string_view bytes) {
  return crc32c(crc32c(0, bytes_of(seed)), bytes);
}

std::uint32_t blocks_for(std::size_t bytes) {
  return static_cast<std::uint32_t>((sizeof(RecordHeader) + bytes + Journal::kBlock - 1) / Journal::kBlock);
}

// Returns an errno.
int make_file(const std::string& path, std::string_view bytes) {
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file) return errno;
  if (const int error = write_at(file.get(), bytes, 0); error != 0) return error;
  if (::fsync(file.get()) != 0) return errno;
  const std::string directory = path.substr(0, path.rfind('/') + 1);
  const FileDescriptor names(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return names && ::fsync(names.get()) == 0 ? 0 : errno;
}

// The whole file, or as much as there is. Returns an errno.
int read_file(int fd, std::string& bytes) {
  bytes.resize(kFileBytes);
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = ::pread(fd, bytes.data() + size, bytes.size() - size, static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  bytes.resize(size);
  return 0;
}

}  // namespace

void Journal::make(const std::string& path, std::uint64_t identity) {
  std::string bytes(bytes_of(header_of(identity)));
  bytes.resize(kFileBytes);
  if (const int error = make_file(path, bytes); error != 0) {
    throw StoreError("the journal " + path + " cannot be made: " + std::strerror(error));
  }
}

Journal::Journal(std::string path, std::uint64_t identity, std::uint64_t applied)
    : path_(std::move(path)),
      identity_(identity),
      buffer_(static_cast<char*>(std::aligned_alloc(kBlock, blocks_for(kLargest) * kBlock))),
      last_(applied),
      released_(applied) {
  if (!buffer_) throw std::bad_alloc();
  file_ = FileDescriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_) throw StoreError(message(std::string("cannot be opened: ") + std::strerror(errno)));
  read(applied);
  // Not every file system can write past the page cache. Then the same writes go through it.
  const int flags = O_RDWR | O_DSYNC | O_CLOEXEC;
  file_ = FileDescriptor(::open(path_.c_str(), flags | O_DIRECT));
  if (!file_) file_ = FileDescriptor(::open(path_.c_str(), flags));
  if (!file_) throw StoreError(message(std::string("cannot be opened: ") + std::strerror(errno)));
}

std::string Journal::message(const std::string& what) const {
  return "the journal " + path_ + " " + what;
}

void Journal::read(std::uint64_t applied) {
  std::string bytes;
  if (const int error = read_file(file_.get(), bytes); error != 0) {
    throw StoreError(message(std::string("cannot be read: ") + std::strerror(error)));
  }
  const FileHeader header = header_of(identity_);
  if (bytes.size() != kFileBytes) throw StoreError(message("has been cut short"));
  if (std::string_view(bytes).substr(0, sizeof header) != bytes_of(header)) {
    throw StoreError(message("is not the one that belongs to this database"));
  }

  std::map<std::uint64_t, std::uint32_t> found;  // by number: the block at which it begins
  const auto record_at = [&bytes](std::uint32_t block) {
    RecordHeader record;
    std::memcpy(&record, bytes.data() + block * kBlock, sizeof record);
    return record;
  };
  const auto contents_at = [&bytes](std::uint32_t block, const RecordHeader& record) {
    return std::string_view(bytes).substr(block * kBlock + sizeof record, record.size);
  };
  for (std::uint32_t block = 1; block < kBlocks; ++block) {
    const RecordHeader record = record_at(block);
    if (record.number <= applied || record.size > kLargest || block + blocks_for(record.size) > kBlocks) continue;
    const Seed seed{identity_, record.number, block, record.size};
    if (record.checksum == checksum_of(seed, contents_at(block, record))) found.emplace(record.number, block);
  }
  for (const auto& [number, block] : found) {
    if (number != last_ + 1) {
      throw StoreError(message("is damaged: it has record " + std::to_string(number) + " but not record " +
                               std::to_string(last_ + 1) + ", which was durable before"));
    }
    const RecordHeader record = record_at(block);
    recovered_.emplace_back(contents_at(block, record));
    begins_[number % kBlocks] = block;
    next_ = block + blocks_for(record.size);
    last_ = number;
  }
}

// Where a record of so many bytes would go; nowhere if there is no room.
std::optional<Journal::Place> Journal::place(std::size_t bytes) const {
  const std::uint32_t blocks = blocks_for(bytes);
  const std::uint64_t released = released_.load(std::memory_order_acquire);
  const bool to_end = next_ + blocks <= kBlocks;
  if (released >= last_) return Place{to_end ? next_ : 1, blocks};  // no record is to be kept
  const std::uint32_t oldest = begins_[(released + 1) % kBlocks];
  if (next_ <= oldest) return next_ + blocks <= oldest ? std::optional(Place{next_, blocks}) : std::nullopt;
  if (to_end) return Place{next_, blocks};
  return 1 + blocks <= oldest ? std::optional(Place{1, blocks}) : std::nullopt;
}

bool Journal::has_room(std::size_t bytes) const {
  return place(bytes).has_value();
}

bool Journal::half_full() const {
  const std::uint64_t released = released_.load(std::memory_order_acquire);
  if (released >= last_) return false;
  const std::uint32_t oldest = begins_[(released + 1) % kBlocks];
  const std::uint32_t used = (next_ + kBlocks - oldest) % kBlocks;  // 0: all of them
  return used == 0 || used > kBlocks / 2;
}

std::uint64_t Journal::write(std::string_view bytes) {
  const std::optional<Place> at = place(bytes.size());
  if (!at || bytes.size() > kLargest) {
    throw StoreError(message("has no room for a record of " + std::to_string(bytes.size()) + " bytes"));
  }
  RecordHeader record{.size = static_cast<std::uint32_t>(bytes.size()), .number = last_ + 1};
  record.checksum = checksum_of({identity_, record.number, at->block, record.size}, bytes);
  char* const to = buffer_.get();
  std::memcpy(to, &record, sizeof record);
  std::memcpy(to + sizeof record, bytes.data(), bytes.size());
  const std::size_t used = sizeof record + bytes.size();
  std::memset(to + used, 0, at->blocks * kBlock - used);
  write_blocks(*at);
  begins_[record.number % kBlocks] = at->block;
  next_ = at->block + at->blocks;
  return last_ = record.number;
}

void Journal::write_blocks(Place at) const {
  const std::string_view bytes(buffer_.get(), at.blocks * kBlock);
  const std::uint64_t offset = std::uint64_t{at.block} * kBlock;
  int error = write_at(file_.get(), bytes, offset);
  // It could be opened to be written past the page cache, but wants other sizes than blocks of ours for it.
  const int flags = error == EINVAL ? ::fcntl(file_.get(), F_GETFL) : 0;
  if ((flags & O_DIRECT) != 0 && ::fcntl(file_.get(), F_SETFL, flags & ~O_DIRECT) == 0) {
    error = write_at(file_.get(), bytes, offset);
  }
  if (error != 0) throw StoreError(message(std::string("cannot be written: ") + std::strerror(error)));
}

}  // namespace carillon::queue
