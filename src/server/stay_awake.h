// While clients talk to the server: keeps the machine's processors awake, if it was asked to
// (--stay-awake).
//
// With one client that waits for each reply, every processor is idle several times per put: until
// the command comes, until the disk has written, until it has flushed. In a virtual machine each
// wake-up takes longer than all that the server itself does for a put. Linux lets a privileged
// process request wake-ups that take no time (PM QoS, Documentation/power/pm_qos_interface.rst):
// idle processors then spin instead, all of the machine's, where the processor's idle driver can.
//
// So the request stands from when a client connects or sends something until some milliseconds
// after. Slow syncs, which are done by another thread, outlast it: beside them a wake-up does not
// count. The kernel drops it when the process ends, however it ends, but not while it is stopped
// (SIGSTOP).
//
// Thread safety: that of the event loop, which owns it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <optional>
#include <string>

#include "base/file_descriptor.h"

namespace carillon::server {

// The device by which that is requested. Nothing is at first.
class LatencyDevice {
 public:
  static constexpr const char* kPath = "/dev/cpu_dma_latency";

  // Throws StartError: only root may open it, unless the system was told otherwise.
  explicit LatencyDevice(const std::string& path = kPath);

  void request() noexcept;   // processors must not sleep
  void withdraw() noexcept;  // they may

 private:
  base::FileDescriptor device_;
};

class StayAwake {
 public:
  // Without a device it does nothing. REQUIRES: `io` does not run after this is gone.
  StayAwake(boost::asio::io_context& io, std::optional<LatencyDevice> device);

  // A client connected, sent something, or was sent something. O(1); if nothing came for kLinger, a
  // system call that wakes all processors.
  void active() {
    seen_ = true;
    if (device_ && !requested_) request();
  }

  // The request is withdrawn when nothing came for so long, or up to twice as long.
  static constexpr std::chrono::milliseconds kLinger{2};

 private:
  void request();
  void look_later();

  boost::asio::steady_timer timer_;
  std::optional<LatencyDevice> device_;
  bool requested_ = false;
  bool seen_ = false;  // active since the timer was set
};

}  // namespace carillon::server
