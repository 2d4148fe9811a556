// Log: the order of all changes of one queue, and the only thing that must be durable before a
// reply leaves.
//
//   log.read(state.position(), [&](LogNumber number, std::string_view change) { ... });
//   ...
//   log.append(change, [&](LogNumber number) { state.apply(number, change); });      // visible
//   ...
//   log.sync();                                   // the window is one record, and durable
//   ...
//   log.trim(state.flushed());                    // the state has these changes in its own files
//
// Changes are numbered from 1, without a gap, through the whole life of a log. The changes that are
// appended between two syncs are a *window*; a window becomes one record: a crash keeps all of it
// or nothing.
//
// LocalLog (local_log.h) keeps a log in files. A log that several machines share will be another
// implementation: nothing here says where a record is durable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace carillon::queue {

// Counts the changes of one log from 1. 0: before the first.
using LogNumber = std::uint64_t;

// A place in a log. The chain tells one history of the log from another.
struct LogPosition {
  LogNumber number = 0;                // the last change before it
  std::optional<std::uint32_t> chain;  // Log::chain() of that change; nothing: not known
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
  // that was durable, or if `after` is of another history. REQUIRES: it is called once, before
  // anything is appended; `after` is not below the last trim.
  virtual void read(const LogPosition& after, const Each& each) = 0;

  // Adds a change to the open window and returns its number. Before it does so, and when the log is
  // sure to take the change, it calls `apply` with the number. If the log or `apply` throws,
  // nothing was appended, and the number is given to the next change.
  virtual LogNumber append(std::string_view change, const Apply& apply) = 0;

  // Makes durable everything that was appended before the call. Returns the number of the last
  // change that is durable. After it has thrown once, what the medium holds is unknown: every later
  // call throws.
  virtual LogNumber sync() = 0;

  // Hands everything that was appended before the call to the operating system: a crash of the
  // process loses none of it, a crash of the machine may. Throws as sync() does.
  virtual void write() = 0;

  // Returns why sync() and write() throw from now on, or an empty string. Any thread may call it.
  virtual std::string failure() const = 0;

  // The checksum of the record with the last change that was read, or that is durable: each record
  // contains the checksum of the record before, so it stands for all changes up to there. 0: there
  // is no such record. REQUIRES: no write() or sync() is under way.
  virtual std::uint32_t chain() const = 0;

  // The number of the last change that was appended.
  virtual LogNumber last() const = 0;

  // The changes up to `number` are never read again; their space may be used anew. REQUIRES: they
  // are durable.
  virtual void trim(LogNumber number) = 0;

  // How many bytes the changes take that were not trimmed, on the medium and in the open window.
  virtual std::size_t bytes() const = 0;
};

}  // namespace carillon::queue
