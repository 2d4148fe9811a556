// Tagged fields: how records are written so that they can grow.
//
//   std::string bytes;
//   append_number(bytes, 1, priority);              // 0 takes no byte: a missing field is 0
//   append_bytes(bytes, 2, name);
//   ...
//   for (FieldReader fields(bytes); fields.next();) {
//     switch (fields.tag()) {
//       case 1: priority = fields.number(); break;
//       case 2: name = fields.bytes(); break;
//       default: unknown.append(fields.encoded());  // from a newer version: kept as it is
//     }
//   }
//
//   fields := field*
//   field  := varint(tag << 1)     varint(number)
//           | varint(tag << 1 | 1) varint(size) bytes
//
// A varint has seven bits in each byte, the lowest first; the highest bit of a byte says that
// another byte follows. An older version meets the fields of a newer one, and must neither lose
// them nor fail: so every field says how long it is, and what is not known is written again
// unchanged.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "carillon/require.h"

namespace carillon::queue {

inline void append_varint(std::string& bytes, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  bytes += static_cast<char>(number);
}

// Takes a varint from the front of `bytes`. Returns false if `bytes` does not begin with one; what
// `bytes` is then is undefined.
inline bool take_varint(std::string_view& bytes, std::uint64_t& number) {
  constexpr unsigned kBits = 64;
  number = 0;
  for (unsigned shift = 0; shift < kBits && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    const std::uint64_t part = byte & 0x7f;
    if (shift == 63 && part > 1) return false;  // more than 64 bits
    number |= part << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

// REQUIRES: tag >= 1.
inline void append_number(std::string& bytes, std::uint32_t tag, std::uint64_t number) {
  CARILLON_REQUIRE(tag >= 1);
  if (number == 0) return;
  append_varint(bytes, std::uint64_t{tag} << 1);
  append_varint(bytes, number);
}

inline void append_bytes(std::string& bytes, std::uint32_t tag, std::string_view field) {
  append_varint(bytes, std::uint64_t{tag} << 1 | 1);
  append_varint(bytes, field.size());
  bytes.append(field);
}

class FieldReader {
 public:
  // `bytes` must outlive the reader and what it returns.
  explicit FieldReader(std::string_view bytes) : rest_(bytes) {}

  // Goes to the next field. Returns false at the end, and where the bytes are no field: broken()
  // says which of the two.
  bool next() {
    if (rest_.empty()) return false;
    const std::string_view begin = rest_;
    std::uint64_t head = 0;
    bytes_ = {};
    broken_ = !take_varint(rest_, head) || !take_varint(rest_, number_) || head >> 1 == 0 ||
              head >> 33 != 0;
    if (broken_) return false;
    tag_ = static_cast<std::uint32_t>(head >> 1);
    is_bytes_ = (head & 1) != 0;
    if (is_bytes_) {
      broken_ = number_ > rest_.size();
      if (broken_) return false;
      bytes_ = rest_.substr(0, number_);
      rest_.remove_prefix(number_);
    }
    encoded_ = begin.substr(0, begin.size() - rest_.size());
    return true;
  }

  bool broken() const { return broken_; }

  // About the field that next() went to:
  std::uint32_t tag() const { return tag_; }
  bool is_bytes() const { return is_bytes_; }
  std::uint64_t number() const { return number_; }   // for a field of bytes: their size
  std::string_view bytes() const { return bytes_; }  // for a field of a number: empty
  std::string_view encoded() const { return encoded_; }

 private:
  std::string_view rest_;
  std::string_view encoded_;
  std::string_view bytes_;
  std::uint64_t number_ = 0;
  std::uint32_t tag_ = 0;
  bool is_bytes_ = false;
  bool broken_ = false;
};

}  // namespace carillon::queue
