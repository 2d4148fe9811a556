// Stamps, checksums, and the changes of a record.

#include "queue/store/log/log_record.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "base/crc32c.h"

namespace carillon::queue {

namespace {

template <typename Plain>
std::string_view bytes_of(const Plain& plain) {
  static_assert(std::has_unique_object_representations_v<Plain>);
  return {reinterpret_cast<const char*>(&plain), sizeof plain};
}

constexpr std::size_t kCovered = offsetof(LogRecordHead, changes);

std::uint32_t checksum_of(const LogRecordHead& head, const LogPlace& place) {
  return base::crc32c(base::crc32c(0, bytes_of(place)), bytes_of(head).substr(kCovered));
}

// Calls `each` for the pieces into which the stamps cut the changes.
template <typename Each>
void for_each_piece(const char* record, std::size_t size, Each&& each) {
  std::size_t at = sizeof(LogRecordHead);
  const std::size_t end = at + size;
  while (at < end) {
    const std::size_t left = kLogSectorBytes - at % kLogSectorBytes;
    const std::string_view piece(record + log_offset(at), std::min(left, end - at));
    each(piece);
    at += piece.size();
  }
}

std::uint32_t checksum_of_changes(const char* record, std::size_t size) {
  std::uint32_t checksum = 0;
  for_each_piece(record, size,
                 [&](std::string_view piece) { checksum = base::crc32c(checksum, piece); });
  return checksum;
}

// One bit of a stamp may be wrong: any two stamps, and a stamp and zeros, differ in more bits.
bool is_stamped(std::string_view bytes, std::size_t sector, std::uint32_t stamp) {
  std::uint32_t found = 0;
  std::memcpy(&found, bytes.data() + sector * kLogSector + kLogSectorBytes, sizeof found);
  return std::popcount(found ^ stamp) <= 1;
}

}  // namespace

std::uint32_t LogPlace::stamp() const {
  constexpr std::uint32_t kNotZero = 0x8000'0101;
  return base::crc32c(0, bytes_of(LogPlace{.life = life, .serial = serial})) | kNotZero;
}

std::uint32_t seal_log_record(char* bytes, const LogPlace& place) {
  LogRecordHead head;
  std::memcpy(&head, bytes, sizeof head);
  const std::uint32_t stamp = place.stamp();
  const std::size_t sectors = log_sectors(head.size);
  for (std::size_t sector = 0; sector < sectors; ++sector)
    std::memcpy(bytes + sector * kLogSector + kLogSectorBytes, &stamp, sizeof stamp);
  head.changes = checksum_of_changes(bytes, head.size);
  head.checksum = checksum_of(head, place);
  std::memcpy(bytes, &head, sizeof head);
  return head.checksum;
}

LogFound find_log_record(std::string_view bytes, const LogPlace& place, LogRecord& record) {
  const std::uint32_t stamp = place.stamp();
  if (bytes.size() < kLogSector || !is_stamped(bytes, 0, stamp)) return LogFound::kNothing;
  LogRecordHead& head = record.head;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.checksum != checksum_of(head, place)) return LogFound::kDamage;
  const std::size_t sectors = log_sectors(head.size);
  if (sectors * kLogSector > bytes.size()) return LogFound::kDamage;
  for (std::size_t sector = 1; sector < sectors; ++sector) {
    if (!is_stamped(bytes, sector, stamp)) return LogFound::kTorn;
  }
  if (head.changes != checksum_of_changes(bytes.data(), head.size)) return LogFound::kDamage;
  record.changes.clear();
  record.changes.reserve(head.size);
  for_each_piece(bytes.data(), head.size,
                 [&](std::string_view piece) { record.changes.append(piece); });
  return LogFound::kRecord;
}

bool has_log_stamp(std::string_view bytes, const LogPlace& place) {
  const std::uint32_t stamp = place.stamp();
  for (std::size_t sector = 0; sector < bytes.size() / kLogSector; ++sector) {
    if (is_stamped(bytes, sector, stamp)) return true;
  }
  return false;
}

bool for_each_change(const LogRecord& record, const Log::Each& each) {
  std::string_view bytes = record.changes;
  for (std::uint32_t n = 0; n < record.head.count; ++n) {
    std::uint32_t size = 0;
    if (bytes.size() < sizeof size) return false;
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes.remove_prefix(sizeof size);
    if (bytes.size() < size) return false;
    each(record.head.first + n, bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return bytes.empty();
}

}  // namespace carillon::queue
