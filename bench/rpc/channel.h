// One connection, at either end: frames in and out of a socket. What is sent while the socket is
// busy goes out together, in one write.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "frame.h"

namespace rpc {

using Tcp = boost::asio::ip::tcp;

// Thread safety: send() and close() may be called by any thread; the callbacks come from the one
// thread that runs the I/O context.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  static constexpr std::size_t kMostUnsent =
      64 << 20;  // bytes; whoever takes them more slowly is closed

  using OnFrame = std::function<void(std::uint64_t id, std::string_view rest)>;
  using OnEnd = std::function<void(const std::string& why)>;

  // REQUIRES: the socket is connected.
  explicit Channel(Tcp::socket socket);

  // Reads from now on; the channel lives as long as it is open, if nobody else holds it. on_end is
  // called once, when the other side has closed, talks nonsense, or does not take what it is sent,
  // or after close().
  void start(OnFrame on_frame, OnEnd on_end);

  // Sends a frame, now or when those before it are out. After the end it does nothing.
  void send(std::string_view frame);

  void close();

 private:
  void read();
  void write();
  void end(const std::string& why);

  Tcp::socket socket_;  // of the I/O thread, as what follows
  FrameReader reader_;
  std::array<char, 64 << 10> received_;
  std::string sending_;
  OnFrame on_frame_;
  OnEnd on_end_;

  std::mutex mutex_;  // protects what follows
  std::string unsent_;
  bool writing_ = false;
  bool ended_ = false;
};

}  // namespace rpc
