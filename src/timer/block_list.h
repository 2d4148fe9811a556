// BlockList: a queue of timer blocks, linked by `next`.
#pragma once

#include <cstddef>

#include "carillon/require.h"
#include "carillon/timer/detail/timer_block.h"

namespace carillon::detail {

class BlockList {
 public:
  bool empty() const noexcept { return head_ == nullptr; }

  // O(blocks)
  std::size_t count() const noexcept {
    std::size_t blocks = 0;
    for (const TimerBlock* block = head_; block != nullptr; block = block->next) ++blocks;
    return blocks;
  }

  bool holds_several() const noexcept { return head_ != tail_; }

  void push(TimerBlock& block) noexcept {
    block.next = nullptr;
    (tail_ != nullptr ? tail_->next : head_) = &block;
    tail_ = &block;
  }

  // REQUIRES: not empty.
  TimerBlock& pop() noexcept {
    CARILLON_REQUIRE(!empty());
    TimerBlock& block = *head_;
    head_ = block.next;
    if (head_ == nullptr) tail_ = nullptr;
    return block;
  }

  // Fetches the first block's task into the cache. No effect if the list is empty.
  void prefetch_task() const noexcept {
    if (head_ != nullptr) __builtin_prefetch(&head_->task, 1);
  }

  // Appends all blocks of `other`, which is empty afterwards.
  void append(BlockList& other) noexcept {
    if (other.empty()) return;
    (tail_ != nullptr ? tail_->next : head_) = other.head_;
    tail_ = other.tail_;
    other.head_ = other.tail_ = nullptr;
  }

 private:
  TimerBlock* head_ = nullptr;
  TimerBlock* tail_ = nullptr;
};

}  // namespace carillon::detail
