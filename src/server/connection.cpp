#include "server/connection.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include "server/address.h"

namespace carillon::server {
namespace {

namespace asio = boost::asio;
using Wants = beanstalk::Session::Wants;

constexpr std::size_t kFirstBuffer = 4 << 10;
constexpr std::size_t kLargestBuffer = 64 << 10;
constexpr std::size_t kReadAhead = 16 << 10;  // while a reserve waits
constexpr std::chrono::milliseconds kLook{20};
constexpr int kLooks = 250;

// Bytes, as the kernel counts them; 0 if it does not.
int count(int fd, unsigned long what) {
  int bytes = 0;
  return ::ioctl(fd, what, &bytes) == 0 ? bytes : 0;
}

}  // namespace

Connection::Connection(Socket socket, beanstalk::Service& service, Owner& owner)
    : socket_(std::move(socket)), owner_(owner), session_(service), input_(kFirstBuffer) {}

void Connection::process() {
  if (closed_ || lingering()) return;
  begin_ += session_.receive(std::string_view(input_.data() + begin_, unread()));
  switch (session_.wants()) {
    case Wants::kInput:
      if (ended_) {
        session_.close();
      } else if (end_ == input_.size()) {
        read();
      } else if (!reading_) {
        owner_.rests(*this);
      }
      break;
    case Wants::kDelivery:
      await_delivery();
      break;
    case Wants::kTurn:
      owner_.wants_turn(*this);
      break;
    case Wants::kRoom:
    case Wants::kNothing:
      break;
  }
  if (!session_.replies().empty()) owner_.has_replies(*this);
  if (!writing_) owner_.active(*this);  // else it is to read, and nothing else counts
  close_if_done();
}

// Reading a little on is the cheapest way to notice that the client is gone; one that has sent more
// is watched.
void Connection::await_delivery() {
  if (ended_) return;
  if (unread() < kReadAhead) {
    read();
  } else {
    owner_.watch_hang_up(*this, socket_.native_handle());
  }
}

void Connection::read_on() {
  if (!closed_ && !lingering() && session_.wants() == Wants::kInput) read();
}

void Connection::read() {
  if (reading_) return;
  make_room_to_read();
  reading_ = true;
  socket_.async_read_some(
      asio::buffer(input_.data() + end_, input_.size() - end_),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t bytes) {
        self->on_read(error, bytes);
      });
}

void Connection::make_room_to_read() {
  const bool was_full = end_ == input_.size();
  std::memmove(input_.data(), input_.data() + begin_, unread());
  end_ = unread();
  begin_ = 0;
  if (was_full && input_.size() < kLargestBuffer) input_.resize(input_.size() * 2);
}

void Connection::on_read(const boost::system::error_code& error, std::size_t bytes) {
  reading_ = false;
  if (closed_) return;
  if (lingering()) {
    heard_ = true;
    return error ? close() : read();
  }
  end_ += bytes;
  if (error == asio::error::eof) {
    ended_ = true;
    session_.end_of_input();
  } else if (error) {
    return abort();
  }
  process();
}

void Connection::deliver(const queue::Delivery& delivery) {
  session_.deliver(delivery);
  process();
}

void Connection::flush() {
  const bool was_full = session_.wants() == Wants::kRoom;
  bool tried = false;
  while (!writing_ && !closed_) {
    const std::string_view ready = session_.replies().sendable(owner_.durable());
    if (ready.empty()) break;
    tried = true;
    boost::system::error_code error;
    const std::size_t sent = socket_.write_some(asio::buffer(ready.data(), ready.size()), error);
    if (error == asio::error::would_block) {
      writing_ = true;
      untaken_ = count(socket_.native_handle(), SIOCOUTQ);
      socket_.async_wait(Socket::wait_write,
                         [self = shared_from_this()](const boost::system::error_code&) {
                           self->writing_ = false;
                           self->flush();
                         });
    } else if (error) {
      return abort();
    }
    session_.replies().sent(sent);
  }
  if (tried) owner_.active(*this);
  if (was_full && session_.wants() != Wants::kRoom) owner_.wants_turn(*this);
  close_if_done();
}

void Connection::finish() {
  session_.close();
  close_if_done();
}

void Connection::abort() {
  session_.close();
  session_.replies().clear();
  if (!closed_) close();
}

void Connection::give_up() {
  if (!writing_) return finish();
  // The kernel would keep what nobody reads for minutes more.
  boost::system::error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  abort();
}

Awaits Connection::awaits() const {
  if (closed_ || lingering()) return Awaits::kNothing;
  if (writing_) return Awaits::kReading;
  if (session_.wants() != Wants::kInput) return Awaits::kNothing;
  if (unread() > 0 || session_.mid_command()) return Awaits::kRest;
  return session_.replies().empty() ? Awaits::kCommand : Awaits::kNothing;
}

// What came in the meantime counts as come, though nobody had time to read it. Of replies the
// kernel takes many at once, so one that reads slowly is known by what the kernel has left. And who
// holds jobs is at work.
bool Connection::moves() {
  const int fd = socket_.native_handle();
  if (writing_) {
    const int before = std::exchange(untaken_, count(fd, SIOCOUTQ));
    return untaken_ < before;
  }
  return count(fd, FIONREAD) > 0 || (awaits() == Awaits::kCommand && session_.holds_jobs());
}

std::string Connection::peer() const {
  boost::system::error_code error;
  const auto end = socket_.remote_endpoint(error);
  if (error) return "a client that is gone";
  if (end.protocol().family() == AF_UNIX) return "a Unix socket";
  return to_string(to_address(end.data(), static_cast<socklen_t>(end.size())));
}

void Connection::close_if_done() {
  if (closed_ || lingering() || session_.wants() != Wants::kNothing || !session_.replies().empty())
    return;
  if (replies_may_get_lost()) {
    linger();
  } else {
    close();
  }
}

bool Connection::replies_may_get_lost() {
  if (ended_) return false;  // nothing is unread, and nothing will come
  const int fd = socket_.native_handle();
  return count(fd, SIOCOUTQ) > 0 || count(fd, FIONREAD) > 0;
}

void Connection::linger() {
  boost::system::error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  patience_.emplace(socket_.get_executor());
  looks_left_ = kLooks;
  begin_ = end_;
  read();
  look_again_later();
}

void Connection::look_again_later() {
  heard_ = false;
  patience_->expires_after(kLook);
  patience_->async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && !self->closed_) self->look_again();
  });
}

void Connection::look_again() {
  const bool needed = heard_ || count(socket_.native_handle(), SIOCOUTQ) > 0;
  if (needed && --looks_left_ > 0) return look_again_later();
  close();
}

void Connection::close() {
  closed_ = true;
  patience_.reset();
  boost::system::error_code ignored;
  socket_.shutdown(Socket::shutdown_both, ignored);
  socket_.close(ignored);
  owner_.closed(*this);
}

}  // namespace carillon::server
