// The bytes of newest.data.

#include "queue/store/log/newest_file.h"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "base/crc32c.h"
#include "base/file_io.h"
#include "carillon/queue/store.h"
#include "queue/store/format_version.h"

namespace carillon::queue {

namespace {

constexpr std::size_t kBlock = 4096;
using DiskBlock = std::array<char, kBlock>;

struct Content {
  std::array<char, 16> magic{'c', 'a', 'r', 'i', 'l', 'l', 'o', 'n', ' ', 'n', 'e', 'w'};
  std::uint32_t version = kFormatVersion;
  std::uint32_t zero = 0;
  std::uint64_t identity = 0;
  NewestFile::Segment segment;
  std::uint32_t zero_too = 0;
  std::uint32_t checksum = 0;  // covers the fields above
};

std::uint32_t checksum_of(const Content& content) {
  static_assert(std::has_unique_object_representations_v<Content>);
  const std::string_view bytes(reinterpret_cast<const char*>(&content), sizeof content);
  return base::crc32c(0, bytes.substr(0, offsetof(Content, checksum)));
}

bool is_whole(const Content& content) {
  return content.magic == Content{}.magic && content.checksum == checksum_of(content);
}

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw StoreError("the log's file " + path + " " + what);
}

}  // namespace

NewestFile::NewestFile(const base::Directory& directory, std::uint64_t identity)
    : NewestFile(directory, identity, 0) {}

NewestFile::NewestFile(const base::Directory& directory, std::uint64_t identity, int flags)
    : path_(directory.path_of(kName)),
      identity_(identity),
      file_(directory.open(kName, O_RDWR | O_DSYNC | O_CLOEXEC | flags, 0644)) {
  if (!file_) fail(path_, std::string("cannot be opened: ") + std::strerror(errno));
}

// As with a segment, the first block is there before anything is written to it.
void NewestFile::make(const base::Directory& directory, std::uint64_t identity,
                      const Segment& segment) {
  const NewestFile file(directory, identity, O_CREAT | O_TRUNC);
  file.write_block(DiskBlock{}.data());
  file.write(segment);
  if (const int error = directory.sync(); error != 0)
    fail(file.path_, std::string("cannot be made: ") + std::strerror(error));
}

void NewestFile::write(const Segment& segment) const {
  Content content{.identity = identity_, .segment = segment};
  content.checksum = checksum_of(content);
  DiskBlock block{};
  std::memcpy(block.data(), &content, sizeof content);
  write_block(block.data());
}

void NewestFile::write_block(const char* block) const {
  if (const int error = base::write_at(file_.get(), {block, kBlock}, 0); error != 0)
    fail(path_, std::string("cannot be written: ") + std::strerror(error));
}

NewestFile::Segment NewestFile::read(const base::Directory& directory, std::uint64_t identity) {
  const std::string path = directory.path_of(kName);
  const base::FileDescriptor file = directory.open(kName, O_RDONLY | O_CLOEXEC);
  if (!file && errno == ENOENT)
    fail(path, "is gone, which says which file of the log is the newest");
  if (!file) fail(path, std::string("cannot be opened: ") + std::strerror(errno));
  Content content;
  std::size_t size = sizeof content;
  for (int reads = 0; reads < 2 && !is_whole(content); ++reads) {
    size = sizeof content;
    const int error = base::read_at(file.get(), reinterpret_cast<char*>(&content), size, 0);
    if (error != 0) fail(path, std::string("cannot be read: ") + std::strerror(error));
  }
  if (size < sizeof content) fail(path, "has been cut short");
  if (!is_whole(content)) fail(path, "is damaged: its checksum is wrong");
  if (content.version != kFormatVersion) {
    fail(path, "was made by another version of Carillon: its version is " +
                   std::to_string(content.version));
  }
  if (content.identity != identity) fail(path, "does not belong to this data directory");
  return content.segment;
}

}  // namespace carillon::queue
