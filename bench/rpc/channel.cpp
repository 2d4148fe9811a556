#include "channel.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <utility>

namespace rpc {

namespace asio = boost::asio;
using boost::system::error_code;

Channel::Channel(Tcp::socket socket) : socket_(std::move(socket)) {
  error_code ignored;  // if the connection is gone already, its first read finds out
  socket_.set_option(Tcp::no_delay(true), ignored);
}

void Channel::start(OnFrame on_frame, OnEnd on_end) {
  on_frame_ = std::move(on_frame);
  on_end_ = std::move(on_end);
  read();
}

void Channel::read() {
  socket_.async_read_some(
      asio::buffer(received_), [self = shared_from_this()](error_code error, std::size_t bytes) {
        if (error) return self->end(error.message());
        if (!self->reader_.feed({self->received_.data(), bytes}, self->on_frame_))
          return self->end("not a frame");
        self->read();
      });
}

void Channel::send(std::string_view frame) {
  const std::scoped_lock lock(mutex_);
  if (ended_) return;
  unsent_ += frame;
  if (writing_) return;
  writing_ = true;
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->write(); });
}

void Channel::write() {
  {
    const std::scoped_lock lock(mutex_);
    sending_.clear();
    sending_.swap(unsent_);
    writing_ = !sending_.empty() && !ended_;
    if (!writing_) return;
  }
  if (sending_.size() > kMostUnsent) return end("it does not take what it is sent");
  asio::async_write(socket_, asio::buffer(sending_),
                    [self = shared_from_this()](error_code error, std::size_t) {
                      if (error) return self->end(error.message());
                      self->write();
                    });
}

void Channel::close() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->end("closed"); });
}

void Channel::end(const std::string& why) {
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(ended_, true)) return;
    unsent_.clear();
  }
  error_code ignored;
  socket_.close(ignored);
  on_frame_ = nullptr;  // it may hold the owner of this channel
  std::exchange(on_end_, nullptr)(why);
}

}  // namespace rpc
