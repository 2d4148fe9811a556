// TimerPool: timers that the pool owns and that users name by an id. For users who do not want to
// keep an object alive for each timer.
//
//   carillon::TimerPool<std::string> pool(now_ms());
//   carillon::TimerId id = pool.schedule(pool.now() + 500, "tea is ready");
//   pool.cancel(id);                                          // true: it will not fire
//   pool.cancel(id);                                          // false, now and for ever
//   pool.advance(now_ms(), [](carillon::TimerId, std::string&& text) { puts(text.c_str()); });
//
// The pool adds to its model (any TimerSet, timer_set.h) memory for payloads and an id for each
// timer. All that TimerSet says of order, limits, re-entrancy and exceptions holds here.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "carillon/wheel/detail/page_blocks.h"
#include "carillon/wheel/exceptions.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/pages.h"
#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"

namespace carillon {

// The name of one timer of one pool. It is a value, and harmless once its timer is gone. TimerId{}
// names no timer.
struct TimerId {
  std::uint32_t index = 0;       // the pool's cell that holds the timer
  std::uint32_t generation = 0;  // how many timers that cell has held

  friend bool operator==(const TimerId&, const TimerId&) = default;
};

// The pool keeps each timer in a cell: room for the timer, its payload and its id. Cells are
// reused.
//
// Contracts, beside those of the model
//  - An id is refused for ever once its timer has fired or was cancelled, whatever its cell holds
//    by then: each new timer of a cell gets the next generation. After kLastGeneration timers
//    (2^32 - 1) a cell is retired and never used again, so that no id comes back. That costs
//    sizeof(T) and about 24 bytes once in 4 billion timers. (Tests use a smaller kLastGeneration.)
//  - Inside on_expire the id that fires is no longer known. Its payload is not moved by firing: it
//    stays in its cell until on_expire returns or throws, and is destroyed then.
//  - If schedule() fails, because a payload throws when moved or memory runs out, the pool is as it
//    was before.
//  - A payload's destructor may call the pool, except when the pool itself is being destroyed.
//  - After reserve(n) no operation allocates while at most n timers are pending.
//
// Not thread-safe. At most 2^32 - 1 cells.
template <class T, TimerSet Model = HierarchicalWheel<>,
          std::uint32_t kLastGeneration = std::numeric_limits<std::uint32_t>::max()>
class TimerPool {
  static_assert(kLastGeneration >= 1, "a cell holds at least one timer");

 public:
  explicit TimerPool(Tick start_tick = 0) : model_(start_tick), memory_(WheelPages::kDefault) {}
  // Keeps the timers, and the model's slots, in pages of that size (pages.h).
  TimerPool(Tick start_tick,
            WheelPages pages) requires std::constructible_from<Model, Tick, WheelPages>
      : model_(start_tick, pages), memory_(pages) {}
  TimerPool(const TimerPool&) = delete;
  TimerPool& operator=(const TimerPool&) = delete;
  ~TimerPool() {
    clear([](TimerId, T&&) noexcept {});
    for (Cell* block : blocks_) std::destroy_n(block, kBlock);
  }

  // Schedules a timer with that payload, and returns its id. It may fire anywhere in
  // [expiry, expiry + slack]. O(1), amortized over the blocks of cells that it allocates. Throws
  // std::bad_alloc, std::length_error if there are 2^32 - 1 cells and none is free, what the move
  // of a T throws, and what the model throws (std::out_of_range, if the expiry is beyond its
  // range).
  TimerId schedule(Moment expiry, T payload, Tick slack = 0) {
    Cell& cell = acquire();
    CARILLON_TRY {
      std::construct_at(&cell.payload, std::move(payload));
    }
    CARILLON_CATCH_ALL {
      give_back(cell);
      CARILLON_RETHROW;
    }
    CARILLON_TRY {
      arm(cell, expiry, slack);
    }
    CARILLON_CATCH_ALL {
      std::destroy_at(&cell.payload);
      give_back(cell);
      CARILLON_RETHROW;
    }
    return cell.id();
  }

  // The same for now() + delay, or for the last tick if that is before.
  TimerId schedule_after(Tick delay, T payload, Tick slack = 0) {
    return schedule(after(delay), std::move(payload), slack);
  }
  TimerId schedule_after(Moment, T payload, Tick slack = 0) = delete;  // schedule() takes moments

  // Returns true if the timer was pending; it will not fire, and its payload is destroyed. Returns
  // false if the timer has fired or was cancelled before, or if the id was never given.
  bool cancel(TimerId id) noexcept {
    Cell* cell = find(id);
    if (cell == nullptr) return false;
    model_.cancel(*cell);
    finish(*cell);
    return true;
  }

  // Returns true if the timer is pending; it fires in [expiry, expiry + slack] instead. Returns
  // false as cancel() does.
  bool reschedule(TimerId id, Moment expiry, Tick slack = 0) {
    Cell* cell = find(id);
    if (cell == nullptr) return false;
    arm(*cell, expiry, slack);
    return true;
  }
  bool reschedule_after(TimerId id, Tick delay, Tick slack = 0) {
    return reschedule(id, after(delay), slack);
  }
  bool reschedule_after(TimerId id, Moment, Tick slack = 0) = delete;

  // Returns true if the timer is pending.
  bool contains(TimerId id) const noexcept { return find(id) != nullptr; }

  // The tick for which the timer was last scheduled; none if it is not pending.
  std::optional<Moment> expiry(TimerId id) const noexcept {
    const Cell* cell = find(id);
    return cell == nullptr ? std::nullopt : std::optional(cell->expiry());
  }

  // Calls on_expire(TimerId, T&&) for each timer due at or before `to`, at most `limit`. Returns
  // how many fired.
  template <class OnExpire>
  std::size_t advance(Tick to, OnExpire&& on_expire, std::size_t limit = kNoLimit) {
    return model_.advance(to, handing_over(on_expire), limit);
  }

  std::optional<Tick> next_wakeup() const noexcept { return model_.next_wakeup(); }
  Moment now() const noexcept { return model_.now(); }
  std::size_t size() const noexcept { return model_.size(); }
  bool empty() const noexcept { return model_.empty(); }

  // From now on no operation allocates while at most `timers` are pending. Throws std::bad_alloc.
  void reserve(std::size_t timers) {
    blocks_.reserve((timers + retired_) / kBlock + 1);
    while (blocks_.size() * kBlock < timers + retired_) add_block();
    if constexpr (requires { model_.reserve(timers); }) model_.reserve(timers);
  }

  // Takes every timer out of the pool and hands it to sink(TimerId, T&&), in no particular order.
  template <class Sink>
  void clear(Sink&& sink) {
    model_.clear(handing_over(sink));
  }

  // Throws std::logic_error that says what is broken, if anything is. O(cells); for tests.
  void check_invariants() const;

 private:
  struct Cell : TimerNode {
    std::uint32_t generation = 1;
    std::uint32_t link = 0;  // its own index while in use; in the free list, the next free cell
    union {
      T payload;  // alive while armed, and until on_expire has returned
    };

    Cell() noexcept {}
    ~Cell() {}
    TimerId id() const noexcept { return {link, generation}; }
  };

  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::size_t kBlock =
      std::max<std::size_t>(16, std::bit_floor(std::size_t{65536} / sizeof(Cell)));

  // Ends the timer of a cell when on_expire has returned or thrown.
  struct Finish {
    TimerPool& pool;
    Cell& cell;
    ~Finish() { pool.finish(cell); }
  };

  template <class Callback>
  auto handing_over(Callback& callback) noexcept {
    return [this, &callback](TimerNode& node) {
      auto& cell = static_cast<Cell&>(node);
      const Finish finish{*this, cell};
      callback(cell.id(), std::move(cell.payload));
    };
  }

  void arm(Cell& cell, Moment expiry, Tick slack) {
    if (slack != 0) {
      model_.schedule(cell, expiry, slack);
    } else if (cell.armed()) {
      model_.reschedule(cell, expiry);
    } else {
      model_.schedule(cell, expiry);
    }
  }

  Moment after(Tick delay) const noexcept {
    return now() + std::min(delay, std::numeric_limits<Tick>::max() - now());
  }

  Cell& at(std::size_t index) const noexcept { return blocks_[index / kBlock][index % kBlock]; }

  Cell* find(TimerId id) const noexcept {
    if (id.index >= fresh_) return nullptr;
    Cell& cell = at(id.index);
    return cell.generation == id.generation && cell.armed() ? &cell : nullptr;
  }

  Cell& acquire() {
    if (free_ == kNone) {
      if (fresh_ == kNone)
        CARILLON_THROW std::length_error(
            "carillon: a TimerPool holds at most 4294967295 timers, and all are in use");
      if (fresh_ == blocks_.size() * kBlock) add_block();
      at(fresh_).link = fresh_;
      return at(fresh_++);
    }
    Cell& cell = at(free_);
    free_ = std::exchange(cell.link, free_);
    return cell;
  }

  void add_block() {
    if (blocks_.size() == blocks_.capacity()) blocks_.reserve(2 * blocks_.size() + 1);
    auto* const block = static_cast<Cell*>(memory_.take());
    std::uninitialized_default_construct_n(block, kBlock);
    blocks_.push_back(block);
  }

  void give_back(Cell& cell) noexcept { free_ = std::exchange(cell.link, free_); }

  // Ends the timer of a cell, which is disarmed already. The cell becomes free only after the
  // payload is destroyed, since the payload's destructor may call the pool.
  void finish(Cell& cell) noexcept {
    std::destroy_at(&cell.payload);
    if (cell.generation == kLastGeneration) {
      ++retired_;
      return;
    }
    ++cell.generation;
    give_back(cell);
  }

  Model model_;
  detail::PageBlocks<kBlock * sizeof(Cell), alignof(Cell)> memory_;
  std::vector<Cell*> blocks_;
  std::uint32_t free_ = kNone;  // the head of the list of free cells
  std::uint32_t fresh_ = 0;     // the first cell that was never used
  std::size_t retired_ = 0;     // cells that have used up their generations
};

template <class T, TimerSet Model, std::uint32_t kLastGeneration>
void TimerPool<T, Model, kLastGeneration>::check_invariants() const {
  model_.check_invariants();
  std::size_t armed = 0;
  for (std::uint32_t index = 0; index < fresh_; ++index) {
    if (!at(index).armed()) continue;
    ++armed;
    if (at(index).link != index)
      CARILLON_THROW std::logic_error(
          "carillon: TimerPool is broken: a pending cell has lost its index");
  }
  if (armed != size())
    CARILLON_THROW std::logic_error(
        "carillon: TimerPool is broken: the model counts other timers than the cells");
  std::size_t free = 0;
  for (std::uint32_t index = free_; index != kNone; index = at(index).link) {
    if (at(index).armed())
      CARILLON_THROW std::logic_error("carillon: TimerPool is broken: a free cell is armed");
    if (++free > fresh_)
      CARILLON_THROW std::logic_error("carillon: TimerPool is broken: the free list has a loop");
  }
  if (free + armed + retired_ > fresh_)
    CARILLON_THROW std::logic_error("carillon: TimerPool is broken: a cell is counted twice");
}

}  // namespace carillon

template <>
struct std::hash<carillon::TimerId> {
  std::size_t operator()(carillon::TimerId id) const noexcept {
    return std::hash<std::uint64_t>()(std::uint64_t{id.generation} << 32 | id.index);
  }
};
