// DeadlineDescriptor: a file descriptor that becomes readable at a time of the steady clock.
#pragma once

#include <cstdint>

namespace carillon::detail {

class DeadlineDescriptor {
 public:
  // Throws std::system_error if there is no descriptor left.
  DeadlineDescriptor();
  DeadlineDescriptor(const DeadlineDescriptor&) = delete;
  DeadlineDescriptor& operator=(const DeadlineDescriptor&) = delete;
  ~DeadlineDescriptor();

  int get() const noexcept { return descriptor_; }

  // Makes the descriptor readable from `ns` on, and not before; at once if that time has passed.
  // never() makes it unreadable until the next set(). Each is one system call.
  void set(std::int64_t ns) noexcept;
  void never() noexcept;

 private:
  const int descriptor_;
};

}  // namespace carillon::detail
