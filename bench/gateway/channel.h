// Channel: one end of a connection, of the gateway or of the load: it reads and writes frames, and
// takes little memory while nothing happens.
//
// A channel has no read buffer of its own. It waits until the socket is readable, and all channels
// then read into the same buffer. It keeps only a frame that has come in part, and bytes that the
// socket has not taken yet.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "frame.h"

namespace gateway {

// Its executor type is that of io_context, which makes it smaller than a socket with any executor.
using Tcp = boost::asio::ip::tcp;
using Socket = boost::asio::basic_stream_socket<Tcp, boost::asio::io_context::executor_type>;

// Thread safety: none; everything happens in the one thread that runs the I/O context.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  // Bytes. If more than this waits to be sent, the connection is closed.
  static constexpr std::size_t kMostUnsent = 64 << 10;

  // REQUIRES: the socket is connected.
  explicit Channel(Socket socket);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  virtual ~Channel() = default;

  // Reads from now on. An open channel that has been started keeps itself alive.
  void start();

  // Reads the frames that have arrived, at most about 64 KiB, without waiting. Returns how many
  // there were.
  std::size_t read();

  // Sends a frame: as much of it as the socket takes now, and the rest later.
  void send(std::string_view frame);

  // Closes the socket. on_end() is not called.
  void close();

  // Closes the socket with a reset, so that the kernel keeps nothing of it, not even TIME_WAIT.
  void reset();

  bool is_open() const { return socket_.is_open(); }

 private:
  // Called for each frame from the other side.
  virtual void on_frame(const Frame& frame) = 0;
  // Called once, with the socket closed, when the other side has closed, has sent bytes that are no
  // frames, or reads too slowly (kMostUnsent).
  virtual void on_end() = 0;

  void await_input();
  void await_room();
  void write();
  void end();

  Socket socket_;
  FrameReader reader_;
  std::string unsent_;
};

}  // namespace gateway
