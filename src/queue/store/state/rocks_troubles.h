// RocksTroubles: errors in RocksDB's own threads, while they flush and compact, and what follows
// from them.
//
//   options.listeners = {troubles};
//   ...
//   if (troubles->broken()) ...              // nothing may be applied any more
//   if (troubles->stopped()) throw_if_bad(troubles->resume(database));   // now and again
//
// - *Broken*: a write, a sync or a truncation has failed, and nobody knows what the files hold.
//   Only opening the database anew shows it.
// - *Stopped*: a flush has failed for a reason that may pass: no space, no descriptors, or a read.
//   Its files are thrown away, and the memtables stay. RocksDB takes no writes until resume().
// - Neither, if a compaction has failed for a reason that may pass, or because of damage in what it
//   reads: it has changed nothing, and RocksDB tries again by itself. compaction_failure() says why
//   until one succeeds.
//
// Thread safety: one thread calls resume(), is_resuming(), await_resume() and forget_flush(), any
// thread the other methods.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/listener.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>

#include "queue/store/state/flush_watch.h"

namespace carillon::queue {

class RocksTroubles final : public rocksdb::EventListener {
 public:
  // If nobody knows what the files hold, returns why.
  std::optional<std::string> broken() const;
  // Calls `call` when that happens, or now if it has happened. An empty one ends that.
  void on_broken(const std::function<void()>& call);
  // Something else than a background error has left the database unusable.
  void set_broken(std::string why);
  // RocksDB has left a flush in its queue (flush_watch.h): the database is broken.
  void flush_is_left();

  bool stopped() const { return stopped_.load(); }
  // Why the database is stopped.
  rocksdb::Status cause() const;
  // Tries to go on, which flushes everything in memory. Another thread does it, because it may take
  // long: on a slow disk, or for ever if RocksDB leaves the flush in its queue. Returns OK if
  // RocksDB goes on, else why it does not, or does not yet.
  rocksdb::Status resume(rocksdb::DB& database);
  // Returns true if that thread is at work, or has ended and resume() has not reported yet how.
  bool is_resuming() const { return attempt_.valid(); }
  // Waits until that thread has ended.
  void await_resume(rocksdb::DB& database);

  // Why the last compaction has failed, or an empty string.
  std::string compaction_failure() const;

  // Returns true if a family was flushed since the last forget_flush().
  bool flush_completed() const { return flush_completed_.load(); }
  void forget_flush() { flush_completed_.store(false); }

 private:
  // rocksdb::EventListener
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* status) override;
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason reason, rocksdb::Status status,
                            bool* automatic) override;
  void OnFlushCompleted(rocksdb::DB* database, const rocksdb::FlushJobInfo& info) override;
  void OnCompactionCompleted(rocksdb::DB* database,
                             const rocksdb::CompactionJobInfo& info) override;

  bool is_tried(rocksdb::DB& database, std::chrono::milliseconds patience);
  void stop(const rocksdb::Status& cause);

  std::atomic<bool> stopped_ = false;
  std::atomic<bool> flush_completed_ = false;
  mutable std::mutex mutex_;
  // Protected by mutex_:
  std::string broken_;
  std::string compaction_failure_;
  std::function<void()> on_broken_;
  rocksdb::Status cause_;
  std::uint64_t stops_ = 0;
  std::chrono::steady_clock::time_point resume_at_;

  // Belong to the thread that calls resume():
  std::uint64_t stops_before_ = 0;  // how often RocksDB had stopped before the attempt
  FlushWatch watch_;
  bool cancelled_ = false;  // all work of RocksDB was cancelled, so that the attempt ends
  std::future<rocksdb::Status> attempt_;
};

}  // namespace carillon::queue
