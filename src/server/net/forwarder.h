// Forwarder: passes the clients of a node that follows on to the node that serves, byte by byte. So
// a client may connect to any node of a cluster.
//
//   Forwarder forwarder(10'000);
//   forwarder.start(sockets);                    // a thread accepts from now on
//   forwarder.lead_to(Destination{beanstalk, http});
//   ...
//   forwarder.stop();                            // this node serves: the sockets are the loop's
//
// A client that comes while nobody serves, or whose server does not answer, waits up to kPatience,
// and is closed then. When another node serves, all connections are closed: otherwise a client
// would wait for a reply that the new node never sends.
//
// It does not read what it passes on. TLS is between the client and the node that serves, whose
// certificate must have the name by which clients know the cluster; and that node asks for the
// token. It sees the address of this node in place of the client's.
//
// Memory: about 1 KB for each connection, and what waits to be sent, at most kPiece.
// Thread safety: one thread calls start() and stop(); any thread may call lead_to(), which does
// nothing unless it runs.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "server/net/acceptor.h"
#include "server/net/listening_socket.h"
#include "server/text/address.h"

namespace carillon::server {

class Forwarder {
 public:
  static constexpr std::chrono::milliseconds kPatience{5'000};
  static constexpr std::size_t kPiece = 64 << 10;

  // Where the node that serves listens. REQUIRES: neither is a Unix socket.
  struct Destination {
    Address beanstalk;
    std::optional<Address> http;  // none: it answers no HTTP
    bool operator==(const Destination&) const = default;
  };

  // More connections than `max_connections` are closed at once.
  explicit Forwarder(std::size_t max_connections);
  ~Forwarder();
  Forwarder(const Forwarder&) = delete;
  Forwarder& operator=(const Forwarder&) = delete;

  // Accepts from the sockets, which listen, with descriptors of its own. Throws StartError.
  void start(const std::vector<ListeningSocket>& sockets);
  // Closes all its connections. Does nothing if it has not started.
  void stop();

  // None: nobody serves, as far as is known.
  void lead_to(const std::optional<Destination>& destination);

 private:
  class Passage;

  void accept(Acceptor::Socket client, Speaks protocol);

  const std::size_t max_connections_;
  std::mutex mutex_;
  bool runs_ = false;  // protected by mutex_
  std::unique_ptr<boost::asio::io_context> io_;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  std::optional<Destination> destination_;
  std::set<std::shared_ptr<Passage>> passages_;
  std::array<char, kPiece> piece_;  // what was read last
  std::thread thread_;              // runs io_; what is not protected is its own meanwhile
};

}  // namespace carillon::server
