// TrackerCore: the inside of an IdleTracker. Its connections are in blocks (connection_blocks.h),
// and the blocks are on the wheels of their classes (timeout_classes.h). advance() inspects the
// blocks whose timer fires.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "carillon/idle/detail/connection_blocks.h"
#include "carillon/idle/detail/stamp.h"
#include "carillon/idle/detail/timeout_class.h"
#include "carillon/idle/detail/timeout_classes.h"
#include "carillon/wheel/exceptions.h"
#include "carillon/wheel/slack.h"
#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"

namespace carillon::detail {

struct TrackerAccess;  // for the tests

// The contracts are those of IdleTracker (idle_tracker.h), which checks all arguments.
//
// *Inspecting* a block means reading its stamps. Connections that are idle get a bit in `found` and
// wait in a queue to be handed over. For the others the block is scheduled again.
//
// Invariants
//  - A block with connections that are not in `found` is on the wheel of its class, at a tick no
//    later than the one at which the hand must reach any of them; after a fall of the factor it may
//    be one tick later (timeout_class.h).
//  - A block with connections and room is in the list of its class.
//  - A block with a bit in `found` is in the queue found_.
//  - next_ is no later than the tick at which the next timer of a block fires, and no later than
//    now() while the queue is not empty.
template <class Key, std::uint32_t kLastGeneration>
class TrackerCore {
 public:
  static constexpr Tick kLongestTimeout = TimeoutClasses::kLongestTimeout;

  static constexpr std::size_t kMostConnections = ConnectionBlocks<Key, kLastGeneration>::kMost;

  TrackerCore(Tick start_tick, std::size_t most) : blocks_(most), now_(start_tick) {
    move_to(start_tick);
  }
  TrackerCore(const TrackerCore&) = delete;
  TrackerCore& operator=(const TrackerCore&) = delete;

  IdleId add(Key&& key, Tick timeout, Tick at) {
    Class& timeout_class = class_for(timeout);
    free_left();
    blocks_.require_possible(blocks_.taken() + 1);
    if (blocks_.is_exhausted()) reserve(blocks_.taken() + 1);
    admit(timeout_class, timeout);
    Block& block = classes_.block_with_room(blocks_, timeout_class, timeout);
    const std::uint32_t index = blocks_.acquire(block, std::move(key), timeout);
    classes_.update_list(block, false);
    blocks_.restamp(index, at);
    raise_class_for(block, timeout_class, timeout);
    schedule_by(block, at, timeout);
    return blocks_.id(index);
  }

  void touch(IdleId id) noexcept { blocks_.touch(id, stamp_now_.load(std::memory_order_relaxed)); }
  void touch(IdleId id, Tick at) noexcept { blocks_.touch(id, Stamp::of(at)); }

  bool remove(IdleId id) noexcept { return blocks_.remove(id); }

  bool set_timeout(IdleId id, Tick timeout) {
    Class& timeout_class = class_for(timeout);
    if (!blocks_.holds(id)) return false;
    admit(timeout_class, timeout);
    blocks_.connection(id.index).timeout = timeout;
    raise_class_for(blocks_.block_of(id.index), timeout_class, timeout);
    schedule_by(blocks_.block_of(id.index), last_packet(id.index), timeout);
    return true;
  }

  const ConnectionBlocks<Key, kLastGeneration>& connections() const noexcept { return blocks_; }
  Tick last_packet(std::uint32_t index) const noexcept {
    return now_ - static_cast<Tick>(age(index));
  }

  template <class OnIdle>
  std::size_t advance(Tick to, OnIdle& on_idle, std::size_t limit) {
    if (to < next_ && to >= now_ && to - now_ <= kStep) {  // no timer fires before next_
      move_to(to);
      return 0;
    }
    return process(to, on_idle, limit);
  }

  Tick now() const noexcept { return now_; }
  Tick next() const noexcept { return next_; }
  double factor() const noexcept { return factor_.value(); }

  void scale(double factor) noexcept {
    factor_ = Factor(factor);
    classes_.scale(factor_);
    if (!busy_) recompute_next();
  }

  void prepare_for(Tick timeout) { class_for(timeout); }

  // The wheels come first: so advance() never finds a wheel without room for a block.
  void reserve(std::size_t connections) {
    blocks_.require_possible(connections);
    const std::size_t blocks = std::max(blocks_.blocks_for(connections), blocks_.blocks());
    classes_.reserve(blocks);
    blocks_.reserve(connections);
  }

  std::size_t allocated_bytes() const noexcept {
    return blocks_.bytes() + classes_.allocated_bytes();
  }

  void check_invariants() const;

 private:
  friend struct TrackerAccess;

  using Class = TimeoutClass;

  // Connections that an advance() with a limit may inspect, beyond the limit.
  static constexpr std::size_t kMostInspected = std::size_t{1} << 17;
  // Blocks whose stamps are prefetched before the first is inspected: 32 KiB of stamps.
  static constexpr std::size_t kFetchedAhead = 256;
  // Ticks by which time moves at most before blocks are inspected. The longest time-out, a
  // sixteenth of it and one step are together less than Stamp::kReach.
  static constexpr Tick kStep = Stamp::kReach / 4;

  // What one advance() may still do.
  struct Budget {
    std::size_t limit;         // connections that it may find
    std::size_t inspect_left;  // connections that it may still inspect; kNoLimit: any number
    std::size_t found = 0;

    bool is_spent() const noexcept { return found == limit || inspect_left == 0; }
  };

  struct Busy {
    bool& busy;
    explicit Busy(bool& flag) noexcept : busy(flag) { busy = true; }
    ~Busy() { busy = false; }
  };

  void move_to(Tick now) noexcept {
    now_ = now;
    stamp_now_.store(Stamp::of(now + 1), std::memory_order_relaxed);
  }

  // --- classes and blocks

  Class& class_for(Tick timeout) { return classes_.of(timeout, now_, blocks_.blocks()); }

  void admit(Class& timeout_class, Tick timeout) noexcept {
    if (timeout <= timeout_class.longest()) return;
    timeout_class.admit(timeout, factor_);
    update_next(timeout_class);  // at a factor below 1 its hand now runs further ahead
  }

  void raise_class_for(Block& block, Class& timeout_class, Tick timeout) noexcept {
    if (classes_.raise_class_for(block, timeout_class, timeout)) update_next(timeout_class);
  }

  // Frees the index of a connection that has ended.
  void free(std::uint32_t index) noexcept {
    Block& block = blocks_.block_of(index);
    const bool was_full = block.is_full();
    blocks_.free(index);
    classes_.update_list(block, was_full);
    if (block.live == 0) blocks_.stop_using(block);
  }
  void free_left() noexcept {
    blocks_.take_left([this](std::uint32_t index) { free(index); });
  }

  void update_next(const Class& timeout_class) noexcept {
    next_ = std::min(next_, timeout_class.next(now_));
  }
  void recompute_next() noexcept { next_ = found_.front() != nullptr ? now_ : classes_.next(now_); }

  // --- one connection

  std::int64_t age(std::uint32_t index) const noexcept {
    return Stamp::age(blocks_.stamp(index).load(std::memory_order_relaxed), now_);
  }

  // The tick at which the hand must reach a connection that is not idle now, if the factor stays.
  // `last`: its last packet; `hand`: where the hand stands.
  Tick deadline(const Class& timeout_class, Tick hand, Tick last, Tick timeout) const noexcept {
    const Tick deadline = last + timeout;
    if (deadline > hand) return deadline;
    return std::max(last + factor_.of(timeout) + timeout_class.lead(), hand + 1);
  }

  // Schedules `block` so that it is inspected in time for a connection with these values.
  void schedule_by(Block& block, Tick last, Tick timeout) noexcept {
    Class& timeout_class = classes_.of(block);
    const bool is_idle =
        static_cast<std::int64_t>(now_ - last) >= static_cast<std::int64_t>(factor_.of(timeout));
    const Tick tick = is_idle ? last + timeout
                              : deadline(timeout_class, timeout_class.wheel.now(), last, timeout);
    if (block.armed() && block.expiry() <= tick) return;
    timeout_class.wheel.reschedule(block, Moment{tick});
    update_next(timeout_class);
  }

  // --- advancing

  template <class OnIdle>
  [[gnu::noinline]] std::size_t process(Tick to, OnIdle& on_idle, std::size_t limit) {
    if (busy_)
      CARILLON_THROW std::logic_error("carillon: advance() was called from inside on_idle");
    if (to < now_)
      CARILLON_THROW std::invalid_argument("carillon: advance(" + std::to_string(to) +
                                           ") would go back: the tracker is at tick " +
                                           std::to_string(now_));
    const Busy busy(busy_);
    free_left();
    const std::size_t most =
        limit == kNoLimit ? kNoLimit : kMostInspected + std::min(limit, kNoLimit - kMostInspected);
    Budget budget{limit, most};
    // A stamp tells only a distance from now(). So time moves in steps, short enough that each
    // connection is inspected before its stamp is out of reach.
    do {
      move_to(blocks_.taken() == 0 ? to : std::min(to, now_ + kStep));
      inspect_due(on_idle, budget);
    } while (now_ != to && !budget.is_spent());
    return budget.found;
  }

  // Inspects all blocks that are due, class by class. If the budget ends earlier, the next call
  // begins with the class after the one where this call stopped.
  template <class OnIdle>
  void inspect_due(OnIdle& on_idle, Budget& budget) {
    next_ = now_;
    for (std::size_t done = 0; done < classes_.size(); ++done) {  // on_idle may add classes
      if (next_class_ >= classes_.size()) next_class_ = 0;
      Class& timeout_class = classes_[next_class_++];
      if (!inspect_due(timeout_class, on_idle, budget)) return;
    }
    recompute_next();
  }

  // Returns false if the budget ended before all due blocks of the class were inspected.
  template <class OnIdle>
  bool inspect_due(Class& timeout_class, OnIdle& on_idle, Budget& budget) {
    while (hand_over(on_idle, budget)) {
      const Tick target = timeout_class.target(now_);
      std::array<Block*, kFetchedAhead> due;
      std::size_t count = 0;
      const auto collect = [&](TimerNode& node) {
        Block* block = static_cast<Block*>(&node);
        due[count++] = block;
        __builtin_prefetch(&blocks_.stamp(block->number * Block::kSize));
        __builtin_prefetch(&blocks_.stamp(block->number * Block::kSize + Block::kSize / 2));
      };
      timeout_class.wheel.advance(target, collect, budget.inspect_left == 0 ? 0 : kFetchedAhead);
      for (std::size_t i = 0; i < count; ++i) inspect(*due[i], target);
      if (budget.inspect_left != kNoLimit)
        budget.inspect_left -= std::min(budget.inspect_left, count * Block::kSize);
      const bool more = timeout_class.next(now_) <= now_;
      if (count == 0 && !more) return true;
      if (budget.inspect_left == 0) return false;
    }
    return false;
  }

  // Call it when the timer of `block` has fired, with the hand on its way to `hand`.
  void inspect(Block& block, Tick hand) noexcept {
    if (block.live == 0) return;
    if (block.mixed) return inspect_mixed(block, hand);
    const auto limit = static_cast<std::int64_t>(factor_.of(block.timeout));
    const auto* const stamps = &blocks_.stamp(block.number * Block::kSize);
    std::int64_t oldest = block.live == Block::kAll ? blocks_.oldest_age(block, now_) : kNoAge;
    if (oldest == kNoAge || oldest >= limit) {
      oldest = kNoAge;
      unsigned idle = 0;
      for (unsigned position = 0; position < Block::kSize; ++position) {
        if ((block.live >> position & 1) == 0) continue;
        const std::int64_t age = Stamp::age(stamps[position].load(std::memory_order_relaxed), now_);
        if (age >= limit) {
          idle |= 1U << position;
        } else {
          oldest = std::max(oldest, age);
        }
      }
      add_found(block, idle);
      if (oldest == kNoAge) return;
    }
    Class& timeout_class = classes_.of(block);
    const Tick last = now_ - static_cast<Tick>(oldest);
    schedule_with_slack(block, timeout_class, hand,
                        deadline(timeout_class, hand, last, block.timeout));
  }

  // Instead of the oldest age, if it is not known or every connection is idle.
  static constexpr std::int64_t kNoAge = std::numeric_limits<std::int64_t>::min();

  // inspect() for a block whose time-outs may differ. Clears `mixed` if they do not.
  void inspect_mixed(Block& block, Tick hand) noexcept {
    unsigned idle = 0;
    Tick shortest = kLongestTimeout, longest = 0, earliest = Class::kNever;
    Class& timeout_class = classes_.of(block);
    for (unsigned live = block.live; live != 0; live &= live - 1) {
      const auto position = static_cast<unsigned>(std::countr_zero(live));
      const std::uint32_t index = block.number * Block::kSize + position;
      const Tick timeout = blocks_.connection(index).timeout;
      shortest = std::min(shortest, timeout);
      longest = std::max(longest, timeout);
      if (age(index) >= static_cast<std::int64_t>(factor_.of(timeout))) {
        idle |= 1U << position;
      } else {
        earliest = std::min(earliest, deadline(timeout_class, hand, last_packet(index), timeout));
      }
    }
    add_found(block, idle);
    if (idle != block.live) schedule_with_slack(block, timeout_class, hand, earliest);
    if (shortest != longest) return;
    block.mixed = false;
    block.timeout = longest;
  }

  // Schedules an inspected block a little early, at a tick that saves the wheel cascades: most
  // likely no connection of it is idle by then. With at most 64 ticks left it is scheduled exactly.
  void schedule_with_slack(Block& block, Class& timeout_class, Tick hand, Tick deadline) noexcept {
    const Tick slack = (deadline - hand) / 32;
    timeout_class.wheel.schedule(
        block, Moment{deadline - hand > 64 ? relaxed_expiry(deadline - slack, slack) : deadline});
  }

  // Adds the connections in `idle`, a bit per position, to those that wait to be handed over.
  void add_found(Block& block, unsigned idle) noexcept {
    if (idle == 0) return;
    found_factor_ = factor_;  // the queue was empty before this wheel.advance()
    found_.add(block, idle);
  }

  // Hands over the connections that were found. Returns false if the limit left some over.
  template <class OnIdle>
  bool hand_over(OnIdle& on_idle, Budget& budget) {
    while (found_.front() != nullptr) {
      Block& block = *found_.front();
      while (block.found != 0) {
        if (budget.found == budget.limit) return false;
        const auto position = static_cast<unsigned>(std::countr_zero(block.found));
        block.found &= static_cast<std::uint16_t>(block.found - 1);
        if ((block.live >> position & 1) != 0)
          hand_over(block, block.number * Block::kSize + position, on_idle, budget);
      }
      // on_idle may have called any function, but only this one takes the head off the queue.
      found_.pop();
    }
    return true;
  }

  // Hands over a connection that was idle when it was inspected, unless it has been touched, or its
  // index has been given to another one, since then. If the factor has risen since then, the
  // connection still counts as idle: the hand, too far ahead, will not come to it again.
  template <class OnIdle>
  void hand_over(Block& block, std::uint32_t index, OnIdle& on_idle, Budget& budget) {
    const IdleId id = blocks_.id(index);
    if (!Stamp::is_generation(id.generation)) return;  // removed
    const Tick timeout = blocks_.connection(index).timeout;
    if (age(index) < static_cast<std::int64_t>(std::min(found_factor_, factor_).of(timeout)))
      return schedule_by(block, last_packet(index), timeout);
    if (blocks_.stamp_is_foreign(id)) {
      blocks_.restamp(index, now_ + 1);
      return schedule_by(block, now_ + 1, timeout);
    }
    if (!blocks_.end(id)) return;  // another thread has just removed it
    ++budget.found;
    Key key = blocks_.take_key(index);
    free(index);
    on_idle(id, std::move(key));
  }

  // The stamp of a packet that comes now: the end of the current tick. Touches read it; the owner
  // writes to its cache line only once per tick.
  alignas(64) std::atomic<std::uint64_t> stamp_now_{0};
  ConnectionBlocks<Key, kLastGeneration> blocks_;

  Tick now_;
  Tick next_ = Class::kNever;  // no timer fires before it
  Factor factor_;
  bool busy_ = false;           // within advance()
  std::size_t next_class_ = 0;  // the class that the next inspection begins with
  FoundBlocks found_;
  Factor found_factor_;     // the factor when they were inspected
  TimeoutClasses classes_;  // after blocks_, because wheels must be destroyed before blocks
};

template <class Key, std::uint32_t kLastGeneration>
void TrackerCore<Key, kLastGeneration>::check_invariants() const {
  blocks_.check_invariants();
  classes_.check_invariants();
  for (std::uint32_t number = 0; number < blocks_.used_blocks(); ++number) {
    const Block& block = blocks_.block(number);
    require(block.found == 0 || block.queued, "a found connection is not in the queue");
    for (std::uint32_t position = 0; position < Block::kSize; ++position) {
      if (!blocks_.holds(number * Block::kSize + position)) continue;
      const Tick timeout = blocks_.connection(number * Block::kSize + position).timeout;
      require(block.mixed || block.timeout == timeout,
              "the time-outs of a block differ, but it is not marked as mixed");
      require(classes_.of(block).longest() >= timeout,
              "a time-out is longer than the longest of the block's class");
      require(block.armed() || (block.found >> position & 1) != 0,
              "a connection will never be inspected");
    }
  }
  require(next_ <= classes_.next(now_), "the next wake-up is too late for a class");
}

}  // namespace carillon::detail
