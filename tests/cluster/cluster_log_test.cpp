// Stores of several nodes on one shared log: what is acknowledged is there again, at whoever owns
// the shard, whatever the log answers.
#include "cluster/cluster_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "carillon/queue/store_check.h"
#include "cluster/log_in_memory.h"
#include "queue/numbered_jobs.h"
#include "queue/temporary_directory.h"

namespace carillon::cluster {
namespace {

using queue::JobId;
using std::chrono::milliseconds;
using Fault = LogInMemory::Fault;

// A node with a clock of its own, on which each wait takes its time at once.
class Node {
 public:
  explicit Node(LogInMemory& log)
      : log_(log),
        options_{.connect = [&log] { return std::make_unique<LogInMemoryClient>(log); },
                 .address = "127.0.0.1:1",
                 .wait =
                     [this](milliseconds time) {
                       if (!stands_still_) passed_ = passed_.load() + time;
                       std::this_thread::sleep_for(milliseconds(1));
                       return !ended_;
                     },
                 .say = [](const std::string&) {},
                 .now = [this] { return std::chrono::steady_clock::time_point(passed_.load()); }} {}

  // Returns when the node owns the shard.
  void open() { store_.emplace(directory_ / "data", kSmall, ClusterLogs(options_)); }
  // As a kill: what was not synced is lost.
  void die() {
    log_.fail_next({Fault::kUnavailable, Fault::kUnavailable});
    store_.reset();
    log_.fail_next({});
  }
  void close() { store_.reset(); }
  // No time passes for it: it does not claim.
  void stand_still(bool on) { stands_still_ = on; }
  void end(bool on) { ended_ = on; }
  void pass(milliseconds time) { passed_ = passed_.load() + time; }

  milliseconds passed() const { return passed_; }

  queue::DiskStore& store() { return *store_; }
  bool owns() const { return store_.has_value(); }
  std::string path() const { return directory_ / "data"; }

  static constexpr queue::DiskStoreOptions kSmall{.recent = 256 << 10, .read_cache = 1 << 20};

 private:
  LogInMemory& log_;
  queue::TemporaryDirectory directory_;
  std::atomic<milliseconds> passed_{milliseconds(0)};
  std::atomic<bool> stands_still_ = false;
  std::atomic<bool> ended_ = false;
  ClusterOptions options_;
  std::optional<queue::DiskStore> store_;
};

class ClusterLogTest : public testing::Test {
 protected:
  void put(Node& node, JobId id, std::size_t bytes = 100) { queue::put(node.store(), id, bytes); }
  static bool has(Node& node, JobId id) { return node.store().find(id).has_value(); }

  // Syncs as the thread of GroupCommit does: until it is done. Returns false if another node owns
  // the shard.
  static bool sync(Node& node) {
    for (int tries = 0; tries < 100; ++tries) {
      try {
        node.store().sync();
        return true;
      } catch (const queue::LogUnavailable&) {
        node.pass(milliseconds(Role::kRetry));
      } catch (const queue::Deposed&) {
        return false;
      }
    }
    ADD_FAILURE() << "the log does not become available";
    return false;
  }

  static void checkpoint_of(Node& node, const std::string& to) {
    node.store().begin_checkpoint();
    std::optional<queue::Checkpoint> made;
    while (!(made = node.store().poll_checkpoint())) std::this_thread::sleep_for(milliseconds(1));
    std::filesystem::copy(made->path, to, std::filesystem::copy_options::recursive);
    node.store().release_checkpoint();
  }

  LogInMemory log_;
  Node a_{log_};
  Node b_{log_};
};

TEST_F(ClusterLogTest, ANodeHasAgainWhatItHasWritten) {
  a_.open();
  EXPECT_TRUE(a_.store().is_shared());
  put(a_, 1);
  put(a_, 2);
  EXPECT_EQ(a_.store().sync(), 2U);
  EXPECT_EQ(a_.store().sync(), 2U);
  EXPECT_EQ(log_.size(), 2U) << "a claim and a window";
  a_.die();
  a_.open();
  EXPECT_TRUE(has(a_, 1));
  EXPECT_TRUE(has(a_, 2));
  put(a_, 3);
  EXPECT_EQ(a_.store().sync(), 1U);
}

TEST_F(ClusterLogTest, AnotherNodeHasWhatWasSyncedAndTheFirstIsDeposed) {
  a_.open();
  put(a_, 1);
  a_.store().sync();
  put(a_, 2);
  b_.open();
  EXPECT_EQ(log_.epoch(), 2U);
  EXPECT_TRUE(has(b_, 1));
  EXPECT_FALSE(has(b_, 2));
  EXPECT_THROW(a_.store().sync(), queue::Deposed);
  EXPECT_THROW(a_.store().sync(), queue::Deposed);
  EXPECT_EQ(a_.store().failure(), "");
  put(b_, 3);
  b_.store().sync();
  a_.die();
  a_.open();
  EXPECT_TRUE(has(a_, 1));
  EXPECT_FALSE(has(a_, 2));
  EXPECT_TRUE(has(a_, 3));
}

TEST_F(ClusterLogTest, AFollowerReadsWhileTheOwnerWritesAndTakesOverWhenItIsSilent) {
  a_.open();
  b_.stand_still(true);
  std::thread follows([this] { b_.open(); });
  for (JobId id = 1; id <= 50; ++id) {
    put(a_, id);
    a_.store().sync();
  }
  const auto has_read_all = [this] {
    const std::vector<SharedLog::Node> nodes = log_.nodes();
    return std::any_of(nodes.begin(), nodes.end(),
                       [this](const SharedLog::Node& node) { return node.read == log_.size(); });
  };
  a_.die();
  while (!has_read_all()) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(log_.epoch(), 1U);
  b_.stand_still(false);
  follows.join();
  EXPECT_EQ(log_.epoch(), 2U);
  for (JobId id = 1; id <= 50; ++id) EXPECT_TRUE(has(b_, id)) << id;
}

TEST_F(ClusterLogTest, AnOwnerThatEndsIsFollowedSoon) {
  a_.open();
  put(a_, 1);
  a_.close();
  EXPECT_EQ(log_.epoch(), 2U) << "it has claimed for nobody";
  const auto before = b_.passed();
  b_.open();
  EXPECT_EQ(log_.epoch(), 3U);
  EXPECT_TRUE(has(b_, 1)) << "the end syncs";
  EXPECT_LE(b_.passed() - before, milliseconds(1'500)) << "most of it until the first report";
}

TEST_F(ClusterLogTest, AFollowerEndsWhenItShall) {
  a_.open();
  b_.stand_still(true);
  std::thread follows([this] { EXPECT_THROW(b_.open(), FollowingEnded); });
  b_.end(true);
  follows.join();
  EXPECT_EQ(log_.epoch(), 1U);
}

// Whatever has become of the window and of the claims after it, it counts once.
TEST_F(ClusterLogTest, AWindowOfWhichNobodyKnowsCountsOnce) {
  const std::vector<std::vector<Fault>> all = {
      {Fault::kUnavailable},
      {Fault::kUnavailable, Fault::kUnavailable},
      {Fault::kLandsUnknown},
      {Fault::kLostUnknown},
      {Fault::kLandsUnknown, Fault::kUnavailable},
      {Fault::kLostUnknown, Fault::kUnavailable, Fault::kUnavailable},
      {Fault::kLandsUnknown, Fault::kLandsUnknown},
      {Fault::kLandsUnknown, Fault::kLostUnknown},
      {Fault::kLostUnknown, Fault::kLandsUnknown},
      {Fault::kLostUnknown, Fault::kLostUnknown, Fault::kLostUnknown},
      {Fault::kUnavailable, Fault::kLandsUnknown, Fault::kNone, Fault::kLandsUnknown},
  };
  a_.open();
  JobId id = 0;
  for (const std::vector<Fault>& faults : all) {
    put(a_, ++id);
    log_.fail_next(faults);
    ASSERT_TRUE(sync(a_)) << "case " << id;
  }
  b_.open();
  for (JobId one = 1; one <= id; ++one) EXPECT_TRUE(has(b_, one)) << one;
  put(b_, id + 1);
  EXPECT_TRUE(sync(b_));
}

// Whether the window in doubt is in the log or not. What is in doubt must not grow: if the log has
// it, the log has no more than that.
TEST_F(ClusterLogTest, WhatIsAppendedInDoubtGoesIntoTheNextWindow) {
  a_.open();
  JobId id = 0;
  for (const Fault fault : {Fault::kLostUnknown, Fault::kLandsUnknown}) {
    put(a_, ++id);
    log_.fail_next({fault});
    log_.cut_off(true);
    EXPECT_THROW(a_.store().sync(), queue::LogUnavailable);
    log_.cut_off(false);
    put(a_, ++id);
    ASSERT_TRUE(sync(a_));
    put(a_, ++id);
    ASSERT_TRUE(sync(a_));
  }
  b_.open();
  for (JobId one = 1; one <= id; ++one) EXPECT_TRUE(has(b_, one)) << one;
}

// To be read back does not mean to be on a standby. Only an append that is answered shows that.
TEST_F(ClusterLogTest, AWindowThatWasReadBackCountsOnceALaterAppendIsAnswered) {
  a_.open();
  put(a_, 1);
  log_.fail_next({Fault::kLandsUnknown, Fault::kLandsUnknown, Fault::kUnavailable});
  EXPECT_THROW(a_.store().sync(), queue::LogUnavailable);
  EXPECT_EQ(log_.size(), 3U) << "a claim, the window, and the claim after it";
  ASSERT_TRUE(sync(a_));
  EXPECT_EQ(log_.size(), 4U) << "one more claim, which was answered";
}

TEST_F(ClusterLogTest, MuchThatWaitsGoesInSeveralWindows) {
  a_.open();
  for (JobId id = 1; id <= 40; ++id) put(a_, id, 300'000);
  EXPECT_EQ(a_.store().sync(), 40U);
  for (Position at = 2; at <= log_.size(); ++at) EXPECT_LT(log_.at(at).bytes.size(), 5U << 20);
  b_.open();
  for (JobId id = 1; id <= 40; ++id) EXPECT_TRUE(has(b_, id)) << id;
}

TEST_F(ClusterLogTest, AnOwnerInDoubtIsDeposedIfAnotherHasClaimed) {
  a_.open();
  put(a_, 1);
  log_.fail_next({Fault::kLandsUnknown});
  log_.cut_off(true);
  EXPECT_THROW(a_.store().sync(), queue::LogUnavailable);
  log_.cut_off(false);
  b_.open();
  EXPECT_TRUE(has(b_, 1)) << "its window came before the claim";
  EXPECT_FALSE(sync(a_));
}

// Nodes in turn own the shard, put and flush, and meet every fault of the log. What was
// acknowledged is there, and nothing is there that was not put.
TEST_F(ClusterLogTest, NothingAcknowledgedIsLostWhateverTheLogAnswers) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    LogInMemory log;
    Node nodes[] = {Node(log), Node(log)};
    std::set<JobId> acknowledged;
    std::set<JobId> possible;  // put, and nobody was told
    JobId next = 0;
    std::size_t owner = 0;
    for (int turn = 0; turn < 60; ++turn) {
      Node& node = nodes[owner];
      if (!node.owns()) {
        node.open();
        for (const JobId id : acknowledged) ASSERT_TRUE(has(node, id)) << id;
        for (JobId id = 1; id <= next; ++id) {
          if (!has(node, id)) continue;
          ASSERT_TRUE(acknowledged.contains(id) || possible.contains(id)) << id;
          acknowledged.insert(id);  // who sees it may rely on it
        }
        possible.clear();
      }
      std::vector<JobId> waiting;
      for (std::uint64_t n = random() % 4 + 1; n > 0; --n) {
        put(node, ++next, random() % 20 == 0 ? 200'000 : 100);
        waiting.push_back(next);
      }
      std::vector<Fault> faults(random() % 3);
      for (Fault& fault : faults) fault = static_cast<Fault>(random() % 4);
      log.fail_next(faults);
      bool synced = false;
      try {
        node.store().sync();
        synced = true;
      } catch (const queue::StoreError&) {
        synced = random() % 2 == 0 && sync(node);
      }
      log.fail_next({});
      (synced ? acknowledged : possible).insert(waiting.begin(), waiting.end());
      const bool others_turn = random() % 4 == 0;
      if (!synced || random() % 6 == 0) {
        node.die();
        owner = others_turn ? 1 - owner : owner;
      } else if (others_turn) {  // it is held up, and wakes when another owns
        Node& other = nodes[1 - owner];
        other.die();
        other.open();
        put(node, ++next);
        EXPECT_FALSE(sync(node));
        node.die();
        owner = 1 - owner;
      }
    }
  }
}

TEST_F(ClusterLogTest, AStateGoesOnFromItsLastFlushAndTheLogIsTrimmedBehindTwo) {
  a_.open();
  b_.stand_still(true);
  std::thread follows([this] {
    try {
      b_.open();
    } catch (const FollowingEnded&) {
    }
  });
  JobId id = 0;
  while (log_.begins_at() == 1) {
    put(a_, ++id, 20'000);
    a_.store().sync();
    if (id % 20 == 0) std::this_thread::sleep_for(milliseconds(10));
  }
  b_.end(true);
  follows.join();
  a_.die();
  b_.end(false);
  b_.stand_still(false);
  b_.open();
  for (JobId one = 1; one <= id; ++one) ASSERT_TRUE(has(b_, one)) << one;
}

// --- Copies of a directory.

TEST_F(ClusterLogTest, ACopyOfACheckpointIsANodeThatGoesOnFromThere) {
  a_.open();
  put(a_, 1);
  a_.store().sync();
  checkpoint_of(a_, b_.path());
  put(a_, 2);
  a_.store().sync();
  b_.open();
  EXPECT_TRUE(has(b_, 1));
  EXPECT_TRUE(has(b_, 2));
}

TEST_F(ClusterLogTest, ADirectoryOfANodeIsCheckedAndMadeOneOfAServerOfItsOwn) {
  a_.open();
  const std::string body = queue::body_of(1, 100);
  a_.store().append({.jobs = {{{}, queue::job(1, 100), body}},
                     .tubes = {{1, "default", 1, 0}},
                     .watermarks = {}});
  checkpoint_of(a_, b_.path());
  const auto go_on = [](std::uint64_t, std::uint64_t) { return true; };
  const queue::StoreReport report = queue::check_store(b_.path(), go_on);
  EXPECT_EQ(report.damages, std::vector<std::string>());
  const std::string alone = b_.path() + ".alone";
  const queue::StoreReport saved =
      queue::salvage_store(b_.path(), alone, go_on, [](const queue::LostJob&) {});
  EXPECT_EQ(saved.jobs, 1U);
  const queue::DiskStore store(alone, Node::kSmall);
  EXPECT_TRUE(store.find(1).has_value());
}

// --- A log that is not the one that was read.

TEST_F(ClusterLogTest, AnotherLogIsRefused) {
  a_.open();
  put(a_, 1);
  a_.close();
  log_.replace();
  EXPECT_TRUE(
      queue::contains(queue::complaint([this] { a_.open(); }), "the shared log is another one"));
}

TEST_F(ClusterLogTest, ALogThatHasLostItsEndIsRefused) {
  a_.open();
  put(a_, 1);
  a_.store().sync();
  a_.die();
  log_.cut(1);
  EXPECT_TRUE(queue::contains(queue::complaint([this] { a_.open(); }),
                              "the state is ahead of the shared log"));
}

// Its files are of before the cut, so only its memory has what the log has lost.
TEST_F(ClusterLogTest, ALogThatHasLostItsEndUnderItsOwnerIsRefused) {
  a_.open();
  put(a_, 1);
  a_.store().sync();
  log_.cut(1);
  put(a_, 2);
  EXPECT_TRUE(queue::contains(queue::complaint([this] { a_.store().sync(); }),
                              "the state is ahead of the shared log"));
}

TEST_F(ClusterLogTest, AnOwnerThatCannotAskWhyItIsRefusedTriesAgain) {
  a_.open();
  put(a_, 1);
  a_.store().sync();
  b_.open();
  put(a_, 2);
  log_.cut_off(true);
  log_.fail_next({Fault::kNone});  // the append alone arrives
  EXPECT_THROW(a_.store().sync(), queue::LogUnavailable);
  log_.cut_off(false);
  EXPECT_FALSE(sync(a_));
}

TEST_F(ClusterLogTest, ADirectoryOfAServerOfItsOwnIsRefused) {
  { const queue::DiskStore alone(a_.path(), Node::kSmall); }
  EXPECT_TRUE(queue::contains(queue::complaint([this] { a_.open(); }),
                              "a node begins with an empty directory"));
}

TEST_F(ClusterLogTest, ADirectoryOfANodeIsRefusedByAServerOfItsOwn) {
  a_.open();
  a_.die();
  const std::string why = queue::complaint([this] { queue::DiskStore(a_.path(), Node::kSmall); });
  EXPECT_TRUE(queue::contains(why, "this is the directory of a node of a cluster")) << why;
}

TEST(NotNeededBefore, IsWhereAllOfTheLastHourHaveFlushed) {
  const auto node = [](Position flushed, int silent_ms) {
    return SharedLog::Node{.flushed = flushed, .silent_for = milliseconds(silent_ms)};
  };
  EXPECT_EQ(not_needed_before({}), 0U);
  EXPECT_EQ(not_needed_before({node(5, 0)}), 0U);
  EXPECT_EQ(not_needed_before({node(5, 0), node(9, 0)}), 5U);
  EXPECT_EQ(not_needed_before({node(7, 0), node(9, 0), node(5, 100)}), 5U)
      << "the third one goes on from there if it is killed";
  EXPECT_EQ(not_needed_before({node(7, 0), node(9, 0), node(5, 3'600'000)}), 5U);
  EXPECT_EQ(not_needed_before({node(7, 0), node(9, 0), node(5, 3'700'000)}), 7U);
  EXPECT_EQ(not_needed_before({node(5, 0), node(9, 3'700'000)}), 0U);
}

}  // namespace
}  // namespace carillon::cluster
