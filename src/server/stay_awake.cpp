#include "server/stay_awake.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "server/start_error.h"

namespace carillon::server {
namespace {

// How long a wake-up may take, in us.
constexpr std::int32_t kNoTime = 0;
constexpr std::int32_t kAnyTime =
    2'000'000'000;  // PM_QOS_CPU_LATENCY_DEFAULT_VALUE: as if nothing were requested

void write_to(int device, std::int32_t latency) noexcept {
  // The kernel takes every such value. If it did not, the server would be as right as it is, and
  // slower.
  [[maybe_unused]] const ssize_t written = ::write(device, &latency, sizeof latency);
}

std::string_view advice(int error) {
  return error == ENOENT ? "this system or sandbox has none (in a systemd unit: PrivateDevices=no)"
                         : "run as root, or let the user write to it (a udev rule)";
}

}  // namespace

LatencyDevice::LatencyDevice(const std::string& path)
    : device_(::open(path.c_str(), O_WRONLY | O_CLOEXEC)) {
  if (device_) return;
  const int error = errno;
  throw StartError(
      fmt::format("--stay-awake needs {}: {}; {}", path, std::strerror(error), advice(error)));
}

void LatencyDevice::request() noexcept {
  write_to(device_.get(), kNoTime);
}

void LatencyDevice::withdraw() noexcept {
  write_to(device_.get(), kAnyTime);
}

StayAwake::StayAwake(boost::asio::io_context& io, std::optional<LatencyDevice> device)
    : timer_(io), device_(std::move(device)) {}

void StayAwake::request() {
  look_later();  // first: it may throw
  requested_ = true;
  device_->request();
}

// A timer that runs its time costs less than one that every command puts off.
void StayAwake::look_later() {
  seen_ = false;
  timer_.expires_after(kLinger);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    if (seen_) return look_later();
    requested_ = false;
    device_->withdraw();
  });
}

}  // namespace carillon::server
