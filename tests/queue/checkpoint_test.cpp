// Checkpoints of a DiskStore: what they hold, what they cost the store, and what is left of them.
// tests/crash kills a server that makes them.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "queue/crash_batches.h"
#include "queue/seed.h"
#include "queue/store_media.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {
namespace {

namespace fs = std::filesystem;

void rest() {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

Checkpoint wait_for_checkpoint(DiskStore& store) {
  for (auto checkpoint = store.poll_checkpoint();; checkpoint = store.poll_checkpoint(), rest()) {
    if (checkpoint) return *checkpoint;
  }
}

Checkpoint checkpoint_of(DiskStore& store) {
  store.begin_checkpoint();
  return wait_for_checkpoint(store);
}

std::vector<std::string> checkpoints_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  return names;
}

void wait_until_gone(const fs::path& path) {
  for (int n = 0; n < 20'000 && fs::exists(path); ++n) rest();
  EXPECT_FALSE(fs::exists(path)) << path;
}

// Without them no checkpoint can be made.
void move_options(const fs::path& from, const fs::path& to) {
  for (const auto& entry : fs::directory_iterator(from)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("OPTIONS-")) fs::rename(entry.path(), to / name);
  }
}

class CheckpointTest : public testing::Test {
 protected:
  void append(std::uint64_t count) {
    for (; count > 0; --count) append_batch(*store_, ++appended_);
  }

  // Copies the checkpoint to a directory of its own, as a backup does.
  std::string copy(const Checkpoint& checkpoint) {
    const std::string to = directory_ / ("copy-" + std::to_string(++copies_));
    fs::copy(checkpoint.path, to);
    return to;
  }

  std::uint64_t batches_in_copy(const std::string& path) {
    return batches_in(DiskStore(path, kSmallDisk));
  }

  TemporaryDirectory directory_;
  std::unique_ptr<DiskStore> store_ = std::make_unique<DiskStore>(directory_ / "data", kSmallDisk);
  std::uint64_t appended_ = 0;
  int copies_ = 0;
};

// The holder of the path then has it alone.
TEST_F(CheckpointTest, StaysAsFlushesDoInTheDirectoryThatWasOpened) {
  append(20);
  const fs::path at = directory_ / "data";
  const fs::path moved = directory_ / "moved";
  fs::rename(at, moved);
  fs::create_directory(at);
  append(2'000);
  store_->begin_checkpoint();
  const Checkpoint checkpoint = wait_for_checkpoint(*store_);
  EXPECT_EQ(fs::path(checkpoint.path).parent_path(), at);
  EXPECT_EQ(checkpoints_in(moved).size(), 1u);
  EXPECT_EQ(batches_in_copy(moved / fs::path(checkpoint.path).filename()), 2'020u);
  store_->sync();
  EXPECT_TRUE(fs::is_empty(at));
  EXPECT_NE(store_->failure().find("its path leads to inode "), std::string::npos);
  EXPECT_THROW(append(1), StoreError);
  store_.reset();
  EXPECT_TRUE(fs::is_empty(at));
  EXPECT_EQ(batches_in_copy(moved), 2'020u);
}

TEST_F(CheckpointTest, DoesNotStopAppendsThatWaitForAFlush) {
  append(1);
  store_->begin_checkpoint();
  EXPECT_EQ(store_->poll_checkpoint(), std::nullopt);  // the flush for it begins
  append(5'000);                                       // many times what may be in memory
  const Checkpoint checkpoint = wait_for_checkpoint(*store_);
  EXPECT_GE(batches_in_copy(copy(checkpoint)), 1u);
  append(1);
}

TEST_F(CheckpointTest, HasWhatWasAppendedBeforeIt) {
  const Checkpoint empty = checkpoint_of(*store_);
  EXPECT_EQ(empty.number, 0U);
  EXPECT_EQ(batches_in_copy(copy(empty)), 0U);
  store_->release_checkpoint();
  append(100);
  const Checkpoint checkpoint = checkpoint_of(*store_);
  EXPECT_EQ(checkpoint.number, 100U);
  append(50);  // not in it
  const std::string copied = copy(checkpoint);
  EXPECT_EQ(batches_in_copy(copied), 100U);
  EXPECT_EQ(batches_in(*store_), 150U);
}

TEST_F(CheckpointTest, UnsyncedChangesDoNotPutItAheadOfTheLog) {
  append(10);
  const Checkpoint checkpoint = checkpoint_of(*store_);
  EXPECT_EQ(store_->sync(), 10U);
  EXPECT_EQ(checkpoint.number, 10U);
}

TEST_F(CheckpointTest, NeedsNoFlushIfTheFilesHaveEverything) {
  append(10);
  const Checkpoint first = checkpoint_of(*store_);
  const std::string copied = copy(first);
  store_->release_checkpoint();
  const Checkpoint second = checkpoint_of(*store_);
  EXPECT_EQ(second.number, first.number);
  EXPECT_NE(second.path, first.path);
  EXPECT_EQ(batches_in_copy(copied), 10U);
}

// RocksDB must not flush for it what was appended later, and may not be durable.
TEST_F(CheckpointTest, FlushesNothingThatWasAppendedLater) {
  append(10);
  const Checkpoint first = checkpoint_of(*store_);
  store_->release_checkpoint();
  wait_until_gone(first.path);
  store_->begin_checkpoint();
  store_->poll_checkpoint();  // the files have everything, so links are made from now on
  append(1);
  EXPECT_EQ(wait_for_checkpoint(*store_).number, 10U);
}

TEST_F(CheckpointTest, OpensWhileTheStoreIsUsedAndLaterChangesNothingInIt) {
  append(30);
  const Checkpoint checkpoint = checkpoint_of(*store_);
  append(2'000);  // flushed and compacted many times
  EXPECT_EQ(batches_in_copy(copy(checkpoint)), 30U);
  EXPECT_EQ(batches_in(*store_), 2'030U);
}

TEST_F(CheckpointTest, GoesOnByItself) {
  append(40);
  std::string copied = copy(checkpoint_of(*store_));
  store_.reset();
  std::uint64_t batches = 40;
  for (int life = 0; life < 3; ++life) {
    DiskStore store(copied, kSmallDisk);
    ASSERT_EQ(batches_in(store), batches);
    for (int n = 0; n < 500; ++n) append_batch(store, ++batches);
    copied = copy(checkpoint_of(store));
  }
}

TEST_F(CheckpointTest, IsRemovedWhenItIsReleased) {
  append(10);
  const Checkpoint checkpoint = checkpoint_of(*store_);
  EXPECT_TRUE(fs::exists(checkpoint.path + "/CURRENT"));
  store_->release_checkpoint();
  wait_until_gone(checkpoint.path);
  store_->release_checkpoint();
  EXPECT_EQ(checkpoint_of(*store_).number, 10U);
}

TEST_F(CheckpointTest, MayBeReleasedAtAnyMomentOfTheMaking) {
  for (int polls = 0; polls < 60; ++polls) {
    append(3);
    store_->begin_checkpoint();
    bool made = false;
    for (int n = 0; n < polls && !made; ++n) made = store_->poll_checkpoint().has_value();
    store_->release_checkpoint();
  }
  append(5);
  EXPECT_EQ(batches_in_copy(copy(checkpoint_of(*store_))), appended_);
  store_->release_checkpoint();
  store_->begin_checkpoint();
  store_.reset();  // or not released at all
  EXPECT_TRUE(checkpoints_in(directory_ / "data").empty());
}

TEST_F(CheckpointTest, LeftByACrashIsRemovedWhenTheStoreIsOpened) {
  append(10);
  store_.reset();
  const std::string mine = "checkpoint-of-friday-the-13th";
  for (const std::string& name : {std::string("checkpoint-0123456789abcdef"),
                                  std::string("checkpoint-99999999aaaaaaaa.tmp"), mine}) {
    fs::create_directory(directory_ / ("data/" + name));
    std::ofstream(directory_ / ("data/" + name + "/000007.sst")) << "half a table";
  }
  store_ = std::make_unique<DiskStore>(directory_ / "data", kSmallDisk);
  EXPECT_EQ(checkpoints_in(directory_ / "data"), (std::vector<std::string>{mine}));
  EXPECT_EQ(batches_in(*store_), 10U);
}

TEST_F(CheckpointTest, OneThatCannotBeMadeIsAnErrorAndTheNextOneWorks) {
  append(10);
  const Checkpoint flushed = checkpoint_of(*store_);
  store_->release_checkpoint();
  wait_until_gone(flushed.path);
  const fs::path elsewhere = directory_ / "elsewhere";
  fs::create_directory(elsewhere);
  move_options(directory_ / "data", elsewhere);
  store_->begin_checkpoint();
  try {
    wait_for_checkpoint(*store_);
    FAIL() << "it was made";
  } catch (const StoreError& error) {
    EXPECT_NE(std::string(error.what()).find("cannot be"), std::string::npos) << error.what();
  }
  store_->release_checkpoint();
  EXPECT_EQ(checkpoints_in(directory_ / "data"), std::vector<std::string>());
  move_options(elsewhere, directory_ / "data");
  append(10);
  EXPECT_EQ(batches_in_copy(copy(checkpoint_of(*store_))), 20U);
}

// Checkpoints are made, copied and opened all the time while batches are appended and synced.
TEST_F(CheckpointTest, HasAPrefixOfTheChangesUnderLoad) {
  std::mt19937_64 random(seed_or(std::random_device()()));
  for (int round = 0; round < 12 && !HasFailure(); ++round) {
    append(random() % 50);
    const std::uint64_t least = appended_;
    store_->begin_checkpoint();
    std::optional<Checkpoint> checkpoint;
    while (!checkpoint) {
      append(random() % 4);
      if (random() % 3 == 0) store_->sync();
      checkpoint = store_->poll_checkpoint();
    }
    const std::uint64_t most = appended_;
    append(random() % 300);
    const std::string copied = copy(*checkpoint);
    store_->release_checkpoint();
    EXPECT_GE(checkpoint->number, least);
    EXPECT_LE(checkpoint->number, most);
    EXPECT_EQ(batches_in_copy(copied), checkpoint->number);
  }
  EXPECT_EQ(batches_in(*store_), appended_);
}

}  // namespace
}  // namespace carillon::queue
