#include "server/stay_awake.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "server/start_error.h"

namespace carillon::server {
namespace {

constexpr std::int32_t kNone = 0;  // us that a wake-up may take
constexpr std::int32_t kWhatever =
    2'000'000'000;  // PM_QOS_CPU_LATENCY_DEFAULT_VALUE, what the kernel takes for no wish

void ask(int fd, std::int32_t latency) noexcept {
  // It is a wish: with no way to make it the server is as right as it was, and slower.
  [[maybe_unused]] const ssize_t written = ::write(fd, &latency, sizeof latency);
}

}  // namespace

LatencyRequest::LatencyRequest(const std::string& device) : fd_(::open(device.c_str(), O_RDWR | O_CLOEXEC)) {
  if (fd_ >= 0) return;
  throw StartError(fmt::format(
      "cannot open {}, which --stay-awake needs: {}; run as root, or let the user write to it (a udev rule)", device,
      std::strerror(errno)));
}

LatencyRequest::LatencyRequest(LatencyRequest&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

LatencyRequest::~LatencyRequest() {
  if (fd_ >= 0) ::close(fd_);
}

void LatencyRequest::make() noexcept {
  ask(fd_, kNone);
}

void LatencyRequest::withdraw() noexcept {
  ask(fd_, kWhatever);
}

StayAwake::StayAwake(boost::asio::io_context& io, std::optional<LatencyRequest> request)
    : timer_(io), request_(std::move(request)) {}

void StayAwake::hold() {
  held_ = true;
  request_->make();
  look_later();
}

// A timer that is set now and then costs less than one that every command puts off.
void StayAwake::look_later() {
  seen_ = false;
  timer_.expires_after(kLinger);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    if (seen_) return look_later();
    held_ = false;
    request_->withdraw();
  });
}

}  // namespace carillon::server
