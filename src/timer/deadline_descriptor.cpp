#include "carillon/timer/detail/deadline_descriptor.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

namespace carillon::detail {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// 0 means never. Setting the time clears the earlier expiry, so the descriptor need not be read.
void set_time(int descriptor, std::int64_t ns) noexcept {
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(ns / kSecond);
  when.it_value.tv_nsec = static_cast<long>(ns % kSecond);
  // It cannot fail: the arguments are valid.
  ::timerfd_settime(descriptor, TFD_TIMER_ABSTIME, &when, nullptr);
}

}  // namespace

DeadlineDescriptor::DeadlineDescriptor()
    : descriptor_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (descriptor_ < 0)
    throw std::system_error(errno, std::generic_category(), "carillon: no timerfd for timers");
}

DeadlineDescriptor::~DeadlineDescriptor() {
  ::close(descriptor_);
}

void DeadlineDescriptor::set(std::int64_t ns) noexcept {
  set_time(descriptor_, std::max<std::int64_t>(ns, 1));
}

void DeadlineDescriptor::never() noexcept {
  set_time(descriptor_, 0);
}

}  // namespace carillon::detail
