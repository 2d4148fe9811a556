// An HTTP connection that pushes jobs, one after the other. It stays open between them.
//
//   auto connection = std::make_shared<PostConnection>(io, guard, tls, target);
//   connection->post({.headers = ..., .body = ...}, 15s, [](PostResult result) { ... });
//
// One attempt: the name is looked up once, the guard is asked about each address, and the
// connection goes to the address that was checked: a name server that answers differently the next
// time changes nothing. Redirects are not followed. If a connection that was kept open has been
// closed before a byte of an answer came, the request is sent once more over a new one.
//
// Bounds: an attempt has a time limit. An answer may have kMostHeaderBytes of header.
// kMostAnswerBytes of its body are read; if it has more, its status counts, and the connection is
// closed.
//
// Thread safety: none. `done` is called by a handler of the io_context, once, unless abort() was
// called.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "carillon/require.h"
#include "server/net/client_connection.h"
#include "server/push/address_guard.h"
#include "server/push/post.h"
#include "server/push/target_url.h"

namespace carillon::server::push {

class PostConnection : public std::enable_shared_from_this<PostConnection> {
 public:
  static constexpr std::size_t kMostHeaderBytes = 16 << 10;
  static constexpr std::size_t kMostAnswerBytes = 64 << 10;
  static constexpr std::size_t kExcerptBytes = 200;
  using Done = std::function<void(PostResult)>;

  // The guard and the TLS context must outlive this.
  PostConnection(boost::asio::io_context& io, const AddressGuard& guard,
                 boost::asio::ssl::context& tls, TargetUrl target);

  // REQUIRES: no request is under way, and the connection is new or is_open(): a closed one is not
  // used again.
  void post(PostRequest request, std::chrono::milliseconds time, Done done);
  // Closes the connection; `done` is not called any more.
  void abort();
  bool is_open() const { return connection_ != nullptr; }
  // Returns true from post() until `done` is called, or abort().
  bool is_at_work() const { return done_ != nullptr; }
  // Returns false if the peer has closed the connection, or has sent bytes without a request: some
  // proxies answer 408 to a connection that rests, and that would be taken for the next answer.
  // REQUIRES: is_open(), and no request is under way.
  bool is_quiet() const;
  const TargetUrl& target() const { return target_; }

 private:
  boost::asio::awaitable<void> run(PostRequest request);
  boost::asio::awaitable<void> connect();
  boost::asio::awaitable<std::vector<boost::asio::ip::tcp::endpoint>> look_up();
  boost::asio::awaitable<void> shake_hands(std::shared_ptr<ClientConnection> connection);
  boost::asio::awaitable<PostResult> exchange(const PostRequest& request);
  void finish(PostResult result);
  void close();

  boost::asio::io_context& io_;
  const AddressGuard& guard_;
  boost::asio::ssl::context& tls_;
  TargetUrl target_;
  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::steady_timer timer_;
  std::shared_ptr<ClientConnection> connection_;
  Done done_;
  std::uint64_t attempts_ = 0;
  std::chrono::steady_clock::time_point began_;
};

}  // namespace carillon::server::push
