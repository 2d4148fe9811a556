// A beanstalk session on a socket: reads what is there, hands it to the session, and sends the
// replies that may leave.
//
// It reads with a buffer of its own that grows with the traffic, so that a thousand idle
// connections cost little and one that pipelines is read in few calls. What filled the buffer is
// followed by more, and that is read at once; else it rests until the turn's replies are sent, when
// the next command may be there: before, to look for it would mostly be in vain, and costs a system
// call. It does not read while the session has too many unsent replies, and only a little while a
// reserve waits.
//
// It closes so that the last replies arrive. A socket that is closed while something is unread, or
// that is sent more after that, resets the connection, and what the client's kernel has not taken
// yet is lost. So where that could happen it says that it sends no more, and then *lingers*: it
// reads on, and throws away, until the client has closed its side too, or its kernel has all and it
// sends no more, or 5 seconds are over.
//
// Who keeps it waiting is a StallWatch's business: it tells of each sign of life, and what it
// awaits.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/engine.h"
#include "server/beanstalk/service.h"
#include "server/beanstalk/session.h"
#include "server/stall_watch.h"

namespace carillon::server {

// Thread safety: none; everything happens in the thread that runs the I/O context.
class Connection final : public std::enable_shared_from_this<Connection>, public Watched {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;

  // What a connection needs of the server that keeps it.
  class Owner {
   public:
    // Up to here replies may leave.
    virtual queue::Sequence durable() const = 0;
    // To be flush()ed at the end of this turn, and when more is durable.
    virtual void has_replies(Connection& connection) = 0;
    // To be process()ed in the next turn.
    virtual void wants_turn(Connection& connection) = 0;
    // To read_on() at the end of this turn, when the replies are sent.
    virtual void rests(Connection& connection) = 0;
    // To be told hung_up() when the client closes its half of the socket `fd`.
    virtual void watch_hang_up(Connection& connection, int fd) = 0;
    // To be watched: its client has just sent something or taken replies, or begins to keep it
    // waiting.
    virtual void active(Connection& connection) = 0;
    // To be forgotten.
    virtual void closed(Connection& connection) = 0;

   protected:
    ~Owner() = default;
  };

  // REQUIRES: the socket is non-blocking.
  Connection(Socket socket, beanstalk::Service& service, Owner& owner);

  void start() { process(); }

  // Carries out the commands that are there, then reads on as the session wants.
  void process();

  // After rests(), if it still wants to read.
  void read_on();

  // Sends what may leave.
  void flush();

  void deliver(const queue::Delivery& delivery);

  // The client has closed its half, though what it sent before may not all be read yet.
  void hung_up() { session_.end_of_input(); }

  // No more commands: what was answered is sent, and then the socket is closed.
  void finish();

  // Closes the socket at once.
  void abort();

  // The client has kept it waiting for too long: it is closed, at once if the client does not read
  // either.
  void give_up();

  // Watched
  Awaits awaits() const override;
  bool moves() override;

  // Whom it serves, for the log: "127.0.0.1:40000", or "a Unix socket"; it may be gone.
  std::string peer() const;

  beanstalk::Session& session() { return session_; }

  // For the owner's lists (ConnectionList).
  bool has_turn_queued = false;
  bool has_replies_queued = false;
  bool is_resting = false;

 private:
  void await_delivery();
  void read();
  void on_read(const boost::system::error_code& error, std::size_t bytes);
  void make_room_to_read();
  void close_if_done();
  bool replies_may_get_lost();
  void linger();
  void look_again_later();
  void look_again();
  bool lingering() const { return patience_.has_value(); }
  void close();
  std::size_t unread() const { return end_ - begin_; }

  mutable Socket socket_;  // asking a socket for its descriptor is not const
  Owner& owner_;
  beanstalk::Session session_;
  std::vector<char> input_;  // from begin_ to end_: what the session has not used yet
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool reading_ = false;
  bool writing_ = false;  // the socket takes no more for now
  bool ended_ = false;    // the client sends no more
  bool closed_ = false;
  int untaken_ = 0;  // bytes that the client had not taken from the kernel when it was last looked
  std::optional<boost::asio::steady_timer> patience_;  // while it lingers
  int looks_left_ = 0;
  bool heard_ = false;  // it was sent something since the last look
};

}  // namespace carillon::server
