// Group commit over a store whose syncs end when the test says so.

#include "carillon/queue/group_commit.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "carillon/queue/memory_store.h"

namespace carillon::queue {

namespace {

// Only counts its appends. Each sync waits until the test lets it end.
class GatedStore final : public MemoryStore {
 public:
  Sequence append(const Changes&) override {
    const std::lock_guard lock(mutex_);
    return ++appended_;
  }
  Sequence append_some(Sequence count) {
    Sequence last = 0;
    for (; count > 0; --count) last = append({});
    return last;
  }

  Sequence sync() override {
    std::unique_lock lock(mutex_);
    const Sequence covered = appended_;
    ++entered_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_ || let_ > 0; });
    if (!open_) --let_;
    if (failure_ && commit_ == Commit::kUnavailable) throw LogUnavailable(*failure_);
    if (failure_ && commit_ == Commit::kDeposed) throw Deposed(*failure_);
    if (failure_) throw StoreError(*failure_);
    return covered;
  }

  void write() override {
    const std::lock_guard lock(mutex_);
    ++writes_;
    if (write_failure_) throw StoreError(*write_failure_);
  }
  int writes() {
    const std::lock_guard lock(mutex_);
    return writes_;
  }
  std::string failure() const override { return {}; }

  // Lets `count` syncs end, now or later.
  void let(int count) {
    const std::lock_guard lock(mutex_);
    let_ += count;
    changed_.notify_all();
  }
  void let_all() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void fail(const std::string& why, Commit commit = Commit::kFailed) {
    const std::lock_guard lock(mutex_);
    failure_ = why;
    commit_ = commit;
  }
  void sync_again() {
    const std::lock_guard lock(mutex_);
    failure_.reset();
  }
  void fail_writes(const std::string& why) {
    const std::lock_guard lock(mutex_);
    write_failure_ = why;
  }
  void write_again() {
    const std::lock_guard lock(mutex_);
    write_failure_.reset();
  }
  void wait_for_sync(int number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return entered_ >= number; });
  }
  int syncs() {
    const std::lock_guard lock(mutex_);
    return entered_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Sequence appended_ = 0;
  int entered_ = 0;
  int writes_ = 0;
  int let_ = 0;
  bool open_ = false;
  std::optional<std::string> failure_;  // how syncs fail
  Commit commit_ = Commit::kFailed;
  std::optional<std::string> write_failure_;
};

// Keeps what was reported, and in which thread.
class Reports {
 public:
  GroupCommit::OnReport sink() {
    return [this](const CommitReport& report) {
      const std::lock_guard lock(mutex_);
      reports_.push_back(report);
      thread_ = std::this_thread::get_id();
      changed_.notify_all();
    };
  }
  std::vector<CommitReport> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reports_.size() >= count; });
    return reports_;
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return reports_.size();
  }
  std::thread::id last_thread() {
    const std::lock_guard lock(mutex_);
    return thread_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<CommitReport> reports_;
  std::thread::id thread_;
};

using namespace std::chrono_literals;

using Waiting = GroupCommit::Waiting;

constexpr QuickSync kNeverInPlace{.alone = 0ns, .among = 0ns};
constexpr QuickSync kInPlace{.alone = 1h, .among = 1h};
constexpr QuickSync kAlone{.alone = 1h, .among = 0ns};

class GroupCommitTest : public testing::Test {
 protected:
  GatedStore store_;
  Reports reports_;
};

TEST_F(GroupCommitTest, AcknowledgesNothingBeforeItIsSynced) {
  GroupCommit commit(store_, SyncPolicy::always(), reports_.sink(), kNeverInPlace);
  EXPECT_EQ(commit.acknowledgeable(), 0u);
  commit.request(store_.append({}));
  store_.wait_for_sync(1);
  EXPECT_EQ(commit.acknowledgeable(), 0u);
  EXPECT_EQ(reports_.count(), 0u);
  store_.let(1);
  const CommitReport report = reports_.wait_for(1).front();
  EXPECT_EQ(report.acknowledgeable, 1u);
  EXPECT_EQ(report.why, "");
  EXPECT_EQ(commit.acknowledgeable(), 1u);
  EXPECT_NE(reports_.last_thread(), std::this_thread::get_id());
}

TEST_F(GroupCommitTest, OneSyncServesAllThatArrivedMeanwhile) {
  GroupCommit commit(store_, SyncPolicy::always(), reports_.sink(), kNeverInPlace);
  commit.request(store_.append({}));
  store_.wait_for_sync(1);
  for (int i = 2; i <= 100; ++i) commit.request(store_.append({}));
  store_.let(1);
  EXPECT_EQ(reports_.wait_for(1).back().acknowledgeable, 1u);
  store_.wait_for_sync(2);
  EXPECT_EQ(commit.acknowledgeable(), 1u);
  store_.let(1);
  EXPECT_EQ(reports_.wait_for(2).back().acknowledgeable, 100u);
  commit.close();
  EXPECT_EQ(store_.syncs(), 2);
  EXPECT_EQ(commit.counts().syncs, 2u);
  EXPECT_EQ(commit.counts().in_place, 0u);
}

TEST_F(GroupCommitTest, AcknowledgesAllThatASyncCovered) {
  GroupCommit commit(store_, SyncPolicy::always(), reports_.sink(), kNeverInPlace);
  store_.append_some(5);
  commit.request(3);
  store_.let(1);
  EXPECT_EQ(reports_.wait_for(1).back().acknowledgeable, 5u);
  commit.request(4);
  commit.request(5);
  commit.request(0);
  commit.close();
  EXPECT_EQ(store_.syncs(), 1);
}

TEST_F(GroupCommitTest, SyncsInPlaceOnceSyncsAreKnownToBeQuick) {
  store_.let_all();
  GroupCommit commit(store_, SyncPolicy::always(), reports_.sink(), kInPlace);
  for (std::size_t i = 1; i <= 4; ++i) {
    commit.request(store_.append({}));
    reports_.wait_for(i);
  }
  EXPECT_EQ(commit.counts().in_place, 0u);
  for (Sequence i = 5; i <= 20; ++i) {
    commit.request(store_.append({}));
    EXPECT_EQ(commit.acknowledgeable(), i);
  }
  EXPECT_EQ(commit.counts().in_place, 16u);
  EXPECT_EQ(reports_.count(), 4u);
}

TEST_F(GroupCommitTest, HandsSlowSyncsToItsThread) {
  store_.let_all();
  GroupCommit commit(store_, SyncPolicy::always(), reports_.sink(), {.alone = 1ns, .among = 1ns});
  for (std::size_t i = 1; i <= 20; ++i) {
    commit.request(store_.append({}));
    reports_.wait_for(i);
  }
  EXPECT_EQ(commit.counts().syncs, 20u);
  EXPECT_EQ(commit.counts().in_place, 0u);
}

TEST_F(GroupCommitTest, SyncsInPlaceForOneWhatItHandsOverForSeveral) {
  store_.let_all();
  GroupCommit commit(store_, SyncPolicy::always(), reports_.sink(), kAlone);
  std::size_t reports = 0;
  for (int i = 0; i < 10; ++i) {
    commit.request(store_.append({}), Waiting::kSeveral);
    reports_.wait_for(++reports);
  }
  EXPECT_EQ(commit.counts().in_place, 0u);
  for (std::uint64_t i = 1; i <= 10; ++i) {
    const Sequence alone = store_.append({});
    commit.request(alone, Waiting::kOne);
    EXPECT_EQ(commit.acknowledgeable(), alone);
    EXPECT_EQ(commit.counts().in_place, i);
    commit.request(store_.append({}), Waiting::kSeveral);
    reports_.wait_for(++reports);
  }
  EXPECT_EQ(commit.counts().in_place, 10u);
  EXPECT_EQ(commit.counts().syncs, 30u);
}

TEST_F(GroupCommitTest, ReportsAFailureOnceAndNeverSyncsAgain) {
  GroupCommit commit(store_, SyncPolicy::always(), reports_.sink(), kNeverInPlace);
  commit.request(store_.append({}));
  store_.let(1);
  reports_.wait_for(1);
  store_.fail("the disk is gone");
  store_.let_all();
  commit.request(store_.append({}));
  const CommitReport report = reports_.wait_for(2).back();
  EXPECT_EQ(report.acknowledgeable, 1u);
  EXPECT_EQ(report.why, "the disk is gone");
  EXPECT_TRUE(commit.failed());
  for (int i = 0; i < 5; ++i) commit.request(store_.append({}));
  commit.close();
  EXPECT_EQ(commit.acknowledgeable(), 1u);
  EXPECT_EQ(store_.syncs(), 2);
  EXPECT_EQ(reports_.count(), 2u);
}

TEST_F(GroupCommitTest, RefusesWhatArrivedDuringASyncThatFails) {
  GroupCommit commit(store_, SyncPolicy::always(), reports_.sink(), kNeverInPlace);
  commit.request(store_.append({}));
  store_.wait_for_sync(1);
  commit.request(store_.append({}));
  store_.fail("the disk is gone");
  store_.let_all();
  EXPECT_EQ(reports_.wait_for(1).back().why, "the disk is gone");
  commit.close();
  EXPECT_EQ(commit.acknowledgeable(), 0u);
  EXPECT_EQ(store_.syncs(), 1);
}

TEST(GroupCommitInPlace, NeverSyncsAgainAfterAFailure) {
  for (int trial = 0; trial < 50; ++trial) {
    GatedStore store;
    Reports reports;
    store.let_all();
    {
      GroupCommit commit(store, SyncPolicy::always(), reports.sink(), kInPlace);
      for (std::size_t i = 1; i <= 4; ++i) {
        commit.request(store.append({}));
        reports.wait_for(i);
      }
      store.fail("the disk is gone");
      commit.request(store.append({}));
      std::this_thread::yield();
    }
    ASSERT_EQ(store.syncs(), 5) << trial;
  }
}

TEST_F(GroupCommitTest, ReportsAFailureInPlaceFromWithinTheRequest) {
  store_.let_all();
  GroupCommit commit(store_, SyncPolicy::always(), reports_.sink(), kInPlace);
  for (std::size_t i = 1; i <= 4; ++i) {
    commit.request(store_.append({}));
    reports_.wait_for(i);
  }
  store_.fail("the disk is gone");
  commit.request(store_.append({}));
  ASSERT_EQ(reports_.count(), 5u);
  EXPECT_EQ(reports_.wait_for(5).back().why, "the disk is gone");
  EXPECT_EQ(reports_.wait_for(5).back().acknowledgeable, 4u);
  EXPECT_EQ(reports_.last_thread(), std::this_thread::get_id());
  commit.request(store_.append({}));
  commit.close();
  EXPECT_EQ(reports_.count(), 5u);
  EXPECT_EQ(store_.syncs(), 5);
}

TEST_F(GroupCommitTest, TriesAgainUntilAnUnavailableLogTakesItAndReportsOnlyTheChange) {
  GroupCommit commit(store_, SyncPolicy::always(), reports_.sink(), kNeverInPlace);
  store_.let_all();
  store_.fail("no database", Commit::kUnavailable);
  commit.request(store_.append({}));
  store_.wait_for_sync(3);
  const CommitReport unavailable = reports_.wait_for(1).back();
  EXPECT_EQ(unavailable.commit, Commit::kUnavailable);
  EXPECT_EQ(unavailable.why, "no database");
  EXPECT_EQ(unavailable.acknowledgeable, 0u);
  EXPECT_FALSE(commit.failed());
  commit.request(store_.append({}));
  EXPECT_EQ(reports_.count(), 1u);
  store_.sync_again();
  const CommitReport done = reports_.wait_for(2).back();
  EXPECT_EQ(done.commit, Commit::kDone);
  EXPECT_EQ(done.why, "");
  EXPECT_EQ(done.acknowledgeable, 2u);
}

TEST_F(GroupCommitTest, TheThreadTriesAgainWhatASyncInPlaceHasFoundUnavailable) {
  store_.let_all();
  GroupCommit commit(store_, SyncPolicy::always(), reports_.sink(), kInPlace);
  for (std::size_t i = 1; i <= 4; ++i) {
    commit.request(store_.append({}));
    reports_.wait_for(i);
  }
  store_.fail("no database", Commit::kUnavailable);
  commit.request(store_.append({}));
  ASSERT_EQ(reports_.count(), 5u);
  EXPECT_EQ(reports_.wait_for(5).back().commit, Commit::kUnavailable);
  store_.sync_again();
  EXPECT_EQ(reports_.wait_for(6).back().acknowledgeable, 5u);
}

TEST_F(GroupCommitTest, ReportsOnceThatAnotherServerOwnsTheLogAndNeverSyncsAgain) {
  GroupCommit commit(store_, SyncPolicy::always(), reports_.sink(), kNeverInPlace);
  store_.let_all();
  store_.fail("node B has claimed epoch 7", Commit::kDeposed);
  commit.request(store_.append({}));
  const CommitReport report = reports_.wait_for(1).back();
  EXPECT_EQ(report.commit, Commit::kDeposed);
  EXPECT_EQ(report.why, "node B has claimed epoch 7");
  EXPECT_TRUE(commit.failed());
  commit.request(store_.append({}));
  commit.close();
  EXPECT_EQ(store_.syncs(), 1);
  EXPECT_EQ(reports_.count(), 1u);
  EXPECT_EQ(commit.acknowledgeable(), 0u);
}

TEST_F(GroupCommitTest, EveryAcknowledgesAtOnceAndSyncsLater) {
  GroupCommit commit(store_, SyncPolicy::every(1ms), reports_.sink());
  for (Sequence i = 1; i <= 3; ++i) {
    commit.request(store_.append({}));
    EXPECT_EQ(commit.acknowledgeable(), i);
  }
  store_.wait_for_sync(1);
  commit.request(store_.append({}));
  EXPECT_EQ(commit.acknowledgeable(), 4u);
  store_.let(1);
  store_.wait_for_sync(2);
  store_.let_all();
  commit.close();
  EXPECT_EQ(store_.syncs(), 2);
  EXPECT_EQ(reports_.count(), 0u);
  EXPECT_EQ(commit.counts().in_place, 0u);
}

TEST_F(GroupCommitTest, EveryDoesNotSyncWhenThereIsNothingNew) {
  store_.let_all();
  GroupCommit commit(store_, SyncPolicy::every(1ms), reports_.sink());
  commit.request(store_.append({}));
  store_.wait_for_sync(1);
  commit.request(1);
  commit.close();
  EXPECT_EQ(store_.syncs(), 1);
}

TEST_F(GroupCommitTest, EveryAcknowledgesNothingAfterAFailure) {
  store_.fail("the disk is gone");
  store_.let_all();
  GroupCommit commit(store_, SyncPolicy::every(1ms), reports_.sink());
  commit.request(store_.append({}));
  EXPECT_EQ(reports_.wait_for(1).back().why, "the disk is gone");
  commit.request(store_.append({}));
  EXPECT_EQ(commit.acknowledgeable(), 1u);
  commit.close();
  EXPECT_EQ(store_.syncs(), 1);
  EXPECT_EQ(reports_.count(), 1u);
}

// The interval is long: only closing ends it.
TEST_F(GroupCommitTest, EverySyncsWhenItIsClosed) {
  store_.let_all();
  GroupCommit commit(store_, SyncPolicy::every(1h), reports_.sink());
  commit.request(store_.append({}));
  commit.close();
  EXPECT_EQ(store_.syncs(), 1);
}

TEST_F(GroupCommitTest, OsAcknowledgesAtOnceAndSyncsOnlyWhenItIsClosed) {
  store_.let_all();
  GroupCommit commit(store_, SyncPolicy::os(), reports_.sink());
  for (Sequence i = 1; i <= 1'000; ++i) {
    commit.request(store_.append({}));
    EXPECT_EQ(commit.acknowledgeable(), i);
  }
  EXPECT_EQ(store_.syncs(), 0);
  EXPECT_EQ(store_.writes(), 1'000) << "each was written before it was acknowledged";
  commit.close();
  EXPECT_EQ(store_.syncs(), 1);
  EXPECT_EQ(reports_.count(), 0u);
}

TEST_F(GroupCommitTest, AFailedWriteIsNotAcknowledgedAndIsReportedOnce) {
  store_.let_all();
  for (const SyncPolicy policy : {SyncPolicy::os(), SyncPolicy::every(1h)}) {
    GroupCommit commit(store_, policy, reports_.sink());
    const Sequence written = store_.append({});
    commit.request(written);
    const std::size_t before = reports_.count();
    store_.fail_writes("the disk is gone");
    commit.request(store_.append({}));
    EXPECT_EQ(commit.acknowledgeable(), written);
    EXPECT_TRUE(commit.failed());
    EXPECT_EQ(reports_.wait_for(before + 1).back().why, "the disk is gone");
    const int syncs = store_.syncs();
    commit.request(store_.append({}));
    commit.close();
    EXPECT_EQ(reports_.count(), before + 1);
    EXPECT_EQ(store_.syncs(), syncs) << "nothing is synced behind a failed write";
    store_.write_again();
  }
}

TEST_F(GroupCommitTest, CloseSyncsWhatWasRequested) {
  GroupCommit commit(store_, SyncPolicy::always(), reports_.sink(), kNeverInPlace);
  commit.request(store_.append({}));
  store_.wait_for_sync(1);
  commit.request(store_.append({}));
  store_.let_all();
  commit.close();
  EXPECT_EQ(commit.acknowledgeable(), 2u);
  EXPECT_EQ(reports_.wait_for(2).back().acknowledgeable, 2u);
  commit.request(store_.append({}));
  commit.close();
  EXPECT_EQ(commit.acknowledgeable(), 2u);
  EXPECT_EQ(store_.syncs(), 2);
}

TEST_F(GroupCommitTest, CloseReportsThatItFailed) {
  GroupCommit commit(store_, SyncPolicy::os(), reports_.sink());
  commit.request(store_.append({}));
  store_.fail("the disk is gone");
  store_.let_all();
  commit.close();
  EXPECT_EQ(reports_.wait_for(1).back().why, "the disk is gone");
  EXPECT_EQ(reports_.count(), 1u);
}

TEST_F(GroupCommitTest, DestructionCloses) {
  store_.let_all();
  {
    GroupCommit commit(store_, SyncPolicy::every(1h), reports_.sink());
    commit.request(store_.append({}));
  }
  EXPECT_EQ(store_.syncs(), 1);
  { const GroupCommit unused(store_, SyncPolicy::always(), reports_.sink()); }
  EXPECT_EQ(store_.syncs(), 1);
}

// Whichever thread syncs, and whenever, acknowledgeable() only grows, and in the end reaches all
// that was requested.
TEST(GroupCommitStress, AcknowledgesEverythingInOrder) {
  for (const QuickSync quick :
       {kNeverInPlace, QuickSync{.alone = 200ns, .among = 200ns}, kAlone, kInPlace}) {
    MemoryStore store;
    Reports reports;
    GroupCommit commit(store, SyncPolicy::always(), reports.sink(), quick);
    Sequence seen = 0;
    for (int i = 0; i < 20'000; ++i) {
      commit.request(store.append({}), i % 3 == 0 ? Waiting::kOne : Waiting::kSeveral);
      const Sequence now = commit.acknowledgeable();
      ASSERT_GE(now, seen);
      seen = now;
    }
    commit.close();
    EXPECT_EQ(commit.acknowledgeable(), 20'000u);
    Sequence last = 0;
    for (const CommitReport& report : reports.wait_for(0)) {
      EXPECT_GE(report.acknowledgeable, last);
      EXPECT_EQ(report.why, "");
      last = report.acknowledgeable;
    }
  }
}

}  // namespace
}  // namespace carillon::queue
