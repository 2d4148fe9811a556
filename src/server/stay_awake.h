#pragma once
// While clients talk to the server: keeps the machine's processors awake, if it was asked to (--stay-awake).
//
// With one client that waits for each reply, every processor is idle several times per put: until the command comes, until the disk
// has written, until it has flushed. In a virtual machine each wake-up takes longer than all that the server itself does for
// a put. Linux lets a privileged process ask for wake-ups that take no time (PM QoS, Documentation/power/pm_qos_interface.rst):
// idle processors spin then, all of the machine's. So the wish is held from the first byte of a client until some milliseconds
// after the last, and the kernel drops it when the process ends, however it ends.
//
// Thread safety: that of the event loop, which owns it.

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <optional>
#include <string>

namespace carillon::server {

// The wish: none at first.
class LatencyRequest {
 public:
  static constexpr const char* kDevice = "/dev/cpu_dma_latency";

  // Opens the device, which root may. Throws StartError.
  explicit LatencyRequest(const std::string& device = kDevice);
  LatencyRequest(LatencyRequest&& other) noexcept;
  LatencyRequest& operator=(LatencyRequest&&) = delete;
  ~LatencyRequest();

  void make() noexcept;      // processors must not sleep
  void withdraw() noexcept;  // they may

 private:
  int fd_;
};

class StayAwake {
 public:
  // Without a request it does nothing.
  StayAwake(boost::asio::io_context& io, std::optional<LatencyRequest> request);

  // A client connected, sent something, or was sent something. O(1); a system call if nothing came for kLinger.
  void active() {
    seen_ = true;
    if (request_ && !held_) hold();
  }

  // The wish is withdrawn when nothing came for so long, or up to twice as long.
  static constexpr std::chrono::milliseconds kLinger{2};

 private:
  void hold();
  void look_later();

  boost::asio::steady_timer timer_;
  std::optional<LatencyRequest> request_;
  bool held_ = false;
  bool seen_ = false;  // active since the timer was set
};

}  // namespace carillon::server
