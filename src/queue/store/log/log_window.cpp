// The bytes of a window (log_window.h).

#include "queue/store/log/log_window.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "carillon/require.h"

namespace carillon::queue {

void LogWindow::reserve(std::size_t bytes) {
  const std::size_t needed = log_blocks(size_ + bytes_of(bytes)) * kLogBlock;
  if (needed <= capacity_) return;
  const std::size_t capacity = std::max(needed, 2 * capacity_);
  BlockBytes larger = allocate_blocks(capacity);
  const std::size_t used = log_offset(sizeof(LogRecordHead) + size_);
  if (bytes_) std::memcpy(larger.get(), bytes_.get(), std::min(used, capacity_));
  bytes_ = std::move(larger);
  capacity_ = capacity;
}

void LogWindow::append(std::string_view change) noexcept {
  CARILLON_REQUIRE(log_blocks(size_ + bytes_of(change.size())) * kLogBlock <= capacity_, size_,
                   change.size(), capacity_);
  const auto size = static_cast<std::uint32_t>(change.size());
  put({reinterpret_cast<const char*>(&size), sizeof size});
  put(change);
  ++count_;
}

// Between two sectors a stamp has its place.
void LogWindow::put(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const std::size_t at = sizeof(LogRecordHead) + size_;
    const std::size_t piece = std::min(bytes.size(), kLogSectorBytes - at % kLogSectorBytes);
    std::memcpy(bytes_.get() + log_offset(at), bytes.data(), piece);
    bytes.remove_prefix(piece);
    size_ += piece;
  }
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
  const std::size_t used = log_offset(sizeof head + size_);
  const std::size_t whole = log_blocks(size_) * kLogBlock;
  if (used < whole) std::memset(bytes_.get() + used, 0, whole - used);
  return whole;
}

}  // namespace carillon::queue
