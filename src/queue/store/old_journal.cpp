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

using Families = std::array<rocksdb::ColumnFamilyHandle*, kFamilies>;

struct EntryHead {
  std::uint32_t value_size;
  std::uint16_t key_size;
  std::uint8_t family;
  std::uint8_t is_put;
};

void add_entries(const std::string& path, std::string_view entries, const Families& families,
                 rocksdb::WriteBatch& batch) {
  while (!entries.empty()) {
    EntryHead head{};
    if (entries.size() >= sizeof head) std::memcpy(&head, entries.data(), sizeof head);
    const std::size_t size = sizeof head + head.key_size + head.value_size;
    if (entries.size() < size || head.family >= kFamilies) fail(path, "is damaged");
    const rocksdb::Slice key(entries.data() + sizeof head, head.key_size);
    const rocksdb::Slice value(key.data() + key.size(), head.value_size);
    rocksdb::ColumnFamilyHandle* const family = families[head.family];
    (head.is_put != 0 ? batch.Put(family, key, value) : batch.Delete(family, key))
        .PermitUncheckedError();
    entries.remove_prefix(size);
  }
}

// The position as RocksDB has it.
struct Position {
  std::uint64_t identity = 0;
  std::uint64_t number = 0;
};

Position read_position(const std::string& path, std::string_view bytes) {
  if (bytes.size() != 1 + sizeof(Position) || bytes[0] != 1) fail(path, "has no known position");
  Position position;
  std::memcpy(&position, bytes.data() + 1, sizeof position);
  return position;
}

}  // namespace

void add_old_journal(const std::string& path, std::string_view position_bytes, std::uint64_t count,
                     const Families& families, rocksdb::WriteBatch& batch) {
  const Position position = read_position(path, position_bytes);
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
  std::uint64_t last = position.number;
  for (const auto& [number, entries] : found) {
    if (number != ++last)
      fail(path, "is damaged: record " + std::to_string(last) + ", which was durable, is missing");
    Needs needs = 0;
    std::memcpy(&needs, entries.data(), sizeof needs);
    if (count < needs) fail(path, "needs changes that had been synced, and are missing");
    add_entries(path, entries.substr(sizeof needs), families, batch);
  }
}

}  // namespace carillon::queue
