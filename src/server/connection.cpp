#include "server/connection.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <cstring>
#include <string_view>
#include <utility>

namespace carillon::server {
namespace {

namespace asio = boost::asio;
using Wants = beanstalk::Session::Wants;

constexpr std::size_t kFirstBuffer = 4 << 10;
constexpr std::size_t kLargestBuffer = 64 << 10;
constexpr std::size_t kReadAhead = 16 << 10;  // while a reserve waits

}  // namespace

Connection::Connection(Socket socket, beanstalk::Service& service, Owner& owner)
    : socket_(std::move(socket)), owner_(owner), session_(service), input_(kFirstBuffer) {}

void Connection::process() {
  if (closed_) return;
  begin_ += session_.receive(std::string_view(input_.data() + begin_, unread()));
  switch (session_.wants()) {
    case Wants::kInput:
      if (ended_) {
        session_.close();
      } else {
        read();
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
  close_if_done();
}

// Reading a little on is the cheapest way to notice that the client is gone; one that has sent more is watched.
void Connection::await_delivery() {
  if (ended_) return;
  if (unread() < kReadAhead) {
    read();
  } else {
    owner_.watch_hang_up(*this, socket_.native_handle());
  }
}

void Connection::read() {
  if (reading_) return;
  make_room_to_read();
  reading_ = true;
  socket_.async_read_some(asio::buffer(input_.data() + end_, input_.size() - end_),
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
  while (!writing_ && !closed_) {
    const std::string_view ready = session_.replies().sendable(owner_.durable());
    if (ready.empty()) break;
    boost::system::error_code error;
    const std::size_t sent = socket_.write_some(asio::buffer(ready.data(), ready.size()), error);
    if (error == asio::error::would_block) {
      writing_ = true;
      socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const boost::system::error_code&) {
        self->writing_ = false;
        self->flush();
      });
    } else if (error) {
      return abort();
    }
    session_.replies().sent(sent);
  }
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
  close_if_done();
}

void Connection::close_if_done() {
  if (closed_ || session_.wants() != Wants::kNothing || !session_.replies().empty()) return;
  closed_ = true;
  boost::system::error_code ignored;
  socket_.shutdown(Socket::shutdown_both, ignored);
  socket_.close(ignored);
  owner_.closed(*this);
}

}  // namespace carillon::server
