// A connection that this program opens to a server: over TCP or a Unix socket, with TLS or without,
// and HTTP/1.1 over it. Jobs are pushed by it, and the command line talks by it. What waits is a
// coroutine of Asio:
//
//   ClientConnection connection(io.get_executor());
//   co_await connection.connect(endpoint);
//   co_await connection.start_tls(context, "jobs.example.org");
//   const HttpAnswer answer = co_await connection.ask({.method = "GET", .target = "/healthz"}, {});
//
// What fails throws boost::system::system_error. Behind that only close() is called.
//
// Thread safety: none.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace carillon::server {

struct HttpRequest {
  std::string_view method;
  std::string_view target;
  // With the host.
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string_view body = {};
};

struct HttpAnswer {
  unsigned status = 0;
  std::string body = {};
  std::string retry_after = {};
};

// What an answer may have.
struct HttpLimits {
  // Also for the line in front of a chunk, and for trailers.
  std::size_t header = 16 << 10;
  // A longer body is not read to its end: what was read counts, and the connection closes.
  std::size_t body = 64 << 10;
  // The answer keeps only the first bytes of what was read.
  std::size_t kept = SIZE_MAX;
};

class ClientConnection {
 public:
  using Endpoint = boost::asio::generic::stream_protocol::endpoint;
  template <class T>
  using Awaitable = boost::asio::awaitable<T>;

  explicit ClientConnection(const boost::asio::any_io_executor& io) : socket_(io) {}
  // Takes over a stream socket that is connected.
  ClientConnection(const boost::asio::any_io_executor& io, int descriptor);

  // From now on each step has this much time: to connect, to shake hands, to read or write some
  // bytes, to read the header of an answer, or more of its body. After it the connection is closed.
  // None: no limit.
  void set_patience(std::optional<std::chrono::milliseconds> patience) { patience_ = patience; }

  Awaitable<void> connect(const Endpoint& to);
  // Shakes hands. The server's certificate must be good, and for this host, a name or an address.
  // If it fails, wrong_certificate() says whether that is why. `context` must outlive this.
  Awaitable<void> start_tls(boost::asio::ssl::context& context, const std::string& host);
  // Returns what is wrong with the certificate of the server; empty: nothing.
  std::string wrong_certificate();

  Awaitable<std::size_t> read_some(boost::asio::mutable_buffer into);
  Awaitable<void> write(boost::asio::const_buffer bytes);

  // Sends the request, and reads the answer. Closes the connection if the server will not go on
  // with it.
  Awaitable<HttpAnswer> ask(const HttpRequest& request, const HttpLimits& limits);
  // Returns true if a byte of the answer to the last request has come.
  bool answer_began() const { return answer_began_; }

  bool is_open() const { return socket_.socket().is_open(); }
  int descriptor() { return socket_.socket().native_handle(); }
  // Returns false if the server has closed it, or has sent what nobody has asked for. REQUIRES:
  // nothing is under way.
  bool is_quiet();
  // What is under way fails.
  void close();
  // Gives memory back. REQUIRES: nothing is under way.
  void shrink() { buffer_.shrink_to_fit(); }

 private:
  using Socket = boost::beast::basic_stream<boost::asio::generic::stream_protocol>;

  void begin_step();
  // Belongs to the step that has begun.
  Awaitable<std::size_t> receive(boost::asio::mutable_buffer into);
  // Parses what has come, or else what comes next, until the parser has its header, or else more of
  // its body. At most about `most` bytes wait to be parsed.
  Awaitable<void> parse_more(boost::beast::http::basic_parser<false>& parser, std::size_t most);

  Socket socket_;
  std::optional<boost::asio::ssl::stream<Socket&>> tls_;
  boost::beast::flat_buffer buffer_;
  std::optional<std::chrono::milliseconds> patience_;
  bool answer_began_ = false;
};

// Returns true if TLS failed because the server wants a certificate of this client.
bool wants_certificate(const boost::system::error_code& error);
// Returns true if the other end does not speak TLS.
bool speaks_no_tls(const boost::system::error_code& error);

}  // namespace carillon::server
