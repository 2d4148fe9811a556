// The ring of blocks, read once.

#include "queue/store/old_journal.h"

#include <fcntl.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>
#include <type_traits>

#include "base/crc32c.h"
#include "base/file_descriptor.h"
#include "base/file_io.h"
#include "carillon/queue/store.h"

namespace carillon::queue {

namespace {

constexpr std::size_t kBlock = 4'096;
constexpr std::size_t kLargest = 64 << 10;
constexpr std::string_view kMagic = "carillon-journal";
// In front of the entries: how many RocksDB had when a large window was last synced there.
using Needs = std::uint64_t;

struct Header {
  char magic[16];
  std::uint64_t identity;
  std::uint32_t blocks;
  std::uint32_t checksum;
};

struct RecordHeader {
  std::uint32_t checksum;
  std::uint32_t size;
  std::uint64_t number;
};

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

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw StoreError("the journal " + path + " " + what);
}

std::string read_file(const std::string& path) {
  const base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) fail(path, std::string("cannot be opened: ") + std::strerror(errno));
  std::error_code error_code;
  std::size_t size = std::filesystem::file_size(path, error_code);
  if (error_code) fail(path, "cannot be read: " + error_code.message());
  std::string bytes(size, '\0');
  if (const int error = base::read_at(file.get(), bytes.data(), size, 0); error != 0)
    fail(path, std::string("cannot be read: ") + std::strerror(error));
  bytes.resize(size);
  return bytes;
}

void check_header(const std::string& path, std::string_view bytes, std::uint64_t identity) {
  Header header;
  if (bytes.size() < sizeof header) fail(path, "has been cut short");
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::uint32_t checksum = base::crc32c(0, bytes.substr(0, offsetof(Header, checksum)));
  if (!bytes.starts_with(kMagic) || header.identity != identity || header.checksum != checksum)
    fail(path, "does not belong to this data directory");
  if (bytes.size() != header.blocks * kBlock) fail(path, "has been cut short");
}

}  // namespace

std::vector<std::string> read_old_journal(const std::string& path, const JournalPosition& position,
                                          std::uint64_t count) {
  const std::string file = read_file(path);
  const std::string_view bytes = file;
  check_header(path, bytes, position.identity);
  std::map<std::uint64_t, std::string_view> found;  // by number
  for (std::size_t at = kBlock; at < bytes.size(); at += kBlock) {
    RecordHeader record;
    std::memcpy(&record, bytes.data() + at, sizeof record);
    if (record.number <= position.number || record.size > kLargest || record.size < sizeof(Needs) ||
        at + sizeof record + record.size > bytes.size())
      continue;
    const std::string_view contents = bytes.substr(at + sizeof record, record.size);
    const Seed seed{position.identity, record.number, static_cast<std::uint32_t>(at / kBlock),
                    record.size};
    if (record.checksum == base::crc32c(base::crc32c(0, bytes_of(seed)), contents))
      found.emplace(record.number, contents);
  }
  std::vector<std::string> all;
  std::uint64_t last = position.number;
  for (const auto& [number, entries] : found) {
    if (number != ++last)
      fail(path, "is damaged: record " + std::to_string(last) + ", which was durable, is missing");
    Needs needs = 0;
    std::memcpy(&needs, entries.data(), sizeof needs);
    if (count < needs) fail(path, "needs changes that had been synced, and are missing");
    all.emplace_back(entries.substr(sizeof needs));
  }
  return all;
}

}  // namespace carillon::queue
