// LocalLog: a log in the files of one directory.
//
//   LocalLog log("carillon-data", identity, {});
//   log.read(state_number, apply);
//   log.append(bytes, apply);
//   log.sync();                        // one write, durable when it returns
//
// A window becomes durable by one write past the page cache into blocks that were written before
// (log_segment.h). On a virtual disk that takes 92 us where a write and fdatasync take 100.
//
// The files are segments of 1 MiB: to make one stops an append for 2 to 4 ms, and not for longer. A
// segment whose changes were all trimmed is used again, so a log soon takes no more space than it
// needed at most between two trims, and no write waits for the file system. A record that is larger
// than a segment gets a segment of its own size, which is deleted when it was trimmed.
//
// After a crash the last records may be missing or cut short. Each record says which change was
// durable when it was written, so read() can tell what a crash may lose from damage: it refuses a
// log that lacks a change which was durable. One exception: of the changes that were synced last no
// later record says so, and damage to their record passes for a crash. What a crash has left behind
// the end is never taken for a record later: a log that was read goes on in a new segment.
//
// Memory: two windows. Descriptors: three at most. Thread safety: as every Log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "queue/store/log.h"
#include "queue/store/log_segment.h"
#include "queue/store/log_window.h"

namespace carillon::queue {

struct LocalLogOptions {
  std::size_t segment_bytes = 1 << 20;
  // Of all segments that are still needed. append() throws if they have so many bytes and it needs
  // one more segment.
  std::size_t most_bytes = 512 << 20;
  LogWrites writes = LogWrites::kDurable;
};

class LocalLog final : public Log {
 public:
  // Opens the log in `directory`, whose segments are the files named "log-N". There may be none.
  // `identity` is a random number that belongs to the directory. Throws StoreError.
  LocalLog(std::string directory, std::uint64_t identity, const LocalLogOptions& options);
  ~LocalLog() override;

  void read(LogNumber after, const Each& each) override;
  LogNumber append(std::string_view change, const Apply& apply) override;
  LogNumber sync() override;
  void write() override;
  std::string failure() const override;
  LogNumber last() const override;
  void trim(LogNumber number) override;
  std::size_t bytes() const override;

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Segments = std::list<LogSegment>;

  struct Writing {
    LogSegment* before = nullptr;  // to be made durable first: of a new segment, the one before
    const LogSegment* segment = nullptr;
    std::uint32_t block = 0;
    std::size_t size = 0;
    LogNumber last = 0;
  };

  void open_segments();
  void read_segment(LogSegment& segment, LogNumber end, const Each& each);
  void refuse_if_behind(LogNumber after) const;
  [[noreturn]] void missing(const std::string& where) const;
  void make_room(std::size_t bytes, Lock& lock);
  bool has_room(std::size_t blocks) const;
  void add_free_segment(std::size_t blocks, Lock& lock);
  std::string path_of(std::uint64_t file) const;
  std::optional<Writing> close_window();
  LogSegment* roll(std::size_t blocks, LogNumber first);
  void write_closed(const Writing& writing);
  void sync_handed(Lock& lock);
  template <typename Action>
  void or_fail(Lock& lock, Action action);
  [[noreturn]] void fail(const std::exception& why);
  void refuse_if_failed() const;

  const std::string directory_;
  const std::uint64_t identity_;
  const LocalLogOptions options_;

  mutable std::mutex mutex_;
  // Protected by mutex_:
  Segments used_;               // in the order of their changes; the last is open
  std::size_t used_bytes_ = 0;  // of all of them
  Segments free_;
  std::uint32_t next_block_ = 0;  // of the open segment; 0: none is open
  std::uint64_t last_serial_ = 0;
  LogNumber last_ = 0;                     // appended
  LogNumber handed_ = 0;                   // handed to the operating system
  LogNumber durable_ = 0;                  // on the disk
  const LogSegment* handed_to_ = nullptr;  // has the last change that was handed over
  LogWindow open_;
  std::string failure_;

  // Taken in this order, and before mutex_.
  std::mutex syncing_;  // held while a segment is synced
  std::mutex writing_;  // held while a window is written
  // Held from an fdatasync until its failure is known: if two threads sync one file, the system
  // reports lost bytes to only one of them.
  std::mutex fdatasync_;
  // Protected by writing_:
  LogWindow closed_;

  // The thread's that appends:
  std::uint64_t last_file_ = 0;
  LogNumber known_durable_ = 0;  // by what headers and records say
};

}  // namespace carillon::queue
