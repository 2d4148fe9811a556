// A fake server for tests of a client. The test stores the replies before the client asks, and
// reads the client's bytes afterwards. The buffers of a socket pair hold both, so the test needs no
// thread and never waits.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "base/file_descriptor.h"
#include "cli/stream.h"

namespace carillon::cli {

class ScriptedServer {
 public:
  ScriptedServer() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      throw std::runtime_error("socketpair failed");
    }
    mine_ = base::FileDescriptor(ends[0]);
    clients_ = base::FileDescriptor(ends[1]);
  }

  // Returns the client's end. Call it once.
  Stream stream() { return {std::move(clients_), "the server"}; }

  // Adds bytes for the client to read.
  void answer(std::string_view bytes) {
    if (::send(mine_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error("the script does not fit into the socket's buffer");
    }
  }

  // Behind the answers the client finds the connection closed. What it sends still arrives.
  void end_answers() { ::shutdown(mine_.get(), SHUT_WR); }

  void close() { mine_ = base::FileDescriptor(); }

  // Returns the bytes that the client has sent since the last call.
  std::string received() {
    std::string text;
    std::array<char, 4096> buffer;
    for (ssize_t count = 0; (count = ::recv(mine_.get(), buffer.data(), buffer.size(), 0)) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return text;
  }

 private:
  base::FileDescriptor mine_;
  base::FileDescriptor clients_;
};

// Returns the message of the Failure that `action` throws.
template <class Action>
std::string failure_of(Action action) {
  try {
    action();
  } catch (const Failure& error) {
    return error.what();
  }
  return "no failure";
}

}  // namespace carillon::cli
