#include "channel.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <utility>

namespace gateway {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Reads per turn: a client that sends without end must not keep the others waiting.
constexpr int kReads = 4;

bool is_only_full_or_empty(const error_code& error) {
  return error == asio::error::would_block || error == asio::error::try_again ||
         error == asio::error::interrupted;
}

}  // namespace

Channel::Channel(Socket socket) : socket_(std::move(socket)) {
  error_code ignored;  // if the connection is gone already, its first read finds out
  socket_.non_blocking(true, ignored);
  socket_.set_option(Tcp::no_delay(true), ignored);
}

void Channel::start() {
  await_input();
}

void Channel::await_input() {
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const error_code& error) {
    if (error || !self->is_open()) return;
    self->read();
    if (self->is_open()) self->await_input();
  });
}

std::size_t Channel::read() {
  static std::array<char, 16 << 10> buffer;
  std::size_t frames = 0;
  for (int i = 0; i < kReads && is_open(); ++i) {
    error_code error;
    const std::size_t bytes = socket_.read_some(asio::buffer(buffer), error);
    if (is_only_full_or_empty(error)) break;
    if (error) {
      end();
      break;
    }
    const bool understood = reader_.feed({buffer.data(), bytes}, [&](const Frame& frame) {
      ++frames;
      on_frame(frame);
      return is_open();
    });
    if (!understood) end();
    if (bytes < buffer.size()) break;
  }
  return frames;
}

void Channel::send(std::string_view frame) {
  if (!is_open()) return;
  const bool waits_already = !unsent_.empty();
  unsent_ += frame;
  if (!waits_already) write();
}

void Channel::write() {
  error_code error;
  const std::size_t sent = socket_.write_some(asio::buffer(unsent_), error);
  if (error && !is_only_full_or_empty(error)) return end();
  if (sent == unsent_.size()) {
    unsent_ = std::string();
    return;
  }
  unsent_.erase(0, sent);
  if (unsent_.size() > kMostUnsent) return end();
  await_room();
}

void Channel::await_room() {
  socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const error_code& error) {
    if (!error && self->is_open()) self->write();
  });
}

void Channel::close() {
  error_code ignored;
  socket_.close(ignored);
}

void Channel::reset() {
  error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  close();
}

void Channel::end() {
  if (!is_open()) return;
  close();
  on_end();
}

}  // namespace gateway
