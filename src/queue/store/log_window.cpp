// The bytes of a window (log_window.h).

#include "queue/store/log_window.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace carillon::queue {

namespace {

constexpr std::size_t kBlock = LogSegment::kBlock;

std::size_t whole_blocks(std::size_t bytes) {
  return LogSegment::blocks_for(bytes) * kBlock;
}

}  // namespace

void LogWindow::reserve(std::size_t bytes) {
  const std::size_t needed = whole_blocks(size_ + bytes_of(bytes));
  if (needed <= capacity_) return;
  const std::size_t capacity = std::max(needed, 2 * capacity_);
  BlockBytes larger = allocate_blocks(capacity);
  if (bytes_) std::memcpy(larger.get(), bytes_.get(), sizeof(LogRecordHead) + size_);
  bytes_ = std::move(larger);
  capacity_ = capacity;
}

void LogWindow::append(std::string_view change) noexcept {
  const auto size = static_cast<std::uint32_t>(change.size());
  char* const to = bytes_.get() + sizeof(LogRecordHead) + size_;
  std::memcpy(to, &size, sizeof size);
  std::memcpy(to + sizeof size, change.data(), change.size());
  size_ += bytes_of(change.size());
  ++count_;
}

void LogWindow::clear() noexcept {
  constexpr std::size_t kKept = 4 << 20;  // a buffer that grew beyond this is given back
  size_ = 0;
  count_ = 0;
  if (capacity_ <= kKept) return;
  bytes_.reset();
  capacity_ = 0;
}

std::size_t LogWindow::finish(LogRecordHead head) noexcept {
  head.size = static_cast<std::uint32_t>(size_);
  head.count = count_;
  std::memcpy(bytes_.get(), &head, sizeof head);
  const std::size_t used = sizeof head + size_;
  const std::size_t whole = whole_blocks(size_);
  std::memset(bytes_.get() + used, 0, whole - used);
  return whole;
}

}  // namespace carillon::queue
