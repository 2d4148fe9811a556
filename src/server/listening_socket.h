// Sockets on which the server listens: bound here, or inherited from systemd.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "server/address.h"

namespace carillon::server {

// Owns a descriptor of a listening, non-blocking stream socket. A Unix socket that was bound here
// is unlinked with it.
class ListeningSocket {
 public:
  ListeningSocket(int fd, Address bound, bool loopback, bool unlink_path)
      : fd_(fd), bound_(std::move(bound)), loopback_(loopback), unlink_path_(unlink_path) {}
  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();

  int release() {
    return std::exchange(fd_, -1);
  }  // the descriptor is the caller's then; the path is not
  const Address& bound() const { return bound_; }  // with the real port
  bool loopback() const { return loopback_; }      // only this machine can reach it
  bool is_unix() const { return bound_.is_unix(); }

 private:
  int fd_;
  Address bound_;
  bool loopback_;
  bool unlink_path_;
};

// A host name with several addresses gives a socket for each. A Unix socket that nobody answers any
// more is replaced; one that a live server answers is not. Throws StartError when nothing could be
// bound.
std::vector<ListeningSocket> listen_on(const Address& address);

// Those that systemd has opened for this process (LISTEN_PID and LISTEN_FDS, which are then removed
// from the environment); else none. Throws StartError for a descriptor that is no listening stream
// socket.
std::vector<ListeningSocket> inherited_sockets();

}  // namespace carillon::server
