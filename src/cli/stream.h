// A connection to a server as a synchronous stream: bytes out, lines and counted bytes in, and no
// wait that cannot end.
//
//   Stream stream = Stream::connect(address);
//   stream.send("stats\r\n");
//   std::string line = stream.read_line();
//
// Three things end a wait early: the other side closes (Unavailable), it says nothing for longer
// than the caller has patience (Unavailable), and a descriptor that the caller named becomes
// readable (Interrupted, wait.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "cli/exit_status.h"
#include "cli/wait.h"
#include "server/address.h"

namespace carillon::cli {

/// The server cannot be reached, was lost, or cannot answer at the moment: the same may well work
/// later.
struct Unavailable : Failure {
  using Failure::Failure;
};

/// How long the server may be silent when it has something to answer. It may have to wait for a
/// slow disk.
inline constexpr std::chrono::seconds kPatience{60};

/// Not thread-safe; each thread has its own.
class Stream {
 public:
  /// Tries each address that the host's name has, for 5 s each; `interrupt_fd` as in
  /// interrupt_on(). Throws Unavailable, which says how to start a server if the address is on this
  /// machine.
  static Stream connect(const server::Address& address, int interrupt_fd = -1);

  /// Takes over `fd`, a connected stream socket. `peer` is its name in messages.
  Stream(base::FileDescriptor fd, std::string peer);

  /// From now on, end every wait with Interrupted as soon as `fd` is readable. -1: none. It is not
  /// read from, and has to outlive the stream or the next call. The stream is of no use after an
  /// Interrupted: a reply may be half read.
  void interrupt_on(int fd) { interrupt_fd_ = fd; }

  void send(std::string_view bytes);

  /// The next line, without the CR LF that ends it. Throws Failure for a line of more than kMaxLine
  /// bytes.
  std::string read_line(Patience patience = kPatience);
  std::string read_exactly(std::size_t count);

  const std::string& peer() const { return peer_; }

  static constexpr std::size_t kMaxLine = 4096;

 private:
  void wait_until(short events, Patience patience);
  void receive_more(Patience patience);
  [[noreturn]] void lost(std::string_view why) const;

  base::FileDescriptor fd_;
  std::string peer_;
  int interrupt_fd_ = -1;
  std::string received_;  // and not yet handed out
};
}  // namespace carillon::cli
