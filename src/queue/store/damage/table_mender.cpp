// The walk through the blocks of data, and the new end of a table.

#include "queue/store/damage/table_mender.h"

#include <lz4.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/crc32c.h"
#include "carillon/queue/store.h"
#include "queue/store/state/stored_bytes.h"
#include "queue/store/state/tagged_fields.h"

namespace carillon::queue {

namespace {

constexpr char kPlain = 0;
constexpr char kLz4 = 4;
constexpr std::size_t kSequence = 8;  // bytes at the end of each key
constexpr std::size_t kFoot = 53;

// --- Blocks, as they are read.

// A block of LZ4 behind its size. Returns nothing if the bytes are not such a block.
std::optional<std::string> decompress(std::string_view bytes) {
  constexpr std::uint64_t kMost = 256 << 20;
  std::uint64_t size = 0;
  if (!take_varint(bytes, size) || size > kMost || bytes.size() > kMost) return std::nullopt;
  std::string out(size, '\0');
  const int got = ::LZ4_decompress_safe(bytes.data(), out.data(), static_cast<int>(bytes.size()),
                                        static_cast<int>(size));
  return got == static_cast<int>(size) ? std::optional(std::move(out)) : std::nullopt;
}

// The first and the last key of a block.
struct Keys {
  std::string first;
  std::string last;
};

// Returns whether this may be a key of data: its last 8 bytes are the sequence, whose lowest byte,
// the first, is the type.
bool is_key(std::string_view key) {
  constexpr std::string_view kTypes("\x00\x01\x11", 3);  // an erasure, a value, a large body
  return key.size() >= kSequence && kTypes.find(key[key.size() - kSequence]) != kTypes.npos;
}

std::string_view without_sequence(std::string_view key) {
  return key.substr(0, key.size() - kSequence);
}

// Returns nothing if the block has other things than entries in the order of their keys.
std::optional<Keys> keys_of(std::string_view block) {
  constexpr std::size_t kNumber = sizeof(std::uint32_t);
  if (block.size() < kNumber) return std::nullopt;
  const std::size_t restarts = number_at<std::uint32_t>(block, block.size() - kNumber);
  if (restarts == 0 || restarts > block.size() / kNumber - 1) return std::nullopt;
  block.remove_suffix((restarts + 1) * kNumber);
  Keys keys;
  std::string key;
  while (!block.empty()) {
    std::uint64_t shared = 0;
    std::uint64_t added = 0;
    std::uint64_t value = 0;
    if (!take_varint(block, shared) || !take_varint(block, added) || !take_varint(block, value) ||
        shared > key.size() || added > block.size() || value > block.size() - added)
      return std::nullopt;
    key.resize(shared);
    key.append(block.substr(0, added));
    block.remove_prefix(added + value);
    if (!is_key(key)) return std::nullopt;
    if (keys.first.empty()) {
      keys.first = key;
    } else if (without_sequence(key) < without_sequence(keys.last)) {
      return std::nullopt;
    }
    keys.last = key;
  }
  return keys.first.empty() ? std::nullopt : std::optional(std::move(keys));
}

struct Block {
  std::size_t at = 0;
  std::size_t size = 0;  // without its type and checksum
  Keys keys;
  std::size_t end() const { return at + size + 1 + sizeof(std::uint32_t); }
};

// Returns how many bytes from `at` on form a block, by its checksum. Returns nothing if the block
// would have more than `most` bytes.
std::optional<std::size_t> size_at(std::string_view bytes, std::size_t at, std::size_t most) {
  std::uint32_t crc = 0;
  for (std::size_t size = 0; size <= most && at + size + 5 <= bytes.size(); ++size) {
    crc = base::crc32c(crc, bytes.substr(at + size, 1));
    const char type = bytes[at + size];
    if ((type == kPlain || type == kLz4) &&
        masked(crc) == number_at<std::uint32_t>(bytes, at + size + 1))
      return size;
  }
  return std::nullopt;
}

std::optional<Keys> keys_of_block(std::string_view bytes, std::size_t at, std::size_t size) {
  const std::string_view block = bytes.substr(at, size);
  if (bytes[at + size] == kPlain) return keys_of(block);
  const auto plain = bytes[at + size] == kLz4 ? decompress(block) : std::nullopt;
  return plain ? keys_of(*plain) : std::nullopt;
}

// Returns whether a block may begin so: the key of its first entry shares nothing, and has a
// sequence. LZ4 keeps these two bytes as they are: they differ, and nothing comes before them.
bool may_be_block(std::string_view bytes) {
  const auto begins_entry = [](std::string_view in) {
    return in.size() > 1 && in[0] == 0 && static_cast<std::uint8_t>(in[1]) >= kSequence;
  };
  std::uint64_t size = 0;
  if (begins_entry(bytes)) return true;
  if (!take_varint(bytes, size) || bytes.empty()) return false;
  const unsigned literals = static_cast<std::uint8_t>(bytes.front()) >> 4;
  bytes.remove_prefix(1);
  if (literals == 15) {  // the rest of their number follows, up to a byte that is not 255
    bytes.remove_prefix(std::min(bytes.find_first_not_of('\xff'), bytes.size()));
    if (bytes.empty()) return false;
    bytes.remove_prefix(1);
  }
  return literals > 1 && begins_entry(bytes);
}

// Searches behind damage that begins at `from` for the next place where a block begins.
std::optional<Block> next_block(std::string_view bytes, std::size_t from) {
  constexpr std::size_t kReach = 32 << 10;
  const std::size_t end = std::min(from + kReach, bytes.size());
  for (std::size_t at = from + 1; at < end; ++at) {
    if (!may_be_block(bytes.substr(at))) continue;
    const auto size = size_at(bytes, at, kReach);
    if (!size) continue;
    if (auto keys = keys_of_block(bytes, at, *size)) return Block{at, *size, std::move(*keys)};
  }
  return std::nullopt;
}

// The data ends at a whole block without entries: that block belongs to a filter.
std::vector<Block> find_blocks(std::string_view bytes, MendedTable& mended) {
  constexpr std::size_t kLargest = 4 << 20;
  std::vector<Block> blocks;
  for (std::size_t at = 0; at < bytes.size(); at = blocks.back().end()) {
    std::optional<Block> block;
    const auto size = size_at(bytes, at, kLargest);
    if (!size) {
      block = next_block(bytes, at);
    } else if (auto keys = keys_of_block(bytes, at, *size)) {
      block = Block{at, *size, std::move(*keys)};
    }
    if (!block) break;
    const std::string first(without_sequence(block->keys.first));
    if (blocks.empty()) mended.first = first;
    if (first < mended.last) break;
    if (!size && !blocks.empty()) mended.gaps.emplace_back(mended.last, first);
    mended.last = without_sequence(block->keys.last);
    blocks.push_back(std::move(*block));
  }
  return blocks;
}

// --- Blocks, as they are written.

using Entries = std::vector<std::pair<std::string, std::string>>;

std::string handle_of(std::uint64_t at, std::uint64_t size) {
  std::string handle;
  append_varint(handle, at);
  append_varint(handle, size);
  return handle;
}

// Appends a block with the entries, in their order, to the table. Returns its handle.
std::string append_block(std::string& table, const Entries& entries) {
  const std::size_t begin = table.size();
  std::string restarts;
  for (const auto& [key, value] : entries) {
    append_number(restarts, static_cast<std::uint32_t>(table.size() - begin));
    append_varint(table, 0);
    append_varint(table, key.size());
    append_varint(table, value.size());
    table.append(key).append(value);
  }
  append_number(restarts, static_cast<std::uint32_t>(entries.size()));
  table += restarts;
  const std::size_t size = table.size() - begin;
  table += kPlain;
  append_number(table, masked(base::crc32c(0, std::string_view(table).substr(begin))));
  return handle_of(begin, size);
}

// The copy has two ends: one where the MANIFEST's size puts it, one at the end of the file. A state
// uses the first one, and a lone reader the second one.
void replace_end(std::string& table, std::size_t written, const std::vector<Block>& blocks) {
  constexpr char kCrc32c = 1;
  constexpr std::size_t kHandles = 40;
  constexpr std::uint32_t kVersion = 5;
  constexpr std::uint64_t kMagic = 0x88e241b785f4cff7;
  Entries index;
  for (const Block& block : blocks)
    index.emplace_back(block.keys.last, handle_of(block.at, block.size));
  const std::string index_handle = append_block(table, index);
  const std::string properties =
      append_block(table, {{"rocksdb.block.based.table.index.type", std::string(4, '\0')},
                           {"rocksdb.comparator", "leveldb.BytewiseComparator"}});
  const std::string names = append_block(table, {{"rocksdb.properties", properties}});
  std::string foot(1, kCrc32c);
  foot += names + index_handle;
  foot.resize(1 + kHandles);
  append_number(foot, kVersion);
  append_number(foot, kMagic);
  table.replace(written - kFoot, kFoot, foot);
  table += foot;
}

}  // namespace

std::optional<MendedTable> mend_table(std::string table, std::uint64_t written,
                                      const std::string& to) {
  if (written <= kFoot) return std::nullopt;
  MendedTable mended;
  const std::vector<Block> blocks =
      find_blocks(std::string_view(table).substr(0, written - kFoot), mended);
  if (blocks.empty()) return std::nullopt;
  table.resize(std::max<std::size_t>(table.size(), written));
  replace_end(table, written, blocks);
  write_file(to, table);
  return mended;
}

}  // namespace carillon::queue
