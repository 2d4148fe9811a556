// Wakes the server's loop when the engine has something to do: at a moment of the monotonic clock,
// and when the wall clock is set.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <optional>

namespace carillon::server {

class Alarm {
 public:
  explicit Alarm(boost::asio::io_context& io) : timer_(io) {}

  // The loop wakes at `mono_ns`, never earlier because of this alarm's last setting. A later
  // setting than the one before is not told to the kernel: the loop wakes in vain once, and that is
  // cheaper than a call for each.
  void set(std::optional<std::uint64_t> mono_ns);

 private:
  boost::asio::steady_timer timer_;
  std::optional<std::uint64_t> armed_for_;
};

// Calls `on_set` whenever the wall clock was set, or the machine resumed, so that jobs due by the
// new time do not wait for the old.
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
