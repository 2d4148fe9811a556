// The journal's file: what was written is read again, whatever else the file has been through; what
// is missing is not passed over.

#include "queue/store/journal.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "carillon/queue/store.h"
#include "queue/file_bytes.h"
#include "queue/seed.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {
namespace {

constexpr std::uint64_t kIdentity = 0x0123'4567'89ab'cdef;
constexpr std::size_t kHeader = 16;
constexpr std::uint32_t kBlocks = 2'048;

void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string text(std::uint64_t number, std::size_t size) {
  std::string text = "record " + std::to_string(number) + " ";
  text.resize(size, static_cast<char>('a' + number % 26));
  return text;
}

class JournalTest : public ::testing::Test {
 protected:
  void SetUp() override { Journal::make(path_, kIdentity, kBlocks); }

  Journal open(std::uint64_t applied = 0) { return Journal(path_, kIdentity, applied); }

  std::vector<std::string> read(std::uint64_t applied = 0) {
    return open(applied).take_recovered();
  }

  std::string complaint(std::uint64_t applied = 0, std::uint64_t identity = kIdentity) {
    try {
      const Journal journal(path_, identity, applied);
    } catch (const StoreError& error) {
      return error.what();
    }
    return "";
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_ / "journal";
};

using Records = std::vector<std::string>;

TEST_F(JournalTest, IsEmptyAtFirst) {
  EXPECT_EQ(read(), Records{});
  EXPECT_EQ(open(7).last(), 7u);
  EXPECT_EQ(contents(path_).size(), Journal::kBlock * kBlocks);
}

TEST_F(JournalTest, GivesBackWhatWasWrittenAfterANumber) {
  {
    Journal journal = open();
    journal.write("one");
    journal.write("");
    journal.write(text(3, Journal::kLargest));
    journal.write(text(4, Journal::kBlock - kHeader));
    EXPECT_EQ(journal.last(), 4u);
  }
  const Records all{"one", "", text(3, Journal::kLargest), text(4, Journal::kBlock - kHeader)};
  EXPECT_EQ(read(), all);
  EXPECT_EQ(read(2), Records(all.begin() + 2, all.end()));
  EXPECT_EQ(read(4), Records{});
  EXPECT_EQ(read(9), Records{});
}

TEST_F(JournalTest, GoesOnBehindWhatItHas) {
  open().write("one");
  open().write("two");
  open(1).write("three");
  EXPECT_EQ(read(), (Records{"one", "two", "three"}));
}

// The database may have what the last record would have told, though that was cut short.
TEST_F(JournalTest, GoesOnBehindTheNumberThatIsApplied) {
  open().write("one");
  EXPECT_EQ(open(5).write("six"), 6u);
  EXPECT_EQ(read(5), Records{"six"});
  EXPECT_EQ(complaint(4),
            "the journal " + path_ +
                " is damaged: it has record 6 but not record 5, which was durable before");
}

TEST_F(JournalTest, HasNoRoomForMoreThanItsBlocks) {
  Journal journal = open();
  std::uint64_t number = 0;
  while (journal.has_room(1)) {
    EXPECT_EQ(journal.nearly_full(), number > std::uint64_t{kBlocks} / 4 * 3) << number;
    EXPECT_EQ(journal.write("x"), ++number);
  }
  EXPECT_EQ(number, kBlocks - 1u);
  EXPECT_TRUE(journal.nearly_full());
  EXPECT_THROW(journal.write("x"), StoreError);
  journal.release(1);
  EXPECT_TRUE(journal.has_room(Journal::kBlock - kHeader));
  EXPECT_FALSE(journal.has_room(Journal::kBlock - kHeader + 1));
  journal.release(number);
  EXPECT_TRUE(journal.has_room(Journal::kLargest));
  EXPECT_FALSE(journal.nearly_full());
  EXPECT_THROW(journal.write(std::string(Journal::kLargest + 1, 'x')), StoreError);
}

// Against a list: records of all sizes, released late or soon, with a new start now and then.
TEST_F(JournalTest, IsAsItsModelIs) {
  std::mt19937_64 random(seed_or(std::random_device()()));
  const auto chance = [&random](unsigned of) { return random() % of == 0; };
  std::deque<std::pair<std::uint64_t, std::string>> kept;
  std::uint64_t released = 0;
  std::uint64_t last = 0;
  auto journal = std::make_unique<Journal>(path_, kIdentity, 0);
  for (int step = 0; step < 8'000; ++step) {
    const std::size_t size =
        chance(50) ? random() % Journal::kLargest : random() % (2 * Journal::kBlock);
    if (journal->has_room(size)) {
      ++last;
      kept.emplace_back(last, text(last, size));
      journal->write(kept.back().second);
    } else {
      EXPECT_TRUE(journal->nearly_full());
    }
    if (chance(100) || !journal->has_room(Journal::kLargest)) {
      for (std::size_t n = random() % (kept.size() + 1); n > 0; --n) kept.pop_front();
      released = kept.empty() ? last : kept.front().first - 1;
      journal->release(released);
    }
    if (!chance(500)) continue;
    journal.reset();
    journal = std::make_unique<Journal>(path_, kIdentity, released);
    Records expected;
    for (const auto& record : kept) expected.push_back(record.second);
    ASSERT_EQ(journal->take_recovered(), expected) << "at step " << step;
    ASSERT_EQ(journal->last(), last);
  }
}

// --- What a crash and a bad disk leave behind.

TEST_F(JournalTest, ALastRecordThatIsCutShortIsLeftOut) {
  const std::string second = text(2, 3 * Journal::kBlock);
  open().write("one");
  const std::string before = contents(path_);
  open().write(second);
  const std::string after = contents(path_);
  for (std::size_t cut = 0; cut < 5 * Journal::kBlock; cut += 512) {
    std::string torn = after.substr(0, cut) + before.substr(cut);
    put(path_, torn);
    const std::size_t end = 2 * Journal::kBlock + kHeader + second.size();
    EXPECT_EQ(read(), cut >= end ? (Records{"one", second}) : Records{"one"}) << cut;
  }
}

TEST_F(JournalTest, ADamagedBitIsNotPassedOverButInTheLastRecord) {
  std::mt19937_64 random(seed_or(std::random_device()()));
  {
    Journal journal = open();
    for (std::uint64_t number = 1; number <= 6; ++number) journal.write(text(number, 3'000));
  }
  const std::string good = contents(path_);
  for (int round = 0; round < 100; ++round) {
    const std::uint64_t number = 1 + random() % 6;
    const std::size_t place = number * Journal::kBlock + random() % (kHeader + 3'000);
    std::string bad = good;
    bad[place] = static_cast<char>(bad[place] ^ (1 << random() % 8));
    put(path_, bad);
    SCOPED_TRACE("byte " + std::to_string(place));
    if (number == 6) {
      EXPECT_EQ(read(2).size(), 3u);
    } else {
      EXPECT_NE(complaint().find("is damaged"), std::string::npos) << complaint();
      EXPECT_EQ(read(number).size(), 6 - number) << "a record that is not needed any more";
    }
  }
}

TEST_F(JournalTest, AnotherOneIsRefused) {
  EXPECT_EQ(complaint(0, kIdentity + 1),
            "the journal " + path_ + " is not the one that belongs to this database");
  std::string bytes = contents(path_);
  put(path_, bytes.substr(0, bytes.size() - 1));
  EXPECT_EQ(complaint(), "the journal " + path_ + " has been cut short");
  std::filesystem::remove(path_);
  EXPECT_EQ(complaint(),
            "the journal " + path_ + " is missing; restore the whole directory from one copy");
}

// A record of another journal, at the very same place, counts for nothing: nor do bytes of clients
// that look like one.
TEST_F(JournalTest, RecordsOfAnotherIdentityAreNone) {
  open().write("one");
  std::string forged;
  {
    const std::string other = directory_ / "other";
    Journal::make(other, kIdentity + 1, kBlocks);
    Journal journal(other, kIdentity + 1, 1);
    journal.write("first");
    journal.write("forged");
    forged = contents(other);
  }
  std::string bytes = contents(path_);
  bytes.replace(2 * Journal::kBlock, Journal::kBlock, forged, 2 * Journal::kBlock, Journal::kBlock);
  put(path_, bytes);
  EXPECT_EQ(read(), Records{"one"});
}

}  // namespace
}  // namespace carillon::queue
