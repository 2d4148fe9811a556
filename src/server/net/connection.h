// One client's socket with the session of its protocol: reads bytes, hands them to the session, and
// sends the replies that may leave. The event loop creates one Connection for each accepted socket.
//
// Reading. Each connection has a buffer that grows with its traffic, so a thousand idle connections
// cost little and a client that pipelines is read in few calls. If a read filled the buffer, the
// connection reads again now. Otherwise it *rests*: it reads again when this turn's replies are
// sent, because an earlier read would usually waste a system call. While the session has too many
// unsent replies it does not read; while a reserve waits it reads only a little ahead.
//
// Closing. A reset would lose replies that the client's kernel has not taken yet. The kernel resets
// a connection when its socket is closed with unread input, or when more input comes after that.
// Where that could happen, the connection shuts down its sending half and then *lingers*: it reads
// and throws away what comes, once in each turn, until the client has closed its half too, or its
// kernel has taken all replies and nothing more comes, or 5 seconds are over.
//
// TLS. If its port speaks TLS, the connection has a TlsStream between the socket and its buffer.
// The handshake goes on when the owner says so, because it takes much of the processor. Until it is
// done nothing else happens, and the client counts as one that keeps the server waiting.
//
// Turns. When its input arrives, or its reserve's wait ends, a connection does not carry out
// commands at once. It asks for a turn, and the event loop calls process() when it is this
// connection's turn.
//
// Time-outs. A StallWatch finds the clients that keep the server waiting. The connection reports
// each sign of life to its owner, and the watch asks the connection what it awaits. A command line,
// or the header of a request, has one time-out, however its bytes come: only its first byte is a
// sign of life. If the server has tokens, a client that has shown no token does not stay: neither
// its bytes nor the answers are signs of life, unless the protocol answers clients without a token.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/engine.h"
#include "server/net/fair_queue.h"
#include "server/net/protocol.h"
#include "server/net/stall_watch.h"
#include "server/net/tls_stream.h"
#include "server/service.h"

namespace carillon::server {

// Thread safety: none; everything happens in the thread that runs the I/O context.
class Connection final : public std::enable_shared_from_this<Connection>,
                         public Watched,
                         public FairQueue::Member {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;

  // What a connection needs of the event loop that owns it.
  class Owner {
   public:
    // The last sequence number that is durable: replies may leave that report changes up to it.
    virtual queue::Sequence durable() const = 0;
    // Asks for a flush() at the end of this turn, or, if no reply may leave by then, as soon as one
    // may.
    virtual void has_replies(Connection& connection) = 0;
    // Asks for a process() when it is this connection's turn.
    virtual void wants_turn(Connection& connection) = 0;
    // Asks for a store_has_room() when the store has room.
    virtual void wants_room(Connection& connection) = 0;
    // Asks for a read_on() at the end of this turn, when the replies are sent.
    virtual void read_after_flush(Connection& connection) = 0;
    // Asks for a hung_up() when the client closes its half of the socket `fd`.
    virtual void watch_hang_up(Connection& connection, int fd) = 0;
    // Reports that the client has just sent something or taken replies, or that it begins to keep
    // the connection waiting.
    virtual void active(Connection& connection) = 0;
    // Asks for a shake_hands() when there is time for it.
    virtual void shakes_hands(Connection& connection) = 0;
    // Reports that the client was rejected: it is closed, or its session has closed itself.
    virtual void turned_away(Connection& connection, RejectReason reason) = 0;
    // Reports that the connection is closed: the owner must forget it.
    virtual void closed(Connection& connection) = 0;

   protected:
    ~Owner() = default;
  };

  // How much of the memory of all connections a connection takes at least, in bytes.
  static constexpr std::size_t kLeastMemory = 24 << 10;

  // `tls` works on the socket; null: no TLS. REQUIRES: the socket is non-blocking.
  Connection(Socket socket, Service& service, Owner& owner, std::unique_ptr<Protocol> session,
             std::unique_ptr<TlsStream> tls = nullptr);

  void start();

  // Carries out the commands in the buffer until `until_ns` (monotonic clock), then goes on as the
  // session wants.
  void process(std::uint64_t until_ns);

  // Asks for its turn again after it has waited for room in the store.
  void store_has_room() {
    if (!closed_) owner_.wants_turn(*this);
  }

  // Reads on after a rest, if the session still wants input or the connection lingers.
  void read_on();

  // Goes on with the handshake of TLS.
  void shake_hands();
  // Why the handshake has failed, for the log.
  std::string_view handshake_failure() const { return tls_ ? tls_->why() : std::string_view(); }

  // The most bytes that one flush() sends. The socket of a client that does not read may take
  // megabytes, which takes milliseconds.
  static constexpr std::size_t kMostAtOnce = 64 << 10;
  // Sends replies that may leave, as far as the socket takes them, at most kMostAtOnce bytes.
  // Returns true if more may leave now.
  bool flush();

  // Returns true if the socket is full. The connection will ask for a flush() when it has room.
  bool is_writing() const { return writing_; }

  // Gives the session the end of its reserve's wait.
  void deliver(const queue::Delivery& delivery);

  // Gives the session the body that it waits for.
  void body_read(const Body& body);

  // Gives the session the checkpoint that it waits for.
  void checkpoint_made(const CheckpointResult& result);

  // Gives the session the result of its trial of an endpoint.
  void tried(const push::PostResult& result);

  // The client has closed its half. What it sent before may not all be read yet.
  void hung_up() {
    session_->end_of_input();
    if (session_->wants() == Protocol::Wants::kNothing) owner_.wants_turn(*this);
  }

  // Takes no more commands, sends the replies that are left, and then closes the socket. An endless
  // reply ends after the bytes that the socket takes now.
  void finish();

  // Closes the socket at once.
  void abort();

  // Closes the connection of a client that has kept it waiting for too long: like finish(), or like
  // abort() if the client does not read its replies.
  void give_up();

  // From Watched:
  Awaits awaits() const override;
  bool shows_life() override;

  // The client's address for the log: "127.0.0.1:40000", "a Unix socket", or "a client that is
  // gone".
  std::string peer() const;

  Protocol& session() { return *session_; }

  // Set by the owner's lists (ConnectionList) while the connection is in them.
  bool has_replies_queued = false;
  bool has_long_replies = false;
  bool is_resting = false;
  bool is_waiting_for_store = false;
  bool is_shaking_hands = false;
  // Set by the owner while the replies wait until more is durable.
  bool has_replies_held = false;

 private:
  void await_delivery();
  void read();
  void await_socket(Socket::wait_type what);
  void on_socket_ready(const boost::system::error_code& error);
  void read_decrypted();
  std::size_t write_some(std::string_view bytes, boost::system::error_code& error);
  bool is_health_check();
  void turn_away(RejectReason reason);
  void on_read(const boost::system::error_code& error, std::size_t bytes);
  void make_room_to_read();
  void count_memory();
  void close_if_done();
  bool may_stay() const;
  bool is_within_head() const;
  bool goes_on_with_head();
  bool replies_may_get_lost();
  void linger();
  void poll_lingering_later();
  void poll_lingering();
  bool lingering() const { return linger_timer_.has_value(); }
  void close();
  std::size_t unread() const { return end_ - begin_; }
  MemoryPool& memory() { return service_.memory(); }

  Service& service_;
  mutable Socket socket_;  // mutable: native_handle() is not const
  Owner& owner_;
  std::unique_ptr<Protocol> session_;
  std::unique_ptr<TlsStream> tls_;

  MemoryPool::Share memory_;

  // The bytes that the session has not used yet are input_[begin_, end_).
  std::vector<char> input_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;

  bool heard_ = false;    // the client has sent something
  bool reading_ = false;  // a read is under way
  bool writing_ = false;  // the socket was full; a wait for room is under way
  bool ended_ = false;    // the client has closed its half
  bool full_ = false;     // the session waits for its replies to leave
  bool closed_ = false;

  // A line or a header has begun to come. heads_: how many had come as a whole before it.
  bool within_head_ = false;
  std::uint64_t heads_ = 0;
  bool is_spared_ = false;  // shows_life() has spared the client once for this line or header

  // While writing_: bytes in the kernel's send queue when shows_life() last looked.
  int send_queue_bytes_ = 0;

  // While it lingers.
  std::optional<boost::asio::steady_timer> linger_timer_;
  int linger_polls_left_ = 0;
  bool received_since_poll_ = false;
};

}  // namespace carillon::server
