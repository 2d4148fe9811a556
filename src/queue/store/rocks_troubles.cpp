// Telling errors apart (rocks_troubles.h).

#include "queue/store/rocks_troubles.h"

#include <rocksdb/convenience.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/file_io.h"
#include "queue/store/flush_watch.h"

namespace carillon::queue {

using rocksdb::Status;

namespace {

// RocksDB's threads rest for a second after an error, and Resume() waits for them. Before that
// there is no use in it.
constexpr std::chrono::milliseconds kRest{1'100};

// How RocksDB's messages about a read begin. No message about a write begins so.
constexpr std::array<std::string_view, 4> kReads = {
    "IO error: While pread", "IO error: While open a file for random read",
    "IO error: While opening a file for sequentially reading",
    "IO error: While reading file sequentially"};

// A Status has no errno, so its message has to tell. What it does not tell for sure does not pass.
bool may_pass(const Status& status) {
  if (status.IsNoSpace() || status.IsShutdownInProgress()) return true;
  const std::string text = status.ToString();
  return std::any_of(kReads.begin(), kReads.end(),
                     [&](std::string_view read) { return text.starts_with(read); }) ||
         std::any_of(base::kShortages.begin(), base::kShortages.end(),
                     [&](int error) { return text.ends_with(std::strerror(error)); });
}

}  // namespace

void RocksTroubles::OnBackgroundError(rocksdb::BackgroundErrorReason reason, Status* status) {
  if (reason == rocksdb::BackgroundErrorReason::kCompaction &&
      (!status->IsIOError() || may_pass(*status))) {
    const std::lock_guard lock(mutex_);
    compaction_failure_ = status->ToString();
    *status = Status::OK();  // else the next flush would fail with it
    return;
  }
  if (!may_pass(*status)) return set_broken(status->ToString());
  *status = Status(*status, Status::Severity::kHardError);  // of a fatal one it does not resume
  const std::lock_guard lock(mutex_);
  stop(*status);
}

// RocksDB would flush by itself what may not be durable in the log.
void RocksTroubles::OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, Status, bool* automatic) {
  *automatic = false;
}

void RocksTroubles::OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo&) {
  flush_completed_.store(true);
}

void RocksTroubles::OnCompactionCompleted(rocksdb::DB*, const rocksdb::CompactionJobInfo& info) {
  if (!info.status.ok()) return;
  const std::lock_guard lock(mutex_);
  compaction_failure_.clear();
}

std::string RocksTroubles::compaction_failure() const {
  const std::lock_guard lock(mutex_);
  return compaction_failure_;
}

std::optional<std::string> RocksTroubles::broken() const {
  const std::lock_guard lock(mutex_);
  return broken_.empty() ? std::nullopt : std::optional(broken_);
}

void RocksTroubles::set_broken(std::string why) {
  const std::lock_guard lock(mutex_);
  if (!broken_.empty()) return;
  broken_ = std::move(why);
  if (on_broken_) on_broken_();
}

void RocksTroubles::on_broken(const std::function<void()>& call) {
  const std::lock_guard lock(mutex_);
  on_broken_ = call;
  if (on_broken_ && !broken_.empty()) on_broken_();
}

Status RocksTroubles::resume(rocksdb::DB& database) {
  {
    const std::lock_guard lock(mutex_);
    if (std::chrono::steady_clock::now() < resume_at_) return cause_;
    stopped_.store(false);
  }
  Status status = resume_and_watch(database);
  const std::lock_guard lock(mutex_);
  if (!status.ok()) stop(status);
  return status;
}

// Resume() waits for a flush, and for ever if RocksDB leaves it. Then all work of RocksDB is
// cancelled, so that Resume() returns.
Status RocksTroubles::resume_and_watch(rocksdb::DB& database) {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_over = false;
  const auto watch_it = [&] {
    FlushWatch watch;
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, FlushWatch::kBetweenLooks, [&] { return is_over; })) {
      if (!watch.is_left(database)) continue;
      flush_is_left();
      return rocksdb::CancelAllBackgroundWork(&database, false);
    }
  };
  std::thread watcher;
  try {
    watcher = std::thread(watch_it);
  } catch (const std::system_error& why) {  // no more threads
    return Status::Busy(why.what());
  }
  Status status = database.Resume();
  {
    const std::lock_guard lock(mutex);
    is_over = true;
  }
  changed.notify_one();
  watcher.join();
  return status;
}

void RocksTroubles::flush_is_left() {
  set_broken("RocksDB does not carry out a flush");
}

void RocksTroubles::stop(const Status& cause) {
  cause_ = cause;
  resume_at_ = std::chrono::steady_clock::now() + kRest;
  stopped_.store(true);
}

}  // namespace carillon::queue
