// A data directory from before jobs had keys, of four families of RocksDB, is opened: all its jobs
// are there, and keys work in it. tests/queue/data/README.md says how it was made.

#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "carillon/queue/engine.h"
#include "queue/store_media.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {
namespace {

namespace fs = std::filesystem;

using Result = PutOutcome::Result;

constexpr Now kNow{.utc_ns = 1'900'000'000'000'000'000, .mono_ns = 1'000'000'000};
constexpr Now kLater{.utc_ns = kNow.utc_ns + 10'000'000'000, .mono_ns = 11'000'000'000};

class UpgradeKeysTest : public testing::Test {
 protected:
  UpgradeKeysTest() {
    const fs::path archive = fs::path(CARILLON_TEST_DATA) / "format-4.tar.gz";
    const std::string command =
        "tar -xzf '" + archive.string() + "' -C '" + directory_.path().string() + "'";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }

  std::vector<std::string> families() const {
    std::vector<std::string> names;
    EXPECT_TRUE(rocksdb::DB::ListColumnFamilies({}, data_, &names).ok());
    std::sort(names.begin(), names.end());
    return names;
  }

  TemporaryDirectory directory_;
  const std::string data_ = directory_ / "data";
};

TEST_F(UpgradeKeysTest, HasAllJobsAndTheFamilyOfKeys) {
  EXPECT_EQ(families(), (std::vector<std::string>{"bodies", "default", "index", "jobs"}));
  {
    DiskStore store(data_, kSmallDisk);
    Engine engine(store, {}, kNow);
    int jobs = 0;
    for (JobId id = 1; id <= 1'042; ++id) {
      const auto job = engine.peek(kNow, id);
      if (!job) continue;
      ++jobs;
      const std::string body = id == 1       ? "first"
                               : id == 2     ? "second"
                               : id == 1'032 ? std::string(20'000, 'x')
                                             : "body " + std::to_string(id) + "\n";
      EXPECT_EQ(store.body(job->body_id), body) << id;
    }
    EXPECT_EQ(jobs, 70);
    EXPECT_FALSE(engine.peek(kNow, 5)) << "it was deleted";
    store.sync();
  }
  EXPECT_EQ(families(),
            (std::vector<std::string>{"bodies", "default", "index", "jobs", "keys", "schedules"}));
}

TEST_F(UpgradeKeysTest, KeysWorkInIt) {
  const PutOrder order{.due_in = 5'000, .key = "a", .key_window = 60'000};
  JobId id = 0;
  {
    DiskStore store(data_, kSmallDisk);
    Engine engine(store, {}, kNow);
    const ClientId client = engine.connect();
    engine.use(client, "mail");
    const PutOutcome put = engine.put(client, kNow, order, "hello");
    EXPECT_EQ(put.result, Result::kInserted);
    EXPECT_GT(id = put.id, 1'042U);
    EXPECT_EQ(engine.patch(kNow, 2, {.body = "patched"}).result, ChangeOutcome::Result::kDone);
    store.sync();
  }
  {
    DiskStore store(data_, kSmallDisk);
    Engine engine(store, {}, kLater);
    const ClientId client = engine.connect();
    engine.use(client, "mail");
    EXPECT_EQ(engine.job_with_key(client, "a"), id);
    EXPECT_EQ(store.body(engine.peek(kLater, 2)->body_id), "patched");
    PutOrder replace = order;
    replace.on_conflict = OnConflict::kReplace;
    const PutOutcome put = engine.put(client, kLater, replace, "again");
    EXPECT_EQ(put.result, Result::kReplaced);
    EXPECT_EQ(put.id, id);
    EXPECT_TRUE(engine.kick_job(kLater, id).done);
    EXPECT_TRUE(engine.remove(client, kLater, id).done);
    store.sync();
  }
  DiskStore store(data_, kSmallDisk);
  Engine engine(store, {}, kLater);
  const ClientId client = engine.connect();
  engine.use(client, "mail");
  const PutOutcome put = engine.put(client, kLater, order, "late");
  EXPECT_EQ(put.result, Result::kExists) << "the window of the key is not over";
  EXPECT_EQ(put.id, id);
}

}  // namespace
}  // namespace carillon::queue
