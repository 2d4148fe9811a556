// Group commit: decides when appended changes become durable, and so when clients may get their
// answers. One sync serves all changes that were appended while the sync before it was under way.
//
//   GroupCommit commit(store, SyncPolicy::always(),
//                      [&](const CommitReport& report) { post(loop, ...); });
//   ... the thread that owns the engine, after each turn of its loop:
//   commit.request(engine.last_sequence());
//   send_replies(commit.acknowledgeable());   // those with a durable_at up to this number
//   ... and again when a report comes that is no failure.
//
// A reply may leave once its sequence number is <= acknowledgeable(). The policy says what such a
// reply promises; the code above is the same for each policy:
//   always    the change is on the disk;
//   every(t)  the operating system has the change, so that the death of the process does not undo
//             it; it reaches the disk within about t, and a crash of the machine may undo it first;
//   os        the operating system has the change, and writes it to the disk when it wants to;
//             close() syncs.
//
// Which thread syncs. If a sync is quick, much of its cost is the way to another thread and back.
// So the thread that calls `request` does a quick sync itself, *in place*: with DiskStore on a
// virtual disk a single put took 33 us in place, and 40 us through the other thread. A slow sync in
// place would keep all clients waiting, so another thread does it. Two things decide: how long the
// last syncs took, and whether one client waits for a reply or several. If only one waits, nobody
// gains if this thread goes on meanwhile: syncing in place then gave 7 % more puts on a disk whose
// syncs take 100 us at times and 800 us at others. The price: a client that waits for no reply is
// served later by one such sync, less than 2 ms on average, but a single sync may take longer.
//
// Errors. After a failed sync or write nobody knows what the disk holds, and a later sync that
// succeeds does not show it. So there is no later sync: the failure is reported once, and
// acknowledgeable() does not move any more. The same holds once another server owns the log. But
// while a log that lies elsewhere is unavailable, nothing is lost: the thread tries again. Such a
// log needs the policy kAlways.
//
// Thread safety: one thread makes, owns and destroys a GroupCommit, and calls `request` and
// `close`. Any thread may call the other methods.
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
  // For kInterval: at least 1 ms.
  std::chrono::milliseconds interval{0};

  static constexpr SyncPolicy always() { return {}; }
  static constexpr SyncPolicy every(std::chrono::milliseconds interval) {
    return {Mode::kInterval, interval};
  }
  static constexpr SyncPolicy os() { return {Mode::kOs}; }
};

// Syncs that take less than this on average are done in place.
struct QuickSync {
  // If one client waits for a reply.
  std::chrono::nanoseconds alone = std::chrono::milliseconds(2);
  // If several clients wait.
  std::chrono::nanoseconds among = std::chrono::microseconds(200);
};

// What has become of a sync or a write.
enum class Commit : std::uint8_t {
  kDone,
  // The log takes nothing now (LogUnavailable). Reported once, until one is done again.
  kUnavailable,
  // Another server owns the log (Deposed). No other report follows.
  kDeposed,
  // Nobody knows what the disk holds. No other report follows.
  kFailed,
};

struct CommitReport {
  Commit commit = Commit::kDone;
  Sequence acknowledgeable = 0;
  // Why it is not done. Empty if it is.
  std::string why;
};

class GroupCommit {
 public:
  // Called when acknowledgeable() has grown outside of `request`, and when a sync or a write is not
  // done. The call comes from another thread, or from within `request` or `close`: then it may
  // come before an earlier one of the other thread. It must not call `request` or `close`, and must
  // not throw.
  using OnReport = std::function<void(const CommitReport&)>;

  // How many clients wait for a reply at the moment.
  enum class Waiting : std::uint8_t { kOne, kSeveral };

  // `store` must outlive the GroupCommit.
  GroupCommit(Store& store, SyncPolicy policy, OnReport on_report, QuickSync quick = {});
  // Calls close().
  ~GroupCommit();
  GroupCommit(const GroupCommit&) = delete;
  GroupCommit& operator=(const GroupCommit&) = delete;

  // Asks that all appends up to `up_to` become durable in the way of the policy. Syncs in place if
  // the last syncs were quick, and else returns without waiting. After a failure or a close it does
  // nothing.
  void request(Sequence up_to, Waiting waiting = Waiting::kSeveral);

  // Returns the sequence number up to which replies may leave.
  Sequence acknowledgeable() const noexcept {
    return acknowledgeable_.load(std::memory_order_acquire);
  }
  // Returns true if no sync will follow: one has failed, or another server owns the log.
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }

  // Makes durable what was requested, whatever the policy, and ends the thread. It tries that once,
  // also if the log is unavailable. It acknowledges no later request. A second call does nothing.
  void close();

  struct Counts {
    // All syncs, and how many of them were done in place.
    std::uint64_t syncs = 0;
    std::uint64_t in_place = 0;
  };
  Counts counts() const noexcept;

 private:
  // How long the last syncs took: a running average in which the newest one weighs 1/8. After one
  // sync that is eight times slower than the bound, the thread does the next ones; after a few
  // quick ones syncs are in place again.
  class Cost {
   public:
    void add(std::chrono::nanoseconds took);
    bool below(std::chrono::nanoseconds bound) const;

   private:
    std::chrono::nanoseconds average_{0};
    int known_ = 0;  // syncs measured, counted up to kEnough
  };

  using Lock = std::unique_lock<std::mutex>;

  void run();
  void sync(Lock& lock);
  template <typename Action>
  bool attempt(Lock& lock, Action action);
  void report(Lock& lock);

  Store& store_;
  const SyncPolicy policy_;
  const OnReport on_report_;
  const QuickSync quick_;

  // Written with mutex_ held, read without it.
  std::atomic<Sequence> acknowledgeable_ = 0;
  std::atomic<bool> failed_ = false;
  std::atomic<std::uint64_t> syncs_ = 0;
  std::atomic<std::uint64_t> in_place_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Protected by mutex_:
  Sequence requested_ = 0;
  Sequence durable_ = 0;
  bool syncing_ = false;  // a thread syncs, with mutex_ released; no other may sync meanwhile
  bool closing_ = false;
  Commit commit_ = Commit::kDone;    // what became of the last sync or write
  Commit reported_ = Commit::kDone;  // what the last report said
  std::string why_;
  Cost cost_;

  std::thread thread_;  // not started under SyncPolicy::os()
};

}  // namespace carillon::queue
