// A file of large bodies, as RocksDB writes it (blob_log_format.h there): a head, records, and a
// foot once it is complete.
//
//   head   := magic:u32 version:u32 family:u32 expires:u8 compression:u8 zeros:16
//   record := key_size:u64 value_size:u64 expiration:u64 head_crc:u32 crc:u32 key value
//   foot   := magic:u32 records:u64 zeros:16 crc:u32
//
// The checksums are CRC-32C, masked: `head_crc` covers the three numbers, `crc` key and value, and
// the foot's `crc` the rest of the foot. The head has no checksum, but it is the same in every file
// of this store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/crc32c.h"
#include "queue/store/state/state_options.h"
#include "queue/store/state/stored_bytes.h"

namespace carillon::queue {

inline constexpr std::size_t kBlobHead = 30;
inline constexpr std::size_t kBlobFoot = 32;
inline constexpr std::size_t kBlobRecordHead = 32;
inline constexpr std::uint32_t kBlobMagic = 2395959;

inline std::string blob_head() {
  constexpr std::uint8_t kLz4 = 4;
  std::string head;
  append_number(head, kBlobMagic);
  append_number(head, std::uint32_t{1});
  append_number(head, static_cast<std::uint32_t>(kBodies));
  append_number(head, std::uint8_t{0});
  append_number(head, kLz4);
  head.resize(kBlobHead);
  return head;
}

// No reader uses the number of records.
inline std::string blob_foot() {
  std::string foot;
  append_number(foot, kBlobMagic);
  foot.resize(kBlobFoot - sizeof(std::uint32_t));
  append_number(foot, masked(base::crc32c(0, foot)));
  return foot;
}

inline bool is_blob_foot(std::string_view foot) {
  constexpr std::size_t kCovered = kBlobFoot - sizeof(std::uint32_t);
  return number_at<std::uint32_t>(foot, 0) == kBlobMagic &&
         masked(base::crc32c(0, foot.substr(0, kCovered))) ==
             number_at<std::uint32_t>(foot, kCovered);
}

}  // namespace carillon::queue
