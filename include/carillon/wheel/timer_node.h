// TimerNode: a timer, 16 bytes that its owner embeds in the object that waits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "carillon/require.h"
#include "carillon/wheel/moment.h"

namespace carillon {

namespace detail {
struct NodeAccess;
}

// An intrusive timer: make it a base or a member of the object that waits, and hand it to a
// TimerSet.
//
//   struct Connection : carillon::TimerNode { int socket; };
//   wheel.schedule(connection, wheel.now() + 30'000);
//   wheel.advance(now, [](carillon::TimerNode& node) {
//     close(static_cast<Connection&>(node).socket);
//   });
//
// A node is armed from schedule() until it is cancelled, fires, or is cleared. While it is armed,
// the set that armed it keeps a pointer to it, hence:
//  - its address must not change while armed: nodes can be neither copied nor moved;
//  - only the set that armed it may be asked to cancel it, or to schedule it again.
// A node that is destroyed while armed cancels itself. That is O(1), but slower than cancel(): it
// looks through a few hundred bytes for the set. A set that is destroyed disarms the nodes that are
// left in it.
//
// Thread safety: none; a node belongs to the thread that owns its set.
class TimerNode {
 public:
  TimerNode() = default;
  TimerNode(const TimerNode&) = delete;
  TimerNode& operator=(const TimerNode&) = delete;
  ~TimerNode() {
    if (armed()) [[unlikely]]
      cancel_itself();
  }

  // The tick that this node was last scheduled for, as the caller gave it; 0 if it never was.
  Moment expiry() const noexcept { return Moment{expiry_}; }

  // Returns true if a set holds this node, which will fire.
  bool armed() const noexcept { return entry_ != nullptr; }

 private:
  friend struct detail::NodeAccess;

  [[gnu::cold]] inline void cancel_itself() noexcept;

  Tick expiry_ = 0;
  // The entry, in the arrays of its set, that points back to this node; null if it is not armed.
  TimerNode** entry_ = nullptr;
};

static_assert(sizeof(TimerNode) == 16, "an expiry and a pointer, no more");

namespace detail {

// Where a set counts the timers of some of its entries. An entry is all that a node knows of its
// set, so each row of entries has a mark in front: the address of its RowOwner, made odd, which no
// entry is. A node that dies while armed goes back along the row to the mark.
struct RowOwner {
  std::size_t* timers = nullptr;

  TimerNode* mark() noexcept {
    return reinterpret_cast<TimerNode*>(reinterpret_cast<std::uintptr_t>(this) + 1);
  }
  static bool is_mark(const TimerNode* entry) noexcept {
    return reinterpret_cast<std::uintptr_t>(entry) % 2 == 1;
  }
  static RowOwner& of(const TimerNode* mark) noexcept {
    return *reinterpret_cast<RowOwner*>(reinterpret_cast<std::uintptr_t>(mark) - 1);
  }
};

// The fields of a node, for the authors of models only.
struct NodeAccess {
  static Tick& expiry(TimerNode& node) noexcept { return node.expiry_; }
  static TimerNode**& entry(TimerNode& node) noexcept { return node.entry_; }
  static TimerNode** entry(const TimerNode& node) noexcept { return node.entry_; }

  // Replaces `from`, armed or not, by `to`: a set knows its timers by their entries alone.
  // REQUIRES: `to` is not armed.
  static void move(TimerNode& from, TimerNode& to) noexcept {
    CARILLON_REQUIRE(!to.armed(), to.expiry());
    to.expiry_ = from.expiry_;
    to.entry_ = from.entry_;
    if (from.armed()) *from.entry_ = &to;
    from.entry_ = nullptr;
  }
};

}  // namespace detail

inline void TimerNode::cancel_itself() noexcept {
  *entry_ = nullptr;
  while (!detail::RowOwner::is_mark(*entry_)) --entry_;
  --*detail::RowOwner::of(*entry_).timers;
}

}  // namespace carillon
