// Log: the order of all changes of one queue, and the only thing that must be durable before a
// reply leaves.
//
//   log.read(state.flushed_position(), [&](LogNumber number, std::string_view change) { ... });
//   ...
//   log.append(change, [&](LogNumber number) { state.apply(number, change); });      // visible
//   ...
//   log.sync();                                   // the window is one record, and durable
//   ...
//   log.trim(state.flushed_position());           // the state has these changes in its own files
//
// Changes are numbered from 1, without a gap, through the whole life of a log. The changes that are
// appended between two syncs are a *window*; a window becomes one record: a crash keeps all of it
// or nothing.
//
// A store gets its log from a LogSource, and does not know where a record is durable: LocalLog
// (src/queue/store/log/local_log.h) keeps it in files, and ClusterLog
// (src/cluster/cluster_log.h) in an engine that several servers read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace carillon::base {
class Directory;
}

namespace carillon::queue {

// Counts the changes of one log from 1. 0: before the first.
using LogNumber = std::uint64_t;

// A place in a log.
struct LogPosition {
  LogNumber number = 0;  // the last change before it
  // Log::mark() as of that change. Empty: not known.
  std::string mark = {};
};

// Thread safety: one thread appends, reads and trims; sync() and write() may be called by any
// thread at the same time. Every method throws StoreError (store.h) if the medium fails.
class Log {
 public:
  using Each = std::function<void(LogNumber number, std::string_view change)>;
  using Apply = std::function<void(LogNumber number)>;

  Log() = default;
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  virtual ~Log() = default;

  // Calls `each` for every change behind `after`, in order. Throws StoreError if one is missing
  // that was durable, or if `after` is of another history. A shared log goes on until this server
  // owns it. REQUIRES: it is called once, before anything is appended; `after` is not below the
  // last trim.
  virtual void read(const LogPosition& after, const Each& each) = 0;

  // Adds a change to the open window and returns its number. Before it does so, and when the log is
  // sure to take the change, it calls `apply` with the number. If the log or `apply` throws,
  // nothing was appended, and the number is given to the next change.
  virtual LogNumber append(std::string_view change, const Apply& apply) = 0;

  // Makes durable everything that was appended before the call. Returns the number of the last
  // change that is durable. After it has thrown once, what the medium holds is unknown: every later
  // call throws. A shared log may also throw LogUnavailable, after which a later call may succeed,
  // and Deposed.
  virtual LogNumber sync() = 0;
  // As Store::is_shared().
  virtual bool is_shared() const { return false; }

  // Hands everything that was appended before the call to the operating system: a crash of the
  // process loses none of it, a crash of the machine may. Throws as sync() does. A shared log has
  // only sync().
  virtual void write() = 0;

  // Called when nothing will be appended any more, after a sync() of everything. A shared log tells
  // the other servers, so that one of them takes over soon. Throws nothing.
  virtual void leave() {}

  // Returns why sync() and write() throw from now on, or an empty string. Any thread may call it.
  virtual std::string failure() const = 0;

  // What tells the history up to the last change that was read, or that is durable, from any other:
  // a flush of the state stores it with the number of that change, and read() compares it. None: no
  // flush may begin now, because only a part of a window was read. REQUIRES: no write() or sync()
  // is under way.
  virtual std::optional<std::string> mark() const = 0;

  // The number of the last change that was appended.
  virtual LogNumber last() const = 0;

  // The changes up to `flushed` are never read again by this server; their space may be used anew.
  // REQUIRES: they are durable.
  virtual void trim(const LogPosition& flushed) = 0;

  // How many bytes the changes take that were not trimmed, on the medium and in the open window.
  virtual std::size_t bytes() const = 0;

  // Returns false while an append might have to wait for the medium.
  virtual bool has_room() const = 0;
  // Gives back the space that is not needed now, for a disk that is nearly full. To be called as
  // trim().
  virtual void give_back() = 0;
  // A line for each thing that read() has left out because a crash had cut it off.
  virtual const std::vector<std::string>& dropped() const = 0;
};

// Where a store gets its log from.
class LogSource {
 public:
  LogSource() = default;
  LogSource(const LogSource&) = delete;
  LogSource& operator=(const LogSource&) = delete;
  virtual ~LogSource() = default;

  // Makes the log of a new store, durably. `directory` is the store's, and `identity` a random
  // number of the store. Returns the mark before the first change. Throws StoreError.
  virtual std::string make(const base::Directory& directory, std::uint64_t identity) const = 0;
  // Opens the log that was made so. `directory` must outlive it. Throws StoreError.
  virtual std::unique_ptr<Log> open(const base::Directory& directory,
                                    std::uint64_t identity) const = 0;
};

}  // namespace carillon::queue
