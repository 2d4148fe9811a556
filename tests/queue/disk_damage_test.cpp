// A DiskStore that was killed, and whose files are damaged or have lost what was not synced: it is
// opened with a beginning of what was appended, in which all is that was synced; or it is refused.
//
// One exception: if a whole sector of what was synced last is lost, that is taken for a write that
// a crash cut short, as long as no later record says that it was durable.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "queue/crash_batches.h"
#include "queue/file_bytes.h"
#include "queue/numbered_jobs.h"
#include "queue/second_self.h"
#include "queue/seed.h"
#include "queue/store_media.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = 4'096;

DiskStoreOptions damage_options(bool durable_writes, bool flushes) {
  DiskStoreOptions options = flushes ? kSmallDisk : DiskStoreOptions{.log_segment_bytes = 64 << 10};
  options.durable_writes = durable_writes;
  return options;
}

// What the writer tells at its end, in batches.
struct Written {
  std::uint64_t synced = 0;
  std::uint64_t appended = 0;
};

bool is_log(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.starts_with("jobs-") && name.ends_with(".data");  // a store makes the next as .new
}

class DiskDamaged : public testing::TestWithParam<bool> {
 protected:
  DiskDamaged() {
    if (SecondSelf::is_this()) return;  // it is not to leave a directory behind
    directory_.emplace();
    made_ = *directory_ / "made";
    copy_ = *directory_ / "copy";
  }

  // Appends batches, with syncs and writes at random, and ends the process without closing the
  // store. The last record says that all that was synced is durable.
  [[noreturn]] static void write_and_vanish(bool flushes) {
    const std::string path = SecondSelf::argument();
    std::mt19937_64 random(9);
    {
      DiskStore store(path + "/made", damage_options(GetParam(), true));
      for (std::uint64_t batch = 1; batch <= 100; ++batch) append_batch(store, batch);
    }
    DiskStore store(path + "/made", damage_options(GetParam(), flushes));
    Written written{.synced = 0, .appended = 100};
    for (int n = 0; n < 150; ++n) {
      append_batch(store, ++written.appended);
      if (random() % 2 == 0) store.write();
      if (random() % 3 == 0) store.sync();
    }
    store.sync();
    written.synced = written.appended;
    fs::create_directory(path + "/synced");
    for (const auto& file : fs::directory_iterator(path + "/made")) {
      if (is_log(file.path())) fs::copy(file.path(), path + "/synced");
    }
    // Few enough that none has watermarks, which a write() would make durable.
    for (int n = 0; n < (GetParam() ? 1 : 5); ++n) {
      append_batch(store, ++written.appended);
      store.write();
    }
    SecondSelf::tell(written);
    ::_exit(0);
  }

  void make() {
    SecondSelf writer(directory_->path());
    const auto written = writer.read<Written>();
    ASSERT_TRUE(written);
    ASSERT_EQ(writer.wait(), 0);
    written_ = *written;
  }

  std::vector<fs::path> files(bool logs_alone) const {
    std::vector<fs::path> files;
    for (const auto& file : fs::directory_iterator(made_)) {
      if (fs::file_size(file.path()) > 0 && (!logs_alone || is_log(file.path())))
        files.push_back(file.path().filename());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  // Opens a copy with these bytes in one file. Returns true if it is refused; else all that was
  // synced is there.
  bool refused_or_whole(const fs::path& name, const std::string& bytes) {
    fs::remove_all(copy_);
    fs::copy(made_, copy_);
    write(copy_ / name, bytes);
    try {
      const std::uint64_t batches = batches_in(DiskStore(copy_, damage_options(GetParam(), false)));
      EXPECT_GE(batches, written_.synced);
      EXPECT_LE(batches, written_.appended);
      return false;
    } catch (const StoreError& error) {
      why_ = error.what();
      return true;
    }
  }

  std::mt19937_64 random_{std::random_device()()};
  std::optional<TemporaryDirectory> directory_;
  fs::path made_;
  fs::path copy_;
  Written written_;
  std::string why_;
};

INSTANTIATE_TEST_SUITE_P(DurableWrites, DiskDamaged, testing::Bool(),
                         [](const auto& test) { return test.param ? "Yes" : "No"; });

// A bit in any file, a file of the log that is cut short, or a block of zeros in one.
TEST_P(DiskDamaged, ByAFlippedBitACutOrABlockOfZeros) {
  if (SecondSelf::is_this()) write_and_vanish(true);
  random_.seed(seed_or(std::random_device()()));
  make();
  int refused = 0;
  for (int round = 0; round < 80 && !HasFailure(); ++round) {
    const int way = round % 4;
    const auto all = files(way != 0);
    const fs::path& name = all[random_() % all.size()];
    std::string bytes = contents(made_ / name);
    std::size_t at = random_() % end_of(bytes);
    if (way < 2) {
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random_() % 8));
    } else if (way == 2) {
      at = round % 16 == 2 ? static_cast<std::size_t>(round) : random_() % bytes.size();
      bytes.resize(at);
    } else {
      at = round % 12 == 3 ? 0 : random_() % (bytes.size() / kBlock) * kBlock;
      bytes.replace(at, kBlock, kBlock, '\0');
    }
    SCOPED_TRACE(name.string() +
                 (way < 2    ? ", a bit of byte "
                  : way == 2 ? " is cut at byte "
                             : " has zeros from byte ") +
                 std::to_string(at));
    refused += refused_or_whole(name, bytes) ? 1 : 0;
  }
  EXPECT_GT(refused, 0);  // how many depends on which bytes are used, and by chance
}

// The last segment alone may have such blocks, behind its header.
TEST_P(DiskDamaged, ByTheLossOfBlocksThatWereNotSynced) {
  if (SecondSelf::is_this()) write_and_vanish(false);
  random_.seed(seed_or(std::random_device()()));
  make();
  const auto serial_of = [this](const fs::path& name) {
    std::uint64_t serial = 0;
    std::memcpy(&serial, contents(made_ / name).data() + 48, sizeof serial);
    return serial;
  };
  const auto all = files(true);
  const fs::path last =
      *std::max_element(all.begin(), all.end(),
                        [&](const auto& a, const auto& b) { return serial_of(a) < serial_of(b); });
  const std::string bytes = contents(made_ / last);
  const fs::path before = *directory_ / "synced" / last;
  const std::string synced =
      fs::exists(before) ? contents(before) : std::string(bytes.size(), '\0');
  for (int round = 0; round < 15 && !HasFailure(); ++round) {
    std::string lost = bytes;
    std::string told = last.string() + " without";
    for (std::size_t at = kBlock; at < bytes.size(); at += kBlock) {
      if (bytes.compare(at, kBlock, synced, at, kBlock) == 0 || random_() % 2 == 0) continue;
      lost.replace(at, kBlock, synced, at, kBlock);
      told += " " + std::to_string(at / kBlock);
    }
    SCOPED_TRACE(told);
    EXPECT_FALSE(refused_or_whole(last, lost)) << why_;
  }
}

}  // namespace
TEST(DiskDamagedFiles, AMissingFileOfBodiesIsDamageToThemAlone) {
  const TemporaryDirectory directory;
  constexpr std::size_t kApart = 20'000;  // bytes of a body
  {
    DiskStore store(directory / "data", {});
    for (JobId id = 1; id <= 10; ++id) put(store, id, kApart);
  }
  for (const auto& file : fs::directory_iterator(directory / "data")) {
    if (file.path().extension() == ".blob") fs::remove(file.path());
  }
  DiskStore store(directory / "data", {});
  EXPECT_THROW(store.body(3), StoreDamage);
  EXPECT_EQ(store.find(3), job(3));
  put(store, 11, kApart);
  EXPECT_EQ(store.body(11), body_of(11, kApart));
}

}  // namespace carillon::queue
