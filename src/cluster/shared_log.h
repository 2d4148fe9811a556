// SharedLog: the log of a shard, kept by an engine that others run.
//
//   if (log.place_of(mark) == Place::kThere) …            // what was read is still there
//   for (const SharedLog::Stored& one : log.read(mark.position)) …
//   const SharedLog::Answer answer = log.append(entry, bytes);   // *actions.append of a Role
//   if (!answer.failure) … answer.position …              // it is in the log
//
// It keeps entries, each as the bytes that its maker has sent (entry_codec.h), in one order, and
// checks what is appended as Writes::kConditional says (role.h). It knows nothing of what the bytes
// say.
//
// Errors: calls that only read throw LogUnavailable (carillon/queue/store.h) if the engine cannot
// be asked now; the next call connects again. Every call returns within kPatience, whatever the
// engine and the network do.
//
// Thread safety: one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/role.h"

namespace carillon::cluster {

class SharedLog {
 public:
  // An append without an answer after this is unknown; what only reads is unavailable.
  static constexpr std::chrono::milliseconds kPatience{5'000};

  // An entry as it is stored.
  struct Stored {
    Position position = 0;
    std::string bytes;
    // The chain after this entry, as its maker has sent it, or, of a claim, as the engine has
    // computed it: chain_after(the chain before it, bytes).
    Chain chain = {};
  };

  // What has become of an append. If there is no failure: where the entry is, and its chain.
  struct Answer {
    std::optional<Failure> failure = {};
    std::string why = {};  // why it failed, for people
    Position position = 0;
    Chain chain = {};
  };

  SharedLog() = default;
  SharedLog(const SharedLog&) = delete;
  SharedLog& operator=(const SharedLog&) = delete;
  virtual ~SharedLog() = default;

  // The id that the log got when it was created.
  virtual LogId id() = 0;

  // Says what is at the position of the mark.
  virtual Place place_of(const Mark& mark) = 0;

  // Returns the entries behind `after` that are in the log now, the oldest first: some of them, but
  // at least one if there is one. At most about 8 MiB, or one entry.
  virtual std::vector<Stored> read(Position after) = 0;

  // Appends a window if `entry.before` is the log's chain and `entry.epoch` its epoch, and a claim
  // if the log's epoch is the one before. `entry.after` is the chain after a window. Throws
  // nothing: an append that was surely not sent is kUnavailable, one that may have arrived
  // kUnknown.
  virtual Answer append(const Entry& entry, std::string_view bytes) = 0;

  // A node, as the others see it.
  struct Node {
    std::uint64_t id = 0;  // the same after each start
    Owner owner = {};      // its name since it was started
    // Where its clients come in, as its operator has named it; `http` is empty if nowhere.
    std::string address = {};
    std::string http = {};
    bool serves = false;   // it owns the shard, and answers
    Position read = 0;     // how far its state has come
    Position flushed = 0;  // and how far its files have
    // How long ago it has reported itself, by the engine's clock.
    std::chrono::milliseconds silent_for{0};
  };

  // Reports a node, about twice a second, and prepares the log for what will be appended meanwhile.
  virtual void report(const Node& node) = 0;
  // Returns every node that was ever reported, by id.
  virtual std::vector<Node> nodes() = 0;

  // The entries before this position are not needed any more. Some may stay; the entry at the
  // position itself does.
  virtual void trim(Position before) = 0;

  // Returns this machine's UTC less that of the engine, in ms, as far as the time of the call lets
  // it be known: the smallest absolute value that is possible.
  virtual std::int64_t skew() = 0;
};

}  // namespace carillon::cluster
