// Telling errors apart (rocks_troubles.h).

#include "queue/store/state/rocks_troubles.h"

#include <rocksdb/convenience.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file_io.h"
namespace carillon::queue {

using rocksdb::Status;

namespace {

// RocksDB's threads rest for a second after an error, and Resume() waits for them. Calling it
// before that is useless.
constexpr std::chrono::milliseconds kRest{1'100};

// How RocksDB's messages about a read begin. No message about a write begins so.
constexpr std::array<std::string_view, 4> kReads = {
    "IO error: While pread", "IO error: While open a file for random read",
    "IO error: While opening a file for sequentially reading",
    "IO error: While reading file sequentially"};

// A Status has no errno, so its message must say it. An error that it does not name surely does not
// pass.
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
  *status =
      Status(*status, Status::Severity::kHardError);  // RocksDB does not resume after a fatal one
  const std::lock_guard lock(mutex_);
  stop(*status);
}

// It would flush by itself what may not be durable in the log.
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

Status RocksTroubles::cause() const {
  const std::lock_guard lock(mutex_);
  return cause_;
}

Status RocksTroubles::resume(rocksdb::DB& database) {
  if (!attempt_.valid()) {
    {
      const std::lock_guard lock(mutex_);
      if (std::chrono::steady_clock::now() < resume_at_) return cause_;
      stops_before_ = stops_;
    }
    try {
      attempt_ = std::async(std::launch::async, [&database] { return database.Resume(); });
    } catch (const std::system_error& why) {  // no more threads
      return Status::Busy(why.what());
    }
    watch_.begin();
    cancelled_ = false;
  }
  if (is_tried(database, std::chrono::milliseconds(0))) return cause();
  const Status status = attempt_.get();
  const std::lock_guard lock(mutex_);
  if (!status.ok()) stop(status);
  if (stops_ != stops_before_) return cause_;
  stopped_.store(false);
  return status;
}

void RocksTroubles::await_resume(rocksdb::DB& database) {
  while (attempt_.valid() && is_tried(database, FlushWatch::kBetweenLooks)) {
  }
}

// Returns true if the attempt still runs when the patience is over. If RocksDB leaves the flush for
// which Resume() waits, all work of RocksDB is cancelled, so that Resume() returns.
bool RocksTroubles::is_tried(rocksdb::DB& database, std::chrono::milliseconds patience) {
  if (attempt_.wait_for(patience) == std::future_status::ready) return false;
  if (!cancelled_ && watch_.is_left(database)) {
    cancelled_ = true;
    flush_is_left();
    rocksdb::CancelAllBackgroundWork(&database, false);
  }
  return true;
}

void RocksTroubles::flush_is_left() {
  set_broken("RocksDB does not carry out a flush");
}

void RocksTroubles::stop(const Status& cause) {
  cause_ = cause;
  ++stops_;
  resume_at_ = std::chrono::steady_clock::now() + kRest;
  stopped_.store(true);
}

}  // namespace carillon::queue
