// EntryArray: an array of cells that timers point back to. Cells may move when it grows. The
// comparison designs (comparison_set.h) keep their timers in it; not installed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

// The first member of each Cell. The timer is null if the cell is free, or if the timer was
// destroyed.
struct CellEntry {
  TimerNode* row[2];  // a mark (timer_node.h), and the entry

  TimerNode*& timer() noexcept { return row[1]; }
  const TimerNode* timer() const noexcept { return row[1]; }
};

// A Cell is a struct that begins with `CellEntry entry`. `timers` counts the timers; the array
// itself only has to count out those that are destroyed.
template <class Cell>
class EntryArray {
 public:
  explicit EntryArray(std::size_t& timers) noexcept : owner_{&timers} {}
  EntryArray(const EntryArray&) = delete;
  EntryArray& operator=(const EntryArray&) = delete;
  ~EntryArray() = default;

  Cell& operator[](std::size_t index) noexcept { return cells_[index]; }
  const Cell& operator[](std::size_t index) const noexcept { return cells_[index]; }
  std::size_t size() const noexcept { return cells_.size(); }
  bool full() const noexcept { return cells_.size() == cells_.capacity(); }
  std::size_t bytes() const noexcept { return cells_.capacity() * sizeof(Cell); }

  // Makes room for `cells` cells. Throws std::bad_alloc with nothing changed.
  void reserve(std::size_t cells) {
    if (cells <= cells_.capacity()) return;
    cells_.reserve(cells);
    for (std::size_t index = 0; index < cells_.size(); ++index) settle(index);
  }

  // Makes room for one more cell, by doubling. Throws as reserve() does.
  void make_room() {
    if (full()) reserve(std::max<std::size_t>(16, 2 * cells_.size()));
  }

  // REQUIRES: !full().
  void push(const Cell& cell) noexcept {
    cells_.push_back(cell);
    settle(cells_.size() - 1);
  }

  // REQUIRES: no timer points to a cell from `size` on.
  void shrink(std::size_t size) noexcept {
    cells_.erase(cells_.begin() + static_cast<std::ptrdiff_t>(size), cells_.end());
  }

  // Puts `cell` at `index`.
  void put(std::size_t index, const Cell& cell) noexcept {
    cells_[index] = cell;
    settle(index);
  }

  // Returns true if the timer points to a cell of this array; index_of() says to which.
  bool holds(const TimerNode& node) const noexcept {
    return offset(node) < cells_.size() * sizeof(Cell);
  }
  std::size_t index_of(const TimerNode& node) const noexcept { return offset(node) / sizeof(Cell); }

  // Returns how many timers there are. Throws std::logic_error if one does not point back to its
  // cell.
  std::size_t check_entries() const {
    std::size_t timers = 0;
    for (const Cell& cell : cells_) {
      if (cell.entry.timer() == nullptr) continue;
      ++timers;
      if (NodeAccess::entry(*cell.entry.timer()) != &cell.entry.row[1])
        throw std::logic_error(
            "carillon: an EntryArray is broken: a timer does not point back to its cell");
    }
    return timers;
  }

 private:
  void settle(std::size_t index) noexcept {
    CellEntry& entry = cells_[index].entry;
    entry.row[0] = owner_.mark();
    if (entry.timer() != nullptr) NodeAccess::entry(*entry.timer()) = &entry.timer();
  }

  std::uintptr_t offset(const TimerNode& node) const noexcept {
    return reinterpret_cast<std::uintptr_t>(NodeAccess::entry(node)) -
           reinterpret_cast<std::uintptr_t>(cells_.data());
  }

  RowOwner owner_;
  std::vector<Cell> cells_;
};

}  // namespace carillon::detail
