// TrackerCore: what is inside an IdleTracker: connections in blocks (connection_blocks.h), blocks
// on the wheels of their classes (timeout_classes.h), and the looks at them.
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
#include "carillon/wheel/slack.h"
#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"

namespace carillon::detail {

struct TrackerAccess;  // for the tests

// The contracts are those of IdleTracker (idle_tracker.h), which has checked what it passes on.
//
// Invariants
//  - a block with connections is on the wheel of its class, for no later than the hand must come to
//    any of its connections which is not in `found`; and it is in the list of its class if it has
//    room;
//  - a block with a bit in `found` is in the queue that begins with found_;
//  - next_ <= the tick at which any wheel has something to do; next_ <= now() while the queue is
//    not empty.
template <class Key, std::uint32_t kLastGeneration>
class TrackerCore {
 public:
  static constexpr Tick kLongestTimeout = TimeoutClasses::kLongestTimeout;

  explicit TrackerCore(Tick start_tick) : now_(start_tick) { move_to(start_tick); }
  TrackerCore(const TrackerCore&) = delete;
  TrackerCore& operator=(const TrackerCore&) = delete;

  IdleId add(Key&& key, Tick timeout, Tick at) {
    Class& timeout_class = class_for(timeout);
    if (blocks_.is_exhausted()) reserve(blocks_.size() + 1);
    admit(timeout_class, timeout);
    Block& block = classes_.block_with_room(blocks_, timeout_class, timeout);
    const std::uint32_t index = blocks_.acquire(block, std::move(key), timeout);
    classes_.list(block, false);
    blocks_.restamp(index, at);
    suit(block, timeout_class, timeout);
    schedule_by(block, at, timeout);
    return blocks_.id(index);
  }

  void touch(IdleId id) noexcept { blocks_.touch(id, coming_.load(std::memory_order_relaxed)); }
  void touch(IdleId id, Tick at) noexcept { blocks_.touch(id, Stamp::of(at)); }

  bool remove(IdleId id) noexcept {
    if (!blocks_.holds(id)) return false;
    release(id.index);
    return true;
  }

  bool set_timeout(IdleId id, Tick timeout) {
    Class& timeout_class = class_for(timeout);
    if (!blocks_.holds(id)) return false;
    admit(timeout_class, timeout);
    blocks_.record(id.index).timeout = timeout;
    suit(blocks_.block_of(id.index), timeout_class, timeout);
    schedule_by(blocks_.block_of(id.index), last_packet(id.index), timeout);
    return true;
  }

  const ConnectionBlocks<Key, kLastGeneration>& connections() const noexcept { return blocks_; }
  Tick last_packet(std::uint32_t index) const noexcept {
    return now_ - static_cast<Tick>(age(index));
  }

  template <class OnIdle>
  std::size_t advance(Tick to, OnIdle& on_idle, std::size_t limit) {
    if (to < next_ && to >= now_ &&
        to - now_ <= kStep) {  // the short way: nothing comes up before next_
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
    if (!busy_) expect_all();
  }

  void prepare_for(Tick timeout) { class_for(timeout); }

  // The wheels first: then no advance() ever finds one short of memory.
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

  static constexpr std::size_t kLooks = std::size_t{1} << 17;
  static constexpr std::size_t kBatch = 256;  // blocks whose stamps are fetched together: 32 KiB
  static constexpr Tick kStep =
      Stamp::kReach / 4;  // the longest time-out, its last sixteenth and a step are in reach

  // What one advance may still do.
  struct Work {
    std::size_t limit;
    std::size_t looks;
    std::size_t found = 0;

    bool done() const noexcept { return found == limit || looks == 0; }
  };

  struct Busy {
    bool& busy;
    explicit Busy(bool& flag) noexcept : busy(flag) { busy = true; }
    ~Busy() { busy = false; }
  };

  void move_to(Tick now) noexcept {
    now_ = now;
    coming_.store(Stamp::of(now + 1), std::memory_order_relaxed);
  }

  // --- classes and blocks

  Class& class_for(Tick timeout) { return classes_.of(timeout, now_, blocks_.blocks()); }

  void admit(Class& timeout_class, Tick timeout) noexcept {
    if (timeout <= timeout_class.longest()) return;
    timeout_class.admit(timeout, factor_);
    expect(timeout_class);  // under overload its hand has more to run ahead
  }

  void suit(Block& block, Class& timeout_class, Tick timeout) noexcept {
    if (classes_.suit(block, timeout_class, timeout)) expect(timeout_class);
  }

  Key release(std::uint32_t index) noexcept {
    Block& block = blocks_.block_of(index);
    const bool was_full = block.is_full();
    Key key = blocks_.release(index);
    classes_.list(block, was_full);
    if (block.live == 0) blocks_.end(block);
    return key;
  }

  void expect(const Class& timeout_class) noexcept {
    next_ = std::min(next_, timeout_class.next(now_));
  }
  void expect_all() noexcept { next_ = found_ != nullptr ? now_ : classes_.next(now_); }

  // --- one connection

  std::int64_t age(std::uint32_t index) const noexcept {
    return Stamp::age(blocks_.stamp(index).load(std::memory_order_relaxed), now_);
  }

  // Under which tick the hand will come to a connection that is not idle, with the hand at `hand`
  // now.
  Tick deadline(const Class& timeout_class, Tick hand, Tick last, Tick timeout) const noexcept {
    const Tick deadline = last + timeout;
    if (deadline > hand) return deadline;
    return std::max(last + factor_.of(timeout) + timeout_class.lead(), hand + 1);
  }

  // The block of a connection is looked at in time.
  void schedule_by(Block& block, Tick last, Tick timeout) noexcept {
    Class& timeout_class = classes_.of(block);
    const bool is_idle =
        static_cast<std::int64_t>(now_ - last) >= static_cast<std::int64_t>(factor_.of(timeout));
    const Tick tick = is_idle ? last + timeout
                              : deadline(timeout_class, timeout_class.wheel.now(), last, timeout);
    if (block.armed() && block.expiry() <= tick) return;
    timeout_class.wheel.reschedule(block, tick);
    expect(timeout_class);
  }

  // --- advancing

  template <class OnIdle>
  [[gnu::noinline]] std::size_t process(Tick to, OnIdle& on_idle, std::size_t limit) {
    if (busy_) throw std::logic_error("carillon: advance() was called from inside on_idle");
    if (to < now_)
      throw std::invalid_argument("carillon: advance(" + std::to_string(to) +
                                  ") would go back: the tracker is at tick " +
                                  std::to_string(now_));
    const Busy busy(busy_);
    Work work{limit, limit == kNoLimit ? kNoLimit : kLooks + std::min(limit, kNoLimit - kLooks)};
    // A stamp is read by its distance from now(). So time goes in steps short enough for each
    // connection to be looked at in between.
    do {
      move_to(blocks_.size() == 0 ? to : std::min(to, now_ + kStep));
      look_at_due(on_idle, work);
    } while (now_ != to && !work.done());
    return work.found;
  }

  // Looks at all that has come up, class by class, and begins next time with the class after the
  // one it was stopped at.
  template <class OnIdle>
  void look_at_due(OnIdle& on_idle, Work& work) {
    next_ = now_;
    for (std::size_t looked_at = 0; looked_at < classes_.size();
         ++looked_at) {  // on_idle may add classes
      if (turn_ >= classes_.size()) turn_ = 0;
      Class& timeout_class = classes_[turn_++];
      if (!look_at_due(timeout_class, on_idle, work)) return;
    }
    expect_all();
  }

  // False: stopped by a bound.
  template <class OnIdle>
  bool look_at_due(Class& timeout_class, OnIdle& on_idle, Work& work) {
    while (hand_over(on_idle, work)) {
      const Tick target = timeout_class.target(now_);
      std::array<Block*, kBatch> batch;
      std::size_t count = 0;
      const auto collect = [&](TimerNode& node) {
        Block* block = static_cast<Block*>(&node);
        batch[count++] = block;
        __builtin_prefetch(&blocks_.stamp(block->number * Block::kPlaces));
        __builtin_prefetch(&blocks_.stamp(block->number * Block::kPlaces + Block::kPlaces / 2));
      };
      timeout_class.wheel.advance(target, collect, work.looks == 0 ? 0 : kBatch);
      for (std::size_t i = 0; i < count; ++i) look_at(*batch[i], target);
      work.looks -= work.looks == kNoLimit ? 0 : std::min(work.looks, count * Block::kPlaces);
      const bool more = timeout_class.next(now_) <= now_;
      if (count == 0 && !more) return true;
      if (work.looks == 0) return false;
    }
    return false;
  }

  // The timer of `block` has fired, with the hand on its way to `hand`: who is idle is put aside,
  // and the block is scheduled for the others.
  void look_at(Block& block, Tick hand) noexcept {
    if (block.live == 0) return;
    if (block.mixed) return look_at_mixed(block, hand);
    const auto limit = static_cast<std::int64_t>(factor_.of(block.timeout));
    const auto* const stamps = &blocks_.stamp(block.number * Block::kPlaces);
    std::int64_t oldest = block.live == Block::kAll ? oldest_of_all(stamps) : kNobody;
    if (oldest == kNobody || oldest >= limit) {
      oldest = kNobody;
      unsigned idle = 0;
      for (unsigned place = 0; place < Block::kPlaces; ++place) {
        if ((block.live >> place & 1) == 0) continue;
        const std::int64_t age = Stamp::age(stamps[place].load(std::memory_order_relaxed), now_);
        if (age >= limit) {
          idle |= 1U << place;
        } else {
          oldest = std::max(oldest, age);
        }
      }
      put_aside(block, idle);
      if (oldest == kNobody) return;
    }
    Class& timeout_class = classes_.of(block);
    const Tick last = now_ - static_cast<Tick>(oldest);
    schedule_from_look(block, timeout_class, hand,
                       deadline(timeout_class, hand, last, block.timeout));
  }

  static constexpr std::int64_t kNobody =
      std::numeric_limits<std::int64_t>::min();  // as the oldest age

  std::int64_t oldest_of_all(const std::atomic<std::uint64_t>* stamps) const noexcept {
    std::int64_t oldest = kNobody;
    for (unsigned place = 0; place < Block::kPlaces; ++place) {
      oldest =
          std::max(oldest, Stamp::rough_age(stamps[place].load(std::memory_order_relaxed), now_));
    }
    return Stamp::age_of_rough(oldest);
  }

  // The same when time-outs differ. Finds out whether they still do.
  void look_at_mixed(Block& block, Tick hand) noexcept {
    unsigned idle = 0;
    Tick shortest = kLongestTimeout, longest = 0, earliest = Class::kNever;
    Class& timeout_class = classes_.of(block);
    for (unsigned live = block.live; live != 0; live &= live - 1) {
      const auto place = static_cast<unsigned>(std::countr_zero(live));
      const std::uint32_t index = block.number * Block::kPlaces + place;
      const Tick timeout = blocks_.record(index).timeout;
      shortest = std::min(shortest, timeout);
      longest = std::max(longest, timeout);
      if (age(index) >= static_cast<std::int64_t>(factor_.of(timeout))) {
        idle |= 1U << place;
      } else {
        earliest = std::min(earliest, deadline(timeout_class, hand, last_packet(index), timeout));
      }
    }
    put_aside(block, idle);
    if (idle != block.live) schedule_from_look(block, timeout_class, hand, earliest);
    if (shortest != longest) return;
    block.mixed = false;
    block.timeout = longest;
  }

  // A little early, at a tick that spares the wheel cascades: most likely nobody is idle by then.
  // Who has only a little left is looked at exactly.
  void schedule_from_look(Block& block, Class& timeout_class, Tick hand, Tick deadline) noexcept {
    const Tick slack = (deadline - hand) / 32;
    timeout_class.wheel.schedule(
        block, deadline - hand > 64 ? relaxed_expiry(deadline - slack, slack) : deadline);
  }

  void put_aside(Block& block, unsigned idle) noexcept {
    if (idle == 0) return;
    found_factor_ = factor_;  // of all in the queue: it was empty before this batch
    block.found |= static_cast<std::uint16_t>(idle);
    if (block.queued) return;
    block.queued = true;
    block.next_found = std::exchange(found_, &block);
  }

  // Hands over who was put aside. False: stopped by a bound.
  template <class OnIdle>
  bool hand_over(OnIdle& on_idle, Work& work) {
    while (found_ != nullptr) {
      Block& block = *found_;
      while (block.found != 0) {
        if (work.found == work.limit) return false;
        const auto place = static_cast<unsigned>(std::countr_zero(block.found));
        block.found &= static_cast<std::uint16_t>(block.found - 1);
        if ((block.live >> place & 1) != 0)
          hand_over(block, block.number * Block::kPlaces + place, on_idle, work);
      }
      // on_idle may have called anything, but the head of the queue is taken off here alone
      block.queued = false;
      found_ = block.next_found;
    }
    return true;
  }

  // One that was idle when it was looked at, and may have been touched or replaced since. Should
  // the factor have risen since, it is idle all the same: the hand is too far ahead to come back
  // for it.
  template <class OnIdle>
  void hand_over(Block& block, std::uint32_t index, OnIdle& on_idle, Work& work) {
    const Tick timeout = blocks_.record(index).timeout;
    if (age(index) < static_cast<std::int64_t>(std::min(found_factor_, factor_).of(timeout)))
      return schedule_by(block, last_packet(index), timeout);
    if (stamp_is_foreign(index)) {
      blocks_.restamp(index, now_ + 1);
      return schedule_by(block, now_ + 1, timeout);
    }
    ++work.found;
    const IdleId id = blocks_.id(index);
    on_idle(id, release(index));
  }

  // Whether a touch of the connection that had this place before has overtaken its own remove().
  bool stamp_is_foreign(std::uint32_t index) const noexcept {
    return Stamp::generation(blocks_.stamp(index).load(std::memory_order_relaxed)) !=
           blocks_.record(index).generation;
  }

  // Read by touches. On a cache line that the owner writes once per tick.
  alignas(64) std::atomic<std::uint64_t> coming_{
      0};  // the stamp of a packet now: the end of the current tick
  ConnectionBlocks<Key, kLastGeneration> blocks_;

  Tick now_;
  Tick next_ = Class::kNever;
  Factor factor_;
  bool busy_ = false;
  std::size_t turn_ = 0;    // the class to begin with
  Block* found_ = nullptr;  // who was idle and has not been handed over
  Factor found_factor_;     // when they were looked at
  TimeoutClasses classes_;  // after blocks_: wheels end before what is on them
};

template <class Key, std::uint32_t kLastGeneration>
void TrackerCore<Key, kLastGeneration>::check_invariants() const {
  blocks_.check_invariants();
  classes_.check_invariants();
  for (std::uint32_t number = 0; number < blocks_.fresh(); ++number) {
    const Block& block = blocks_.block(number);
    require(block.found == 0 || block.queued, "who was found is in no queue");
    for (std::uint32_t place = 0; place < Block::kPlaces; ++place) {
      if ((block.live >> place & 1) == 0) continue;
      const Tick timeout = blocks_.record(number * Block::kPlaces + place).timeout;
      require(block.mixed || block.timeout == timeout,
              "a block does not know that its time-outs differ");
      require(classes_.of(block).longest() >= timeout,
              "a block is on the wheel of too short a class");
      require(block.armed() || (block.found >> place & 1) != 0, "nobody will look at a connection");
    }
  }
  require(next_ <= classes_.next(now_), "the next wake-up is too late for a class");
}

}  // namespace carillon::detail
