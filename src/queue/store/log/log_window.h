// LogWindow: the changes that were appended to a log and not written yet, laid out as a record is
// written (log_record.h): a head and changes, in sectors, and zeros up to a whole block; in memory
// that is aligned to a block.
//
//   window.reserve(change.size());             // may throw, and changes nothing then
//   window.append(change);
//   segment.write(window.data(), window.finish({.first = 7, .durable = 6}), block);
//   window.clear();
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "queue/store/log/log_segment.h"

namespace carillon::queue {

class LogWindow {
 public:
  // Makes room for one more change. Throws std::bad_alloc with nothing changed.
  void reserve(std::size_t bytes);
  // REQUIRES: reserve().
  void append(std::string_view change) noexcept;
  void clear() noexcept;

  bool empty() const { return count_ == 0; }
  std::uint32_t count() const { return count_; }
  std::size_t bytes() const { return size_; }  // bytes of the changes
  static std::size_t bytes_of(std::size_t change) { return sizeof(std::uint32_t) + change; }

  // Completes the record except for stamps and checksums. Returns its bytes: whole blocks.
  std::size_t finish(LogRecordHead head) noexcept;
  char* data() { return bytes_.get(); }

 private:
  void put(std::string_view bytes) noexcept;

  BlockBytes bytes_;
  std::size_t capacity_ = 0;  // whole blocks
  std::size_t size_ = 0;      // bytes of the changes, behind the head
  std::uint32_t count_ = 0;
};

}  // namespace carillon::queue
