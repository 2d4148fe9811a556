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

// A Cell is a struct whose first member is `TimerNode* timer`, the entry of that timer; null if the
// cell has no timer.
template <class Cell>
class EntryArray {
 public:
  Cell& operator[](std::size_t index) noexcept { return cells_[index]; }
  const Cell& operator[](std::size_t index) const noexcept { return cells_[index]; }
  std::size_t size() const noexcept { return cells_.size(); }
  bool full() const noexcept { return cells_.size() == cells_.capacity(); }
  std::size_t bytes() const noexcept { return cells_.capacity() * sizeof(Cell); }

  // Makes room for `cells` cells. Throws std::bad_alloc with nothing changed.
  void reserve(std::size_t cells) {
    if (cells <= cells_.capacity()) return;
    cells_.reserve(cells);
    for (Cell& cell : cells_) {
      if (cell.timer != nullptr) NodeAccess::entry(*cell.timer) = &cell.timer;
    }
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
      if (cell.timer == nullptr) continue;
      ++timers;
      if (NodeAccess::entry(static_cast<const TimerNode&>(*cell.timer)) != &cell.timer)
        throw std::logic_error(
            "carillon: an EntryArray is broken: a timer does not point back to its cell");
    }
    return timers;
  }

 private:
  void settle(std::size_t index) noexcept {
    if (cells_[index].timer != nullptr)
      NodeAccess::entry(*cells_[index].timer) = &cells_[index].timer;
  }

  std::uintptr_t offset(const TimerNode& node) const noexcept {
    return reinterpret_cast<std::uintptr_t>(NodeAccess::entry(node)) -
           reinterpret_cast<std::uintptr_t>(cells_.data());
  }

  std::vector<Cell> cells_;
};

}  // namespace carillon::detail
