// Channel: one end of a connection, of the client or of the server: it reads and writes frames.
// Frames that are sent while the socket is busy go out together, in one write.
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

// Thread safety: any thread may call send() and close(). The one thread that runs the I/O context
// calls the callbacks.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  // Bytes. If more than this waits to be sent, the connection is closed.
  static constexpr std::size_t kMostUnsent = 64 << 20;

  using OnFrame = std::function<void(std::uint64_t id, std::string_view rest)>;
  using OnEnd = std::function<void(const std::string& why)>;

  // REQUIRES: the socket is connected.
  explicit Channel(Tcp::socket socket);

  // Reads from now on. An open channel that has been started keeps itself alive. on_end is called
  // once: after close(), or when the other side has closed, has sent bytes that are no frames, or
  // reads too slowly (kMostUnsent).
  void start(OnFrame on_frame, OnEnd on_end);

  // Sends a frame, now or when the frames before it are out. Does nothing after the end.
  void send(std::string_view frame);

  void close();

 private:
  void read();
  void write();
  void end(const std::string& why);

  // Used by the I/O thread only.
  Tcp::socket socket_;
  FrameReader reader_;
  std::array<char, 64 << 10> received_;
  std::string sending_;
  OnFrame on_frame_;
  OnEnd on_end_;

  std::mutex mutex_;  // protects the members below
  std::string unsent_;
  bool writing_ = false;
  bool ended_ = false;
};

}  // namespace rpc
