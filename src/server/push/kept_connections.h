// Connections to endpoints that are kept open between attempts, so that not each attempt pays for a
// new one. All endpoints share them; attempts of one URL take the one that was used last.
//
//   KeptConnections kept(io, pool, 128);
//   auto connection = kept.take(url);            // null: make a new one
//   ...
//   kept.keep(std::move(connection));            // after the attempt; it may be closed instead
//
// Bounds: kMostOfOne connections to one URL, `most` in all; older ones are closed to keep them.
// Each is kept for `longest`, charged to the pool, and closed if memory is short.
//
// Thread safety: none; it belongs to the thread of the event loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>

#include "server/net/memory_pool.h"
#include "server/push/post_connection.h"

namespace carillon::server::push {

class KeptConnections {
 public:
  static constexpr std::size_t kMostOfOne = 64;
  static constexpr std::chrono::seconds kLongest{10};
  // The memory of one: with TLS, what OpenSSL and Asio keep for it.
  static constexpr std::size_t kBytesOfOne = 64 << 10;

  KeptConnections(boost::asio::io_context& io, MemoryPool& pool, std::size_t most,
                  std::chrono::milliseconds longest = kLongest);
  ~KeptConnections();
  KeptConnections(const KeptConnections&) = delete;
  KeptConnections& operator=(const KeptConnections&) = delete;

  // Returns an open connection to the URL, or null. Closes those that are not quiet any more.
  std::shared_ptr<PostConnection> take(const TargetUrl& url);
  // REQUIRES: no attempt is under way. A connection that has closed is dropped.
  void keep(std::shared_ptr<PostConnection> connection);
  // Closes the connections to the URL, because nothing is pushed there any more.
  void close(const TargetUrl& url);
  void close_all();
  std::size_t size() const { return kept_.size(); }

 private:
  struct Kept {
    std::shared_ptr<PostConnection> connection;
    std::chrono::steady_clock::time_point since;
  };

  void close_oldest(const TargetUrl* url);
  void close_old();
  void count();

  boost::asio::steady_timer timer_;
  MemoryPool& pool_;
  MemoryPool::Share memory_;
  const std::size_t most_;
  const std::chrono::milliseconds longest_;
  std::deque<Kept> kept_;  // the oldest first
};

}  // namespace carillon::server::push
