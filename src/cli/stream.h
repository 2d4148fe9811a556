// A synchronous connection to a server, over which it talks in lines (the beanstalk protocol) or by
// HTTP. It never waits without a way to end the wait.
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
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "cli/exit_status.h"
#include "cli/server_address.h"
#include "cli/wait.h"
#include "server/text/address.h"

namespace boost::system {  // NOLINT(readability-identifier-naming): Boost's name for it
class error_code;
}

namespace carillon::server {
struct HttpAnswer;
struct HttpRequest;
}  // namespace carillon::server

namespace carillon::cli {

// The server cannot be reached, the connection was lost, or the server cannot answer now. The same
// call may succeed later.
struct Unavailable : Failure {
  using Failure::Failure;
};

// The longest silence of a server that owes a reply: the disk may be slow.
inline constexpr std::chrono::seconds kPatience{60};

// Not thread-safe.
class Stream {
 public:
  // Tries each address of the host's name, for up to 5 s each. `interrupt_fd` as in interrupt_on().
  // Throws Unavailable; if the address is on this machine, its text says how to start a server.
  static Stream connect(const server::Address& address, int interrupt_fd = -1);
  // The same, by TLS if the address says so, and shows the server's token there. Throws
  // Failure, too, if the server's certificate is not good, or if it refuses the token.
  static Stream connect(const ServerAddress& server, int interrupt_fd = -1);
  // The same where the server answers HTTP, and shows no token.
  static Stream connect_http(const ServerAddress& server, int interrupt_fd = -1);

  // Takes over `fd`, a connected stream socket. `peer` is the server's name in messages.
  Stream(base::FileDescriptor fd, std::string peer);
  ~Stream();
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;

  // From now on every wait throws Interrupted as soon as `fd` is readable; -1: none. `fd` is not
  // read from. It must stay open until the next call of interrupt_on() or the end of the stream. Do
  // not use the stream after Interrupted: a reply may be half read.
  void interrupt_on(int fd);

  void send(std::string_view bytes);
  // Waits for this time, and for nothing else.
  void rest(std::chrono::milliseconds time);

  // Returns the next line without its CR LF. Throws Failure if the line has more than kMaxLine
  // bytes.
  std::string read_line(Patience patience = kPatience);
  std::string read_exactly(std::size_t count);

  // Sends a request and returns the answer. Throws Failure if the other end does not speak HTTP, or
  // if the answer is longer than any job. REQUIRES: no line was sent.
  server::HttpAnswer ask(const server::HttpRequest& request, Patience patience = kPatience);
  // Returns false if no further request may be sent: the server has closed the connection.
  bool is_open();

  const std::string& peer() const { return peer_; }

  static constexpr std::size_t kMaxLine = 4096;

 private:
  // The parts that need Asio, which takes seconds to compile.
  struct Link;

  explicit Stream(std::string peer);
  // Returns what to do if nobody is there, behind "; ".
  using Advice = std::function<std::string()>;
  void connect_to(const server::Address& address, const Advice& advice, int interrupt_fd);
  void begin_tls(const std::string& host, const std::optional<std::string>& ca_file);
  void receive_more(Patience patience);
  // Runs a step to its end. What it throws is told in the words of this class.
  template <class Step>
  void run(Patience patience, Step step);
  [[noreturn]] void throw_lost(const boost::system::error_code& error, Patience patience);

  std::unique_ptr<Link> link_;
  std::string peer_;
  std::string received_;  // but not yet returned to the caller
};

}  // namespace carillon::cli
