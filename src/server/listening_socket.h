// The sockets on which the server listens: bound here, or inherited from systemd. run_server()
// opens them, and each Acceptor owns one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "server/address.h"

namespace carillon::server {

// Owns the descriptor of a listening, non-blocking stream socket. The destructor of a Unix socket
// that was bound here also unlinks its path.
class ListeningSocket {
 public:
  ListeningSocket(int fd, Address bound, bool loopback, bool unlink_path)
      : fd_(fd), bound_(std::move(bound)), loopback_(loopback), unlink_path_(unlink_path) {}
  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();

  // Passes the descriptor to the caller. The path stays owned by this object.
  int release() { return std::exchange(fd_, -1); }

  // The address with the real port.
  const Address& bound() const { return bound_; }
  // Returns true if only this machine can reach it.
  bool loopback() const { return loopback_; }
  bool is_unix() const { return bound_.is_unix(); }

 private:
  int fd_;
  Address bound_;
  bool loopback_;
  bool unlink_path_;
};

// Listens on `address`: one socket for each address that a host name has. The path of a Unix socket
// is taken over if no server answers there any more, and left alone if one does. Throws StartError
// if nothing could be bound.
std::vector<ListeningSocket> listen_on(const Address& address);

// Returns the sockets that systemd has opened for this process (LISTEN_PID and LISTEN_FDS, which
// are then removed from the environment), or none. Throws StartError if a descriptor is not a
// listening stream socket.
std::vector<ListeningSocket> inherited_sockets();

}  // namespace carillon::server
