// Entries as they are written in a shared log.
#include "cluster/entry_codec.h"

#include <gtest/gtest.h>

#include <string>

namespace carillon::cluster {
namespace {

Entry window() {
  return {.log = {1, 2},
          .epoch = 3,
          .owner = {4, 5},
          .first = 6,
          .end = 8,
          .before = {9, 10, 11, 12},
          .utc = 13};
}

TEST(EntryCodec, AWindowComesBack) {
  std::string changes;
  add_change(changes, "first");
  add_change(changes, "");
  const std::string bytes = encode_entry(window(), changes);
  const auto decoded = decode_entry(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->entry, window());
  EXPECT_EQ(decoded->changes, (std::vector<std::string_view>{"first", ""}));
}

TEST(EntryCodec, AClaimComesBack) {
  Entry claim = window();
  claim.kind = Entry::Kind::kClaim;
  claim.end = claim.first;
  const auto decoded = decode_entry(encode_entry(claim, ""));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->entry, claim);
  EXPECT_TRUE(decoded->changes.empty());
}

TEST(EntryCodec, BytesThatAreNoEntryAreRefused) {
  std::string changes;
  add_change(changes, "first");
  add_change(changes, "second");
  const std::string bytes = encode_entry(window(), changes);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_entry(bytes.substr(0, size))) << size;
  EXPECT_FALSE(decode_entry(bytes + "x"));
  std::string other = bytes;
  other[0] = 'D';
  EXPECT_FALSE(decode_entry(other));
  other = bytes;
  other[4] = 2;  // a kind that is not known
  EXPECT_FALSE(decode_entry(other));
}

// `printf '%064d' 0 | xxd -r -p | cat - <(printf abc) | sha256sum`
TEST(EntryCodec, TheChainIsTheHashOfTheChainAndTheBytes) {
  const std::string after = bytes_of(chain_after({}, "abc"));
  std::string hex;
  for (const char byte : after) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    hex += kDigits[static_cast<unsigned char>(byte) >> 4];
    hex += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  EXPECT_EQ(hex, "365aa7d8f7f9402c4b9434502b4cc89ddb09fe50d7cd95b493b834c62d5a5370");
  EXPECT_EQ(chain_of(after), chain_after({}, "abc"));
}

}  // namespace
}  // namespace carillon::cluster
