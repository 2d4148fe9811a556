// DiskStore on a log that is not in its directory: what the log has taken is there again, and only
// that; while the log is unavailable, appends go on until memory is full.

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "carillon/queue/log.h"
#include "queue/numbered_jobs.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {
namespace {

// What an engine elsewhere holds. It outlives the stores.
struct Elsewhere {
  std::vector<std::string> changes;
  bool is_unavailable = false;
  bool has_new_owner = false;
};

class LogElsewhere final : public Log {
 public:
  explicit LogElsewhere(Elsewhere& holds) : holds_(holds) {}

  void read(const LogPosition& after, const Each& each) override {
    for (last_ = after.number; last_ < holds_.changes.size();) {
      const std::string& change = holds_.changes[last_];
      each(++last_, change);
    }
  }
  LogNumber append(std::string_view change, const Apply& apply) override {
    apply(last_ + 1);
    window_.emplace_back(change);
    return ++last_;
  }
  LogNumber sync() override {
    if (holds_.is_unavailable) throw LogUnavailable("no database");
    if (holds_.has_new_owner) throw Deposed("node B has claimed epoch 2");
    for (std::string& change : window_) holds_.changes.push_back(std::move(change));
    window_.clear();
    return last_;
  }
  bool is_shared() const override { return true; }
  void write() override {}
  std::string failure() const override { return {}; }
  std::optional<std::string> mark() const override { return "mark"; }
  LogNumber last() const override { return last_; }
  void trim(const LogPosition&) override {}
  std::size_t bytes() const override { return 0; }
  bool has_room() const override { return true; }
  void give_back() override {}
  const std::vector<std::string>& dropped() const override { return dropped_; }

 private:
  Elsewhere& holds_;
  std::vector<std::string> window_;
  LogNumber last_ = 0;
  std::vector<std::string> dropped_;
};

class LogsElsewhere final : public LogSource {
 public:
  explicit LogsElsewhere(Elsewhere& holds) : holds_(holds) {}
  std::string make(const base::Directory&, std::uint64_t) const override { return {}; }
  std::unique_ptr<Log> open(const base::Directory&, std::uint64_t) const override {
    return std::make_unique<LogElsewhere>(holds_);
  }

 private:
  Elsewhere& holds_;
};

class DiskStoreOnALogElsewhere : public testing::Test {
 protected:
  std::unique_ptr<DiskStore> open() {
    return std::make_unique<DiskStore>(directory_ / "data", kSmall, LogsElsewhere(holds_));
  }

  static constexpr DiskStoreOptions kSmall{.recent = 512 << 10, .read_cache = 1 << 20};
  TemporaryDirectory directory_;
  Elsewhere holds_;
};

TEST_F(DiskStoreOnALogElsewhere, HasNoLogInItsDirectoryAndFindsWhatTheLogHasTaken) {
  {
    const auto store = open();
    EXPECT_TRUE(store->is_shared());
    put(*store, 1);
    store->sync();
    put(*store, 2);
    holds_.has_new_owner = true;
    EXPECT_THROW(store->sync(), Deposed);
    EXPECT_EQ(store->failure(), "");
  }
  holds_.has_new_owner = false;
  const auto store = open();
  EXPECT_EQ(store->find(1), job(1));
  EXPECT_EQ(store->find(2), std::nullopt) << "its window was never taken";
  put(*store, 3);
  EXPECT_EQ(store->sync(), 1U);
  for (const auto& file : std::filesystem::directory_iterator(directory_ / "data"))
    EXPECT_EQ(file.path().filename().string().find(".data"), std::string::npos) << file.path();
}

TEST_F(DiskStoreOnALogElsewhere, TakesAppendsWhileTheLogIsUnavailableAndSyncsThemLater) {
  const auto store = open();
  holds_.is_unavailable = true;
  put(*store, 1);
  EXPECT_THROW(store->sync(), LogUnavailable);
  put(*store, 2);
  holds_.is_unavailable = false;
  EXPECT_EQ(store->sync(), 2U);
  EXPECT_EQ(holds_.changes.size(), 2U);
}

// No file of the state may be ahead of the log, so nothing is flushed; and nothing waits.
TEST_F(DiskStoreOnALogElsewhere, RefusesAppendsWhenMemoryIsFullAndTheLogUnavailable) {
  const auto store = open();
  holds_.is_unavailable = true;
  EXPECT_THROW(store->sync(), LogUnavailable);
  JobId id = 1;
  EXPECT_THROW(
      {
        for (; id < 1'000; ++id) put(*store, id, 16 << 10);
      },
      LogUnavailable);
  EXPECT_GT(id, 64U);
  EXPECT_FALSE(store->has_room());
  holds_.is_unavailable = false;
  store->sync();
  put(*store, id);
  EXPECT_EQ(store->find(id), job(id));
}

}  // namespace
}  // namespace carillon::queue
