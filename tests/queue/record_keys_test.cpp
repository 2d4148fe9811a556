// Keys, byte by byte: stores that exist on disks must stay readable.

#include "queue/store/state/record_keys.h"

#include <gtest/gtest.h>

#include <string_view>

namespace carillon::queue {

namespace {

using namespace std::string_view_literals;

TEST(RecordKeys, WritesIndexKeysThatSortAsTheirNumbers) {
  EXPECT_EQ(view(due_index_key(1, 1'000, 5)), "d\0\0\0\1\0\0\0\0\0\0\3\xe8\0\0\0\0\0\0\0\5"sv);
  EXPECT_EQ(view(burial_index_key(1, 2, 5)), "b\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\5"sv);
  EXPECT_LT(view(due_index_key(1, 255, 9)), view(due_index_key(1, 256, 1)));
  EXPECT_LT(view(due_index_key(1, 256, 1)), view(due_index_key(1, 256, 2)));
  EXPECT_LT(view(due_index_key(1, ~0ull, ~0ull)), view(due_index_key(2, 0, 0)));
  EXPECT_LT(view(burial_index_key(~0u, ~0ull, ~0ull)), view(due_index_key(0, 0, 0)));
}

TEST(RecordKeys, AJobOfAKeyIsTheOneItWasMadeOf) {
  JobRecord job{.id = 5, .tube = 7, .due = 1'000, .history = {}};
  for (const std::uint64_t burial : {0U, 77U}) {
    job.burial = burial;
    JobRecord read;
    ASSERT_TRUE(set_job_of_key(view(index_key_of(job)), read));
    EXPECT_EQ(read.id, 5U);
    EXPECT_EQ(read.tube, 7U);
    EXPECT_EQ(view(index_key_of(read)), view(index_key_of(job)));
  }
  JobRecord none;
  EXPECT_FALSE(set_job_of_key("d", none));
  EXPECT_FALSE(set_job_of_key("x\0\0\0\1\0\0\0\0\0\0\3\xe8\0\0\0\0\0\0\0\5"sv, none));
}

TEST(RecordKeys, APointerIsReadAsItWasWrittenOrRefused) {
  const IndexKey key = due_index_key(1, 1'000, 5);
  EXPECT_EQ(decode_pointer(5, view(encode_pointer(key))), view(key));
  try {
    decode_pointer(5, "\1ab");
    FAIL() << "it was read";
  } catch (const StoreDamage& error) {
    EXPECT_STREQ(error.what(), "the pointer of job 5 is damaged: its bytes are 016162");
  }
}

}  // namespace
}  // namespace carillon::queue
