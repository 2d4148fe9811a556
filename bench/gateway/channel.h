// One connection, at either end: frames in and out of a socket that costs little while nothing
// happens.
//
// It waits for the socket to become readable without offering a buffer; all connections then read
// into the same one. Only a frame of which a part has come, or that the socket does not take yet,
// is kept.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "frame.h"

namespace gateway {

// A socket that knows its I/O context by name is smaller than one with any executor.
using Tcp = boost::asio::ip::tcp;
using Socket = boost::asio::basic_stream_socket<Tcp, boost::asio::io_context::executor_type>;

// Thread safety: none; everything happens in the one thread that runs the I/O context.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  static constexpr std::size_t kMostUnsent =
      64 << 10;  // bytes; whoever takes them more slowly is closed

  // REQUIRES: the socket is connected.
  explicit Channel(Socket socket);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  virtual ~Channel() = default;

  // Reads from now on. The channel lives as long as it is open, if nobody else holds it.
  void start();

  // Takes the frames that have arrived, at most some 64 KiB of them, without waiting; says how
  // many.
  std::size_t read();

  // Sends a frame, or as much of it as the socket takes, and the rest later.
  void send(std::string_view frame);

  // Closes the socket. on_end() is not called.
  void close();

  // Closes the socket so that it leaves nothing behind in the kernel, not even TIME_WAIT.
  void reset();

  bool is_open() const { return socket_.is_open(); }

 private:
  // A frame from the other side.
  virtual void on_frame(const Frame& frame) = 0;
  // The other side has closed, or talks nonsense, or does not take what it is sent. Called once,
  // with the socket closed.
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
