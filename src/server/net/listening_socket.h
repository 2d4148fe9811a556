// The sockets on which the server listens: bound here, or inherited from systemd. run_server()
// opens them, and each Acceptor owns one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/text/address.h"

namespace carillon::server {

// The protocol of the clients that connect to a socket.
enum class Speaks : std::uint8_t { kBeanstalk, kHttp };

// Owns the descriptor of a bound, non-blocking stream socket. The destructor of a Unix socket that
// was bound here also unlinks its path.
class ListeningSocket {
 public:
  ListeningSocket(int fd, Address bound, bool loopback, bool unlink_path)
      : fd_(fd), bound_(std::move(bound)), loopback_(loopback), unlink_path_(unlink_path) {}
  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();

  // No client can connect before this. Does nothing if it listens already. Throws StartError.
  void listen();

  // Returns the same socket with another descriptor, and without the path. Throws StartError.
  ListeningSocket duplicate() const;

  // Passes the descriptor to the caller. The path stays owned by this object.
  int release() { return std::exchange(fd_, -1); }

  // The address with the real port.
  const Address& bound() const { return bound_; }
  // Returns true if only this machine can reach it.
  bool loopback() const { return loopback_; }
  bool is_unix() const { return bound_.is_unix(); }
  Speaks speaks() const { return speaks_; }
  void speak(Speaks protocol) { speaks_ = protocol; }

 private:
  int fd_;
  Address bound_;
  bool loopback_;
  bool unlink_path_;
  Speaks speaks_ = Speaks::kBeanstalk;
};

struct SocketGroup {
  std::string name;
  gid_t id = 0;
};

// Which users may connect to a Unix socket: those who may write to its file.
struct SocketAccess {
  // The permissions of the file. None: 0777 without the bits of the process's umask.
  std::optional<mode_t> mode;
  // The group of the file. None: the one that the system gives to a new file.
  std::optional<SocketGroup> group;
};

// Binds to `address`: one socket for each address that a host name has. They do not listen yet. If
// no server answers at the path of a Unix socket, the path is taken over; otherwise it is left
// alone. Throws StartError if nothing could be bound, or the group not be set. REQUIRES, if
// access.mode is given: no other thread makes files meanwhile, because the umask is changed for a
// moment.
std::vector<ListeningSocket> bind_to(const Address& address, const SocketAccess& access = {});
// The same, and listens.
std::vector<ListeningSocket> listen_on(const Address& address, const SocketAccess& access = {});

// Returns the sockets that systemd has opened for this process (LISTEN_PID and LISTEN_FDS, which
// are then removed from the environment), or none. Those that LISTEN_FDNAMES calls http
// (FileDescriptorName=http) speak HTTP. Throws StartError if a descriptor is not a
// listening stream socket.
std::vector<ListeningSocket> inherited_sockets();

}  // namespace carillon::server
