// Channel: one end of the connection between the load and its server. Messages that are sent while
// the socket is busy go out together, in one write.
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

namespace rpc {

using Tcp = boost::asio::ip::tcp;

// A request is a message, and so is its reply, with the same id. In the reply to the id 0 the
// server tells how many requests have come, how many it has answered, and how many it will still
// answer.
struct Message {
  std::uint64_t id = 0;
  std::array<std::uint64_t, 3> rest{};
};

// Thread safety: any thread may call send(). The one thread that runs the I/O context calls the
// callbacks.
class Channel {
 public:
  using OnMessage = std::function<void(const Message&)>;
  using OnEnd = std::function<void()>;  // the other side has closed

  // REQUIRES: the socket is connected. `io` runs no more when the channel is destroyed.
  Channel(Tcp::socket socket, OnMessage on_message, OnEnd on_end)
      : socket_(std::move(socket)), on_message_(std::move(on_message)), on_end_(std::move(on_end)) {
    socket_.set_option(Tcp::no_delay(true));
    read();
  }

  void send(const Message& message) {
    const std::scoped_lock lock(mutex_);
    unsent_.append(reinterpret_cast<const char*>(&message), sizeof message);
    if (std::exchange(writing_, true)) return;
    boost::asio::post(socket_.get_executor(), [this] { write(); });
  }

 private:
  void read() {
    socket_.async_read_some(
        boost::asio::buffer(received_.data() + begun_, received_.size() - begun_),
        [this](const boost::system::error_code& error, std::size_t bytes) {
          if (error) return on_end_();
          take(begun_ + bytes);
          read();
        });
  }

  void take(std::size_t bytes) {
    std::size_t at = 0;
    for (; bytes - at >= sizeof(Message); at += sizeof(Message)) {
      Message message;
      std::memcpy(&message, received_.data() + at, sizeof message);
      on_message_(message);
    }
    begun_ = bytes - at;
    std::memmove(received_.data(), received_.data() + at, begun_);
  }

  void write() {
    {
      const std::scoped_lock lock(mutex_);
      sending_.clear();
      sending_.swap(unsent_);
      writing_ = !sending_.empty();
      if (!writing_) return;
    }
    boost::asio::async_write(socket_, boost::asio::buffer(sending_),
                             [this](const boost::system::error_code& error, std::size_t) {
                               if (!error) write();  // else the read finds out
                             });
  }

  // Used by the I/O thread only.
  Tcp::socket socket_;
  std::array<char, 64 << 10> received_;
  std::size_t begun_ = 0;  // bytes in it of a message whose rest has not come yet
  std::string sending_;
  const OnMessage on_message_;
  const OnEnd on_end_;

  std::mutex mutex_;  // protects the members below
  std::string unsent_;
  bool writing_ = false;
};

}  // namespace rpc
