// A shared log in memory that takes messages late, twice or never, and answers late or never: for
// tests of code that needs a real one.
//
//   ModelLog log(Writes::kConditional, 3, seed);
//   log.send(node, *actions.append, commands);   // a call of the node; one at a time
//   log.pass(5);                                 // ms: what is due arrives, and is answered
//   if (const auto answer = log.answer(node)) …  // committed() or failed() of the node's Role
//   log.at(position)                             // what its readers find
//
// A message arrives within 10 s, or never, and may arrive twice. A call without an answer within a
// second is unknown. All this follows from the seed. calm() ends these troubles.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "cluster/role.h"

namespace carillon::cluster::model {

using Commands = std::vector<std::uint32_t>;

// An entry that is in the log.
struct Stored {
  Entry entry;
  Commands commands;
  // Counts what was ever stored: a position may be taken again after a cut.
  std::uint64_t serial = 0;
};

struct Answer {
  std::optional<Failure> failure;
  Entry entry;  // committed, if there is no failure
};

class ModelLog {
 public:
  static constexpr LogId kId{7, 7};
  static constexpr Millis kTimeout = 1'000;

  ModelLog(Writes writes, std::size_t nodes, std::uint64_t seed)
      : writes_(writes), random_(seed), calls_(nodes) {}

  // REQUIRES: the node has no call under way.
  void send(std::size_t node, const Entry& entry, Commands commands);
  // The node has died: nobody waits for the answer any more.
  void forget_call(std::size_t node) { calls_[node] = {}; }
  // Returns the answer once it has arrived, and only once.
  std::optional<Answer> answer(std::size_t node);

  void pass(Millis ms);
  // on: messages arrive at once. off: late, twice or never.
  void calm(bool on) { calm_ = on; }

  std::size_t size() const { return stored_.size(); }
  // REQUIRES: 1 <= position <= size().
  const Stored& at(Position position) const;
  // Returns the entry at `position` as a reader whose chain is `chain` finds it.
  Entry entry_at(Position position, const Chain& chain) const;
  // Returns what is at the position where a reader found entry `serial`. 0, 0: it has read nothing.
  Place place_of(Position position, std::uint64_t serial) const;

  // The log loses all after `last`.
  void cut(Position last);

 private:
  struct Message {
    Entry entry;
    Commands commands;
    std::optional<std::size_t> waits;  // the node that waits for an answer
    std::uint64_t call = 0;
  };
  struct Call {
    std::uint64_t number = 0;  // 0: none
    Millis until = 0;
    Millis answered_at = 0;
    std::optional<Answer> answer = {};
  };

  bool in(unsigned percent) { return !calm_ && random_() % 100 < percent; }
  Millis delay() { return calm_ ? 1 : in(5) ? random_() % 10'000 : random_() % 10; }
  void arrive(const Message& message, Millis at);
  Answer take(const Message& message);
  bool takes(const Entry& entry) const;
  Chain last_chain() const { return stored_.empty() ? Chain{} : stored_.back().entry.after; }

  Writes writes_;
  std::mt19937_64 random_;
  bool calm_ = false;
  Millis now_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t serials_ = 0;
  std::multimap<Millis, Message> messages_;  // by the time of their arrival
  std::vector<Call> calls_;
  std::vector<Stored> stored_;
};

}  // namespace carillon::cluster::model
