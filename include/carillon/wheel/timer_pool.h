// TimerPool: timers that are owned by the pool and named by value, for those who would rather hold
// an id than a lifetime.
//
//   carillon::TimerPool<std::string> pool(now_ms());
//   carillon::TimerId id = pool.schedule(pool.now() + 500, "tea is ready");
//   pool.cancel(id);                                          // true: it will not fire
//   pool.cancel(id);                                          // false, now and for ever
//   pool.advance(now_ms(), [](carillon::TimerId, std::string&& text) { puts(text.c_str()); });
//
// The pool adds to its model (any TimerSet, timer_set.h) a place for each payload and an id for
// each timer. Everything that TimerSet says of order, limits, re-entrancy and exceptions holds
// here.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "carillon/wheel/detail/page_blocks.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/pages.h"
#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"

namespace carillon {

// The name of one timer of one pool: a value, harmless once its timer is gone. TimerId{} names no
// timer.
struct TimerId {
  std::uint32_t index = 0;       // the record that holds the timer
  std::uint32_t generation = 0;  // how many timers that record has held

  friend bool operator==(const TimerId&, const TimerId&) = default;
};

// Contracts, beside those of the model
//  - An id is refused for ever once its timer has fired or was cancelled, whatever its record holds
//    by then: each new timer of a record gets the next generation. After kLastGeneration timers
//    (2^32 - 1) a record is retired and never used again, so that no id comes back; that costs
//    sizeof(T) and some 24 bytes once in 4 billion timers. (The parameter is there for the tests.)
//  - Inside on_expire the id that fires is no longer known. Its payload stays where it was until
//    on_expire returns or throws, and is destroyed then, unless it was moved from: firing moves
//    nothing by itself.
//  - schedule() that fails, because a payload throws when moved or memory runs out, leaves the pool
//    as it was.
//  - A payload's destructor may call the pool, except when the pool itself is being destroyed.
//  - After reserve(n) no operation allocates while at most n timers are pending.
//
// Not thread-safe. At most 2^32 - 1 records.
template <class T, TimerSet Model = HierarchicalWheel<>,
          std::uint32_t kLastGeneration = std::numeric_limits<std::uint32_t>::max()>
class TimerPool {
  static_assert(kLastGeneration >= 1, "a record serves at least one timer");

 public:
  explicit TimerPool(Tick start_tick = 0) : model_(start_tick), memory_(Pages::kDefault) {}
  // With the timers, and the model's slots, in pages of that size (pages.h).
  TimerPool(Tick start_tick, Pages pages) requires std::constructible_from<Model, Tick, Pages>
      : model_(start_tick, pages), memory_(pages) {}
  TimerPool(const TimerPool&) = delete;
  TimerPool& operator=(const TimerPool&) = delete;
  ~TimerPool() {
    clear([](TimerId, T&&) noexcept {});
    for (Record* block : blocks_) std::destroy_n(block, kBlock);
  }

  // O(1), amortized over the blocks of records that it allocates. Throws std::bad_alloc,
  // std::length_error at 2^32 - 1 records, what moving a T throws, and what the model throws
  // (std::out_of_range, if its range ends). For a timer with slack pass relaxed_expiry(expiry,
  // slack) (slack.h).
  TimerId schedule(Tick expiry, T payload) {
    Record& record = acquire();
    try {
      std::construct_at(&record.payload, std::move(payload));
    } catch (...) {
      give_back(record);
      throw;
    }
    try {
      model_.schedule(record, expiry);
    } catch (...) {
      std::destroy_at(&record.payload);
      give_back(record);
      throw;
    }
    return record.id();
  }

  // True: it was pending and will not fire; its payload is destroyed. False: the id is from the
  // past, or was never given.
  bool cancel(TimerId id) noexcept {
    Record* record = find(id);
    if (record == nullptr) return false;
    model_.cancel(*record);
    finish(*record);
    return true;
  }

  // True: it is pending, and fires at `expiry` now. False: as for cancel().
  bool reschedule(TimerId id, Tick expiry) {
    Record* record = find(id);
    if (record == nullptr) return false;
    model_.reschedule(*record, expiry);
    return true;
  }

  bool contains(TimerId id) const noexcept { return find(id) != nullptr; }

  std::optional<Tick> expiry(TimerId id) const noexcept {
    const Record* record = find(id);
    return record == nullptr ? std::nullopt : std::optional<Tick>(record->expiry());
  }

  // Fires what is due at or before `to`, at most `limit` timers: on_expire(TimerId, T&&). Returns
  // how many fired.
  template <class OnExpire>
  std::size_t advance(Tick to, OnExpire&& on_expire, std::size_t limit = kNoLimit) {
    return model_.advance(to, handing_over(on_expire), limit);
  }

  std::optional<Tick> next_wakeup() const noexcept { return model_.next_wakeup(); }
  Tick now() const noexcept { return model_.now(); }
  std::size_t size() const noexcept { return model_.size(); }
  bool empty() const noexcept { return model_.empty(); }

  // Room for `timers` pending timers. Throws std::bad_alloc.
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

  // Throws std::logic_error that says what is broken, if anything is. O(records); for tests.
  void check_invariants() const;

 private:
  struct Record : TimerNode {
    std::uint32_t generation = 1;
    std::uint32_t link = 0;  // its own index while it is taken, the next free record otherwise
    union {
      T payload;  // alive while armed, and until on_expire has returned
    };

    Record() noexcept {}
    ~Record() {}
    TimerId id() const noexcept { return {link, generation}; }
  };

  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::size_t kBlock =
      std::max<std::size_t>(16, std::bit_floor(std::size_t{65536} / sizeof(Record)));

  // Ends a record's timer when on_expire has returned or thrown.
  struct Finish {
    TimerPool& pool;
    Record& record;
    ~Finish() { pool.finish(record); }
  };

  template <class Callback>
  auto handing_over(Callback& callback) noexcept {
    return [this, &callback](TimerNode& node) {
      auto& record = static_cast<Record&>(node);
      const Finish finish{*this, record};
      callback(record.id(), std::move(record.payload));
    };
  }

  Record& at(std::size_t index) const noexcept { return blocks_[index / kBlock][index % kBlock]; }

  Record* find(TimerId id) const noexcept {
    if (id.index >= fresh_) return nullptr;
    Record& record = at(id.index);
    return record.generation == id.generation && record.armed() ? &record : nullptr;
  }

  Record& acquire() {
    if (free_ == kNone) {
      if (fresh_ == kNone)
        throw std::length_error(
            "carillon: a TimerPool holds at most 4294967295 records, and all are in use");
      if (fresh_ == blocks_.size() * kBlock) add_block();
      at(fresh_).link = fresh_;
      return at(fresh_++);
    }
    Record& record = at(free_);
    free_ = std::exchange(record.link, free_);
    return record;
  }

  void add_block() {
    if (blocks_.size() == blocks_.capacity()) blocks_.reserve(2 * blocks_.size() + 1);
    auto* const block = static_cast<Record*>(memory_.take());
    std::uninitialized_default_construct_n(block, kBlock);
    blocks_.push_back(block);
  }

  void give_back(Record& record) noexcept { free_ = std::exchange(record.link, free_); }

  // The record is disarmed. Its payload is destroyed while the record is neither armed nor free:
  // its destructor may call the pool.
  void finish(Record& record) noexcept {
    std::destroy_at(&record.payload);
    if (record.generation == kLastGeneration) {
      ++retired_;
      return;
    }
    ++record.generation;
    give_back(record);
  }

  Model model_;
  detail::PageBlocks<kBlock * sizeof(Record), alignof(Record)> memory_;
  std::vector<Record*> blocks_;
  std::uint32_t free_ = kNone;  // the head of the list of free records
  std::uint32_t fresh_ = 0;     // records from here on were never used
  std::size_t retired_ = 0;     // records that have used up their generations
};

template <class T, TimerSet Model, std::uint32_t kLastGeneration>
void TimerPool<T, Model, kLastGeneration>::check_invariants() const {
  model_.check_invariants();
  std::size_t armed = 0;
  for (std::uint32_t index = 0; index < fresh_; ++index) {
    if (!at(index).armed()) continue;
    ++armed;
    if (at(index).link != index)
      throw std::logic_error("carillon: TimerPool is broken: a pending record has lost its index");
  }
  if (armed != size())
    throw std::logic_error(
        "carillon: TimerPool is broken: the model counts other timers than the records");
  std::size_t free = 0;
  for (std::uint32_t index = free_; index != kNone; index = at(index).link) {
    if (at(index).armed())
      throw std::logic_error("carillon: TimerPool is broken: a free record is armed");
    if (++free > fresh_)
      throw std::logic_error("carillon: TimerPool is broken: the free list has a loop");
  }
  if (free + armed + retired_ > fresh_)
    throw std::logic_error("carillon: TimerPool is broken: a record is counted twice");
}

}  // namespace carillon
