// The thread that syncs, and the short way around it: a sync in place.

#include "carillon/queue/group_commit.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace carillon::queue {

namespace {

// This many syncs are measured before one is done in place.
constexpr int kEnough = 4;
// The newest sync weighs 1/kWeight in the average.
constexpr int kWeight = 8;
// What an unavailable log could not take is tried again after this.
constexpr std::chrono::milliseconds kRetry{100};

}  // namespace

void GroupCommit::Cost::add(std::chrono::nanoseconds took) {
  average_ += known_ == 0 ? took : (took - average_) / kWeight;
  if (known_ < kEnough) ++known_;
}

bool GroupCommit::Cost::below(std::chrono::nanoseconds bound) const {
  return known_ == kEnough && average_ < bound;
}

GroupCommit::GroupCommit(Store& store, SyncPolicy policy, OnReport on_report, QuickSync quick)
    : store_(store), policy_(policy), on_report_(std::move(on_report)), quick_(quick) {
  if (policy_.mode != SyncPolicy::Mode::kOs) thread_ = std::thread([this] { run(); });
}

GroupCommit::~GroupCommit() {
  close();
}

void GroupCommit::request(Sequence up_to, Waiting waiting) {
  Lock lock(mutex_);
  if (failed() || closing_ || up_to <= requested_) return;
  if (policy_.mode != SyncPolicy::Mode::kAlways) {
    if (!attempt(lock, [this] { store_.write(); })) return report(lock);
    acknowledgeable_.store(up_to, std::memory_order_release);
  }
  const bool thread_rests = !syncing_ && requested_ <= durable_;
  requested_ = up_to;
  // A thread that is at work reads requested_ again after its sync.
  if (policy_.mode == SyncPolicy::Mode::kOs || !thread_rests) return;
  if (policy_.mode == SyncPolicy::Mode::kInterval ||
      !cost_.below(waiting == Waiting::kOne ? quick_.alone : quick_.among)) {
    changed_.notify_one();
    return;
  }
  in_place_.fetch_add(1, std::memory_order_relaxed);
  sync(lock);
  if (commit_ == Commit::kDone) return;  // the caller sees acknowledgeable() itself
  changed_.notify_one();
  report(lock);
}

void GroupCommit::run() {
  Lock lock(mutex_);
  while (true) {
    changed_.wait(lock,
                  [this] { return closing_ || failed() || (requested_ > durable_ && !syncing_); });
    if (policy_.mode == SyncPolicy::Mode::kInterval) {
      changed_.wait_for(lock, policy_.interval, [this] { return closing_; });
    }
    if (commit_ == Commit::kUnavailable)
      changed_.wait_for(lock, kRetry, [this] { return closing_; });
    if (closing_ || failed()) return;
    sync(lock);
    report(lock);
  }
}

// Acts with the lock released. Returns false if that is not done. If two fail at once, the first
// failure is kept.
template <typename Action>
bool GroupCommit::attempt(Lock& lock, Action action) {
  Commit commit = Commit::kDone;
  std::string why;
  lock.unlock();
  try {
    action();
  } catch (const LogUnavailable& error) {
    commit = Commit::kUnavailable;
    why = error.what();
  } catch (const Deposed& error) {
    commit = Commit::kDeposed;
    why = error.what();
  } catch (const std::exception& error) {
    commit = Commit::kFailed;
    why = error.what();
    if (why.empty()) why = "the sync failed";
  }
  lock.lock();
  if (failed()) return false;
  commit_ = commit;
  why_ = std::move(why);
  failed_.store(commit == Commit::kDeposed || commit == Commit::kFailed, std::memory_order_release);
  return commit == Commit::kDone;
}

void GroupCommit::sync(Lock& lock) {
  syncing_ = true;
  Sequence durable = 0;
  const auto began = std::chrono::steady_clock::now();
  const bool done = attempt(lock, [&] { durable = store_.sync(); });
  const auto took = std::chrono::steady_clock::now() - began;
  syncing_ = false;
  syncs_.fetch_add(1, std::memory_order_relaxed);
  if (!done) return;
  cost_.add(took);
  durable_ = std::max(durable_, durable);
  if (durable_ > acknowledgeable()) acknowledgeable_.store(durable_, std::memory_order_release);
}

// Under other policies than kAlways a sync acknowledges nothing new. Each change of the outcome is
// reported once.
void GroupCommit::report(Lock& lock) {
  const bool is_new = std::exchange(reported_, commit_) != commit_;
  const bool acknowledges = commit_ == Commit::kDone && policy_.mode == SyncPolicy::Mode::kAlways;
  if (!is_new && !acknowledges) return;
  const CommitReport report{commit_, acknowledgeable(), why_};
  lock.unlock();
  on_report_(report);
  lock.lock();
}

void GroupCommit::close() {
  {
    const Lock lock(mutex_);
    if (closing_) return;
    closing_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
  Lock lock(mutex_);
  if (failed() || requested_ <= durable_) return;
  sync(lock);
  report(lock);
}

GroupCommit::Counts GroupCommit::counts() const noexcept {
  return {syncs_.load(std::memory_order_relaxed), in_place_.load(std::memory_order_relaxed)};
}

}  // namespace carillon::queue
