// When appended changes become durable, and so when clients may be told: one sync for all that
// arrived meanwhile.
//
//   GroupCommit commit(store, SyncPolicy::always(), [&](const CommitReport& report) { post(loop, ...); });
//   ... the thread that owns the engine, after each batch of commands:
//   commit.request(engine.last_sequence());
//   send_replies(commit.acknowledgeable());   // those whose durable_at is not beyond it
//   ... and again when a report comes that tells of no failure.
//
// A reply may leave once its sequence number is <= acknowledgeable(). What that promises is the
// policy's affair, and the code above is the same for each:
//   always    what was acknowledged is on the disk;
//   every(t)  it gets there within about t: a crash of the machine may take back what was acknowledged since;
//   os        it gets there when the operating system sees fit, or at close().
//
// Who syncs. Where a sync is quick, handing it to another thread and hearing back is a good part of
// its cost, so the thread that calls `request` syncs in place: with RocksStore on a virtual disk, a
// single put took 33 us then, and 40 us through the thread. Where it is slow, that would keep every
// client waiting, so another thread does it. Which it is to be is decided by what the last syncs
// took, and by how many wait for replies: one that is alone gains nothing from a thread that could
// go on meanwhile (7 % more puts on a disk whose syncs take now 100 us, now 800:
// docs/decisions.md). The others, who wait for nothing, may be heard up to 2 ms later for it.
//
// After a failed sync nobody knows what the disk holds, and a later one that succeeds tells nothing
// about it. So there is no later one: the failure is reported once, and acknowledgeable() never
// moves again.
//
// Thread safety: one thread makes, owns and destroys it, and calls `request` and `close`; any may
// call the others.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "carillon/queue/store.h"

namespace carillon::queue {

struct SyncPolicy {
  enum class Mode : std::uint8_t { kAlways, kInterval, kOs };

  Mode mode = Mode::kAlways;
  std::chrono::milliseconds interval{0};  // of kInterval: at least 1

  static constexpr SyncPolicy always() { return {}; }
  static constexpr SyncPolicy every(std::chrono::milliseconds interval) {
    return {Mode::kInterval, interval};
  }
  static constexpr SyncPolicy os() { return {Mode::kOs}; }
};

// Syncs that take less than this on average are done in place.
struct QuickSync {
  std::chrono::nanoseconds alone =
      std::chrono::milliseconds(2);  // one client waits: a hand-over is little then
  std::chrono::nanoseconds among = std::chrono::microseconds(200);  // several do
};

struct CommitReport {
  Sequence acknowledgeable = 0;
  std::string failure;  // empty: none. Else why a sync failed; no other report follows
};

class GroupCommit {
 public:
  // Called when acknowledgeable() has grown but not by `request`, and when a sync has failed. It is
  // called in another thread or from within `request` or `close`; it must call neither, nor throw.
  using OnReport = std::function<void(const CommitReport&)>;

  enum class Waiting : std::uint8_t { kOne, kSeveral };

  // `store` must outlive this.
  GroupCommit(Store& store, SyncPolicy policy, OnReport on_report, QuickSync quick = {});
  // close().
  ~GroupCommit();
  GroupCommit(const GroupCommit&) = delete;
  GroupCommit& operator=(const GroupCommit&) = delete;

  // Asks that all appends up to `up_to` be durable, as the policy has it. Never waits for a sync
  // that is known to be slow. `waiting`: for replies, at the moment.
  void request(Sequence up_to, Waiting waiting = Waiting::kSeveral);

  // Replies that tell of appends up to this one may leave.
  Sequence acknowledgeable() const noexcept {
    return acknowledgeable_.load(std::memory_order_acquire);
  }
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }

  // Makes durable what was requested, whatever the policy, and ends. What is requested later is not
  // acknowledged. Idempotent.
  void close();

  // Syncs done, and how many of them in place.
  struct Counts {
    std::uint64_t syncs = 0;
    std::uint64_t in_place = 0;
  };
  Counts counts() const noexcept;

 private:
  // What the last syncs took: a running average in which a new one weighs 1/8. A sync eight times
  // slower than the bound is enough to have the next ones handed over; a few quick ones bring them
  // back.
  class Cost {
   public:
    void add(std::chrono::nanoseconds took);
    bool below(std::chrono::nanoseconds bound) const;

   private:
    std::chrono::nanoseconds average_{0};
    int known_ = 0;  // syncs, up to kEnough
  };

  using Lock = std::unique_lock<std::mutex>;

  void run();
  void sync(Lock& lock);
  void report(Lock& lock);

  Store& store_;
  const SyncPolicy policy_;
  const OnReport on_report_;
  const QuickSync quick_;

  // Written with mutex_ held, read without.
  std::atomic<Sequence> acknowledgeable_ = 0;
  std::atomic<bool> failed_ = false;
  std::atomic<std::uint64_t> syncs_ = 0;
  std::atomic<std::uint64_t> in_place_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Protected by mutex_:
  Sequence requested_ = 0;
  Sequence durable_ = 0;
  bool syncing_ = false;  // somebody is, without the lock; nobody else may
  bool closing_ = false;
  std::string failure_;
  Cost cost_;

  std::thread thread_;  // none under SyncPolicy::os()
};

}  // namespace carillon::queue
