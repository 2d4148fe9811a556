// A synchronous connection to a server: sends bytes, reads lines and counted bytes, and never waits
// without a way to end the wait.
//
//   Stream stream = Stream::connect(address);
//   stream.send("stats\r\n");
//   std::string line = stream.read_line();
//
// Three events end a wait early: the server closes the connection (Unavailable), the server is
// silent for longer than the caller's `patience` (Unavailable), or a descriptor that the caller
// named becomes readable (Interrupted, wait.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "cli/exit_status.h"
#include "cli/server_address.h"
#include "cli/tls_client.h"
#include "cli/wait.h"
#include "server/text/address.h"

namespace carillon::cli {

// The server cannot be reached, the connection was lost, or the server cannot answer now. The same
// call may succeed later.
struct Unavailable : Failure {
  using Failure::Failure;
};

// How long the server may be silent while it owes a reply. It may be waiting for a slow disk.
inline constexpr std::chrono::seconds kPatience{60};

// Not thread-safe.
class Stream {
 public:
  // Tries each address of the host's name, for up to 5 s each. `interrupt_fd` as in interrupt_on().
  // Throws Unavailable; if the address is on this machine, its text says how to start a server.
  static Stream connect(const server::Address& address, int interrupt_fd = -1);
  // The same, by TLS if the server is to be met so, and shows the server's token there. Throws
  // Failure, too, if the server's certificate is not good, or if it refuses the token.
  static Stream connect(const ServerAddress& server, int interrupt_fd = -1);
  // The same, and shows no token.
  static Stream connect_without_token(const ServerAddress& server, int interrupt_fd = -1);

  // Takes over `fd`, a connected stream socket. `peer` is the server's name in messages.
  Stream(base::FileDescriptor fd, std::string peer);

  // From now on every wait throws Interrupted as soon as `fd` is readable; -1: none. `fd` is not
  // read from. It must stay open until the next call of interrupt_on() or the end of the stream. Do
  // not use the stream after Interrupted: a reply may be half read.
  void interrupt_on(int fd) { interrupt_fd_ = fd; }

  void send(std::string_view bytes);
  // Waits so long, and for nothing else.
  void rest(std::chrono::milliseconds time) { wait_for(-1, 0, time, interrupt_fd_); }

  // Returns the next line without its CR LF. Throws Failure if the line has more than kMaxLine
  // bytes.
  std::string read_line(Patience patience = kPatience);
  std::string read_exactly(std::size_t count);
  // Returns what has come, at least one byte.
  std::string read_some(Patience patience = kPatience);

  const std::string& peer() const { return peer_; }

  static constexpr std::size_t kMaxLine = 4096;

 private:
  void begin_tls(const ServerAddress& server);
  void wait_until(short events, Patience patience);
  void send_as_it_is(std::string_view bytes);
  // Returns at least one byte.
  std::string receive_as_it_is(Patience patience);
  void receive_more(Patience patience);
  [[noreturn]] void lost(std::string_view why) const;

  base::FileDescriptor fd_;
  std::string peer_;
  int interrupt_fd_ = -1;
  std::unique_ptr<TlsClient> tls_;
  std::string received_;  // but not yet returned to the caller
};

}  // namespace carillon::cli
