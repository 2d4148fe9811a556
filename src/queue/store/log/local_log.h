// LocalLog: a log in the files of one directory.
//
//   const base::Directory directory("carillon-data");
//   LocalLog::make(directory, identity, {});              // once, for a new store
//   ...
//   LocalLog log(directory, identity, {});
//   log.read(state.position(), apply);
//   log.append(bytes, apply);
//   log.sync();                        // one write, durable when it returns
//
// A window becomes durable by one write past the page cache into blocks that were written before
// (log_segment.h). On a virtual disk that takes 92 us where a write and fdatasync take 100.
//
// The files are segments of 1 MiB. Another thread makes each one before it is needed, because that
// may take long on a slow disk. A segment whose changes were all trimmed is used again, so a log
// soon takes no more space than it needed at most between two trims, and no write waits for the
// file system. give_back() deletes those that are not needed now. A record that is larger than a
// segment gets a segment of its own size, which is deleted when it was trimmed.
//
// One more file, newest.data, says which segment is the newest (newest_file.h): without it, or
// without that segment, the log counts as lost. After a crash the last records may be missing or
// cut short; log_reader.h says how a crash differs from damage, which is refused. What a crash has
// left behind the end is never taken for a record later: a log that was read goes on in a new
// segment, and in a new life.
//
// Memory: two windows. Descriptors: five at most. Thread safety: as every Log.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/directory.h"
#include "carillon/queue/log.h"
#include "queue/store/log/log_reader.h"
#include "queue/store/log/log_segment.h"
#include "queue/store/log/log_window.h"
#include "queue/store/log/newest_file.h"

namespace carillon::queue {

struct LocalLogOptions {
  std::size_t segment_bytes = 1 << 20;
  // The most bytes that segments in use may have. append() throws if they have as many and it needs
  // one more segment.
  std::size_t most_bytes = 512 << 20;
  LogWrites writes = LogWrites::kDurable;
  std::uint64_t boot = 0;  // identifies the boot of the machine; 0: unknown
};

class LocalLog final : public Log {
 public:
  // Makes a log without changes, which goes on behind `after`, durably. Throws StoreError; also if
  // there is a log in the directory already.
  static void make(const base::Directory& directory, std::uint64_t identity,
                   const LogPosition& after);

  // `identity` is a random number that belongs to the log, and `directory` must outlive this.
  LocalLog(const base::Directory& directory, std::uint64_t identity,
           const LocalLogOptions& options);
  ~LocalLog() override;

  void read(const LogPosition& after, const Each& each) override;
  LogNumber append(std::string_view change, const Apply& apply) override;
  LogNumber sync() override;
  void write() override;
  std::string failure() const override;
  std::optional<std::string> mark() const override;
  LogNumber last() const override;
  void trim(const LogPosition& flushed) override;
  std::size_t bytes() const override;

  // False while a segment is being made, or the open window is being written.
  bool has_room() const override;
  // Deletes the free segments but one.
  void give_back() override;
  const std::vector<std::string>& dropped() const override { return dropped_; }

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Segments = std::list<LogSegment>;

  struct Writing {
    LogSegment* before =
        nullptr;  // must be made durable first: the segment before, if `segment` is new
    const LogSegment* segment = nullptr;
    std::uint32_t block = 0;
    std::size_t size = 0;
    LogNumber last = 0;
  };

  void take_over(LogReader& reader);
  void make_room(std::size_t bytes, Lock& lock);
  bool has_room(std::size_t blocks) const;
  void add_free_segment(std::size_t blocks, Lock& lock);
  std::uint32_t usual_blocks() const;
  LogSegment make_segment(std::uint32_t blocks, std::uint64_t number) const;
  void make_ahead();
  void run();
  void begin_thread();
  std::optional<Writing> close_window();
  LogSegment* roll(std::size_t blocks, LogNumber first);
  std::uint32_t write_closed(const Writing& writing);
  void sync_handed(Lock& lock);
  template <typename Action>
  void or_fail(Lock& lock, Action action);
  [[noreturn]] void fail(const std::exception& why);
  void refuse_if_failed() const;

  const base::Directory& directory_;
  const std::uint64_t identity_;
  const LocalLogOptions options_;
  const std::uint64_t life_;

  mutable std::mutex mutex_;
  // Protected by mutex_:
  Segments used_;               // in the order of their changes; the last is open
  std::size_t used_bytes_ = 0;  // bytes of all of them
  Segments free_;
  std::uint32_t next_block_ = 0;  // in the open segment; 0: none is open
  std::uint64_t last_serial_ = 0;
  std::uint64_t last_file_ = 0;
  std::uint32_t chain_ = 0;                // checksum of the last record that was handed over
  LogNumber last_ = 0;                     // the last change that was appended
  LogNumber handed_ = 0;                   // the last one that was handed to the operating system
  LogNumber durable_ = 0;                  // the last one on the disk
  const LogSegment* handed_to_ = nullptr;  // has the last change that was handed over
  LogWindow open_;
  std::string failure_;
  bool making_thread_runs_ = false;
  bool wants_segment_ = false;  // the thread must make a segment, or is making one
  bool closing_ = false;
  std::condition_variable changed_;

  // Locked in this order, and before mutex_.
  std::mutex syncing_;  // held while a segment is synced
  std::mutex writing_;  // held while a window is written
  // Held from an fdatasync until its failure is known: if two threads sync one file, the system
  // reports lost bytes to only one of them.
  std::mutex fdatasync_;
  // Protected by writing_:
  LogWindow closed_;
  std::optional<NewestFile> newest_;  // from read() on

  // Used only by the thread that appends:
  const LogReader* reader_ = nullptr;  // while it reads
  std::vector<std::string> dropped_;
  std::thread making_thread_;  // begins with the first trim(): what was read may leave segments
};

// The logs in the directories of their stores.
class LocalLogs final : public LogSource {
 public:
  explicit LocalLogs(const LocalLogOptions& options) : options_(options) {}

  std::string make(const base::Directory& directory, std::uint64_t identity) const override {
    LocalLog::make(directory, identity, {});
    return mark_of(0);
  }
  std::unique_ptr<Log> open(const base::Directory& directory,
                            std::uint64_t identity) const override {
    return std::make_unique<LocalLog>(directory, identity, options_);
  }

 private:
  LocalLogOptions options_;
};

}  // namespace carillon::queue
