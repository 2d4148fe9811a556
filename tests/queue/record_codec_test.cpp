// Keys and values, byte by byte: stores that exist on disks must stay readable.

#include "queue/store/record_codec.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

namespace carillon::queue {

namespace {

using namespace std::string_view_literals;

const JobRecord kJob{
    .id = 5,
    .tube = 1,
    .priority = 0x01020304,
    .due = 1'000,
    .burial = 0,
    .ttr = 60'000,
    .delay = 3'000,
    .created = 0x0a0b0c0d0e0f,
    .body_bytes = 255,
    .history = {.reserves = 1, .timeouts = 2, .releases = 3, .buries = 4, .kicks = 5}};

std::string complaint(const std::function<void()>& action) {
  try {
    action();
  } catch (const StoreError& error) {
    return error.what();
  }
  return "";
}

TEST(RecordCodec, WritesIndexKeysThatSortAsTheirNumbers) {
  EXPECT_EQ(view(due_index_key(1, 1'000, 5)), "d\0\0\0\1\0\0\0\0\0\0\3\xe8\0\0\0\0\0\0\0\5"sv);
  EXPECT_EQ(view(burial_index_key(1, 2, 5)), "b\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\5"sv);
  EXPECT_LT(view(due_index_key(1, 255, 9)), view(due_index_key(1, 256, 1)));
  EXPECT_LT(view(due_index_key(1, 256, 1)), view(due_index_key(1, 256, 2)));
  EXPECT_LT(view(due_index_key(1, ~0ull, ~0ull)), view(due_index_key(2, 0, 0)));
  EXPECT_LT(view(burial_index_key(~0u, ~0ull, ~0ull)), view(due_index_key(0, 0, 0)));
}

TEST(RecordCodec, WritesAJob) {
  EXPECT_EQ(view(encode_job(kJob)),
            "\1"
            "\4\3\2\1"
            "\xe8\3\0\0\0\0\0\0"
            "\0\0\0\0\0\0\0\0"
            "\x60\xea\0\0\0\0\0\0"
            "\xb8\x0b\0\0\0\0\0\0"
            "\x0f\x0e\x0d\x0c\x0b\x0a\0\0"
            "\xff\0\0\0"
            "\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5\0\0\0"sv);
}

TEST(RecordCodec, ReadsWhatItWrote) {
  JobRecord buried = kJob;
  buried.burial = 77;
  for (const JobRecord& job : {kJob, buried}) {
    const IndexKey index_key = index_key_of(job);
    EXPECT_EQ(decode_job(view(index_key), view(encode_job(job))), job);
    EXPECT_EQ(decode_pointer(job.id, view(encode_pointer(index_key))), view(index_key));
  }
  const TubeRecord tube{.number = 9, .name = "a tube", .scheduled = 1ull << 40, .buried = 3};
  EXPECT_EQ(decode_tube(view(tube_key(9)), encode_tube(tube)), tube);
  const Watermarks watermarks{.next_id = 1ull << 50, .next_burial = 2, .time = 3};
  EXPECT_EQ(decode_watermarks(view(encode_watermarks(watermarks))), watermarks);
}

TEST(RecordCodec, SaysWhichValueIsDamagedAndHow) {
  const IndexKey index_key = index_key_of(kJob);
  const std::string key =
      "6400000001"
      "00000000000003e8"
      "0000000000000005";
  const std::string value(view(encode_job(kJob)));
  EXPECT_EQ(complaint([&] { decode_job(view(index_key), ""); }),
            "the job record under the key " + key + " is damaged: it is empty");
  EXPECT_EQ(complaint([&] { decode_job(view(index_key), value.substr(0, 68)); }),
            "the job record under the key " + key + " is damaged: it has 68 bytes instead of 69");
  EXPECT_EQ(complaint([&] { decode_job(view(index_key), value + "x"); }),
            "the job record under the key " + key + " is damaged: it has 70 bytes instead of 69");
  EXPECT_EQ(complaint([&] { decode_job(view(index_key), "\2" + value.substr(1)); }),
            "the job record under the key " + key +
                " is damaged: it has version 2; this program knows version 1");
  EXPECT_EQ(complaint([&] { decode_job(view(due_index_key(1, 1'001, 5)), value); }),
            "the job record under the key 640000000100000000000003e90000000000000005 is damaged: "
            "it belongs under the key " +
                key);
  EXPECT_EQ(complaint([&] { decode_job("d", value); }),
            "the job record under the key 64 is damaged: it is under a key of 1 bytes");
  EXPECT_EQ(complaint([&] { decode_pointer(5, "\1short"); }),
            "the pointer of a job under the key 0000000000000005 is damaged: it has 6 bytes "
            "instead of 22");
  EXPECT_EQ(complaint([&] { decode_tube(view(tube_key(9)), "\1\0\0"sv); }),
            "the tube record under the key 7400000009 is damaged: it has 3 bytes instead of 18");
  EXPECT_EQ(complaint([&] { decode_watermarks(""); }),
            "the watermarks record under the key 77 is damaged: it is empty");
}

}  // namespace
}  // namespace carillon::queue
