// Tagged fields: what was written is read, what is not known is kept, and what is broken is found.

#include "queue/store/state/tagged_fields.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "queue/seed.h"

namespace carillon::queue {
namespace {

// The fields as text, or "broken" behind those before the fault.
std::string read(std::string_view bytes) {
  std::string text;
  FieldReader fields(bytes);
  while (fields.next()) {
    text += std::to_string(fields.tag()) + "=";
    text += fields.is_bytes() ? "'" + std::string(fields.bytes()) + "'"
                              : std::to_string(fields.number());
    text += " ";
  }
  return text + (fields.broken() ? "broken" : "");
}

TEST(TaggedFields, NumbersAndBytesAreRead) {
  std::string bytes;
  append_number(bytes, 1, 7);
  append_bytes(bytes, 2, "tube");
  append_number(bytes, 300, std::numeric_limits<std::uint64_t>::max());
  append_bytes(bytes, 4, "");
  EXPECT_EQ(read(bytes), "1=7 2='tube' 300=18446744073709551615 4='' ");
}

TEST(TaggedFields, TheBytesAreTheseForever) {
  std::string bytes;
  append_number(bytes, 1, 300);
  append_bytes(bytes, 2, "ab");
  EXPECT_EQ(bytes, std::string("\x02\xac\x02\x05\x02"
                               "ab",
                               7));
}

TEST(TaggedFields, AZeroTakesNoByte) {
  std::string bytes;
  append_number(bytes, 1, 0);
  EXPECT_EQ(bytes, "");
}

TEST(TaggedFields, AnEncodedFieldIsAFieldAgain) {
  std::string bytes;
  append_number(bytes, 1, 7);
  append_bytes(bytes, 9, "of a newer version");
  append_number(bytes, 10, 5);
  std::string kept;
  for (FieldReader fields(bytes); fields.next();) {
    if (fields.tag() != 1) kept.append(fields.encoded());
  }
  EXPECT_EQ(read(kept), "9='of a newer version' 10=5 ");
}

TEST(TaggedFields, WhatIsCutShortIsBroken) {
  std::string bytes;
  append_bytes(bytes, 2, "tube");
  for (std::size_t size = 1; size < bytes.size(); ++size)
    EXPECT_EQ(read(bytes.substr(0, size)), "broken") << size;
}

TEST(TaggedFields, NumbersBeyond64BitsAndTheTagZeroAreBroken) {
  EXPECT_EQ(read(std::string("\x02") + std::string(9, '\xff') + "\x02"), "broken");
  EXPECT_EQ(read(std::string("\x02") + std::string(10, '\xff') + "\x01"), "broken");
  EXPECT_EQ(read(std::string("\x00\x01", 2)), "broken");
}

TEST(TaggedFields, RandomBytesAreReadOrBrokenAndNeverBeyondTheirEnd) {
  std::mt19937_64 random(seed_or(std::random_device{}()));
  for (int n = 0; n < 20'000; ++n) {
    std::string bytes(random() % 40, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 4 == 0 ? random() : random() % 8);
    std::size_t sum = 0;
    FieldReader fields(bytes);
    while (fields.next()) sum += fields.encoded().size();
    if (fields.broken()) continue;
    ASSERT_EQ(sum, bytes.size());
  }
}

}  // namespace
}  // namespace carillon::queue
