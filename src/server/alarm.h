// Alarm and WallClockWatch: both wake the event loop when the engine has something to do, one at a
// moment of the monotonic clock, the other when somebody sets the wall clock.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <optional>

namespace carillon::server {

class Alarm {
 public:
  explicit Alarm(boost::asio::io_context& io);

  // Wakes the loop at `mono_ns` (of read_mono()); none: needs no wake-up.
  //
  // A time that is later than the one before, or none, is not passed on to the kernel: the loop may
  // wake once in vain, which costs less than a system call for each setting. The owner sets the
  // alarm anew after each wake-up.
  void set(std::optional<std::uint64_t> mono_ns);

 private:
  void watch();

  boost::asio::posix::stream_descriptor timer_;
  std::optional<std::uint64_t> armed_for_;
};

// Calls `on_set` whenever the wall clock was set or the machine resumed, so that jobs that are due
// by the new time do not wait for a timer that was computed from the old one.
class WallClockWatch {
 public:
  WallClockWatch(boost::asio::io_context& io, std::function<void()> on_set);

 private:
  void watch();
  void arm();

  boost::asio::posix::stream_descriptor timer_;
  std::function<void()> on_set_;
};

}  // namespace carillon::server
