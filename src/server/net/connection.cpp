// Connection: reading, sending, and closing so that the last replies arrive (connection.h).
#include "server/net/connection.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include "server/text/address.h"

namespace carillon::server {
namespace {

namespace asio = boost::asio;
using Wants = Protocol::Wants;

constexpr std::size_t kFirstBuffer = 4 << 10;
constexpr std::size_t kLargestBuffer = 64 << 10;
constexpr std::size_t kReadAhead = 16 << 10;  // while a reserve waits
// The time between two polls of a lingering connection, and their number: 5 s in all.
constexpr std::chrono::milliseconds kLingerPeriod{20};
constexpr int kLingerPolls = 250;
// The first byte that a client of TLS sends (RFC 8446, section 5.1). No command begins with it.
constexpr char kTlsHandshake = 22;

// Asks the kernel how many bytes of a socket are unread (FIONREAD) or not yet taken by the peer
// (SIOCOUTQ). Returns 0 if the kernel cannot tell.
int queued_bytes(int fd, unsigned long what) {
  int bytes = 0;
  return ::ioctl(fd, what, &bytes) == 0 ? bytes : 0;
}

}  // namespace

Connection::Connection(Socket socket, Service& service, Owner& owner,
                       std::unique_ptr<Protocol> session, std::unique_ptr<TlsStream> tls)
    : service_(service),
      socket_(std::move(socket)),
      owner_(owner),
      session_(std::move(session)),
      tls_(std::move(tls)),
      memory_(service.memory()),
      input_(kFirstBuffer) {
  static_assert(kLeastMemory >= kFirstBuffer + 2 * kOwnReplies + kOwnBody);
  count_memory();
  service.engine().name_client(session_->client(), peer());
}

void Connection::count_memory() {
  if (closed_) return;
  memory_.set(kLeastMemory + input_.size() - kFirstBuffer + (tls_ ? TlsStream::kMemory : 0));
  session_->count_memory();
}

void Connection::start() {
  owner_.read_after_flush(*this);
  owner_.active(*this);
}

void Connection::process(std::uint64_t until_ns) {
  if (closed_ || lingering()) return;
  begin_ += session_->receive(std::string_view(input_.data() + begin_, unread()), until_ns);
  const RejectReason reason = session_->take_rejection();
  if (reason != RejectReason::kNone) owner_.turned_away(*this, reason);
  switch (session_->wants()) {
    case Wants::kInput:
      if (ended_) {
        session_->close();
      } else if (end_ == input_.size()) {
        read();
      } else if (!reading_) {
        owner_.read_after_flush(*this);
      }
      break;
    case Wants::kDelivery:
      await_delivery();
      break;
    case Wants::kTurn:
      owner_.wants_turn(*this);
      break;
    case Wants::kRoom:
      full_ = true;
      break;
    case Wants::kStore:
      owner_.wants_room(*this);
      break;
    case Wants::kNothing:
      break;
  }
  if (!session_->replies().empty()) owner_.has_replies(*this);
  // While writing_ only taken replies are a sign of life. The bytes of a client that has shown no
  // token never are: it could send a byte now and then for ever.
  const bool is_old = goes_on_with_head();
  if (!writing_ && session_->is_known() && !is_old) owner_.active(*this);
  count_memory();
  close_if_done();
}

bool Connection::is_within_head() const {
  return session_->wants() == Wants::kInput && session_->awaits_head() &&
         (unread() > 0 || session_->mid_command());
}

// Returns true if the line or header that comes is the same one as at the last call.
bool Connection::goes_on_with_head() {
  const bool was_within = std::exchange(within_head_, is_within_head());
  const bool is_same = std::exchange(heads_, session_->heads()) == session_->heads();
  const bool goes_on = was_within && within_head_ && is_same;
  if (!goes_on) is_spared_ = false;
  return goes_on;
}

// Reading a little ahead is the cheapest way to notice that the client is gone. If it has sent more
// than that, or the buffer is full, the owner watches the socket instead.
void Connection::await_delivery() {
  if (ended_ || reading_) return;
  if (unread() < kReadAhead) make_room_to_read();
  if (unread() < kReadAhead && end_ < input_.size()) {
    read();
  } else {
    owner_.watch_hang_up(*this, socket_.native_handle());
  }
}

void Connection::read_on() {
  if (closed_) return;
  if (lingering() || session_->wants() == Wants::kInput) read();
  // While it rested, others have taken the memory for its replies.
  if (session_->wants() == Wants::kRoom) full_ = true;
}

void Connection::read() {
  if (reading_) return;
  // While it lingers, input is thrown away without decrypting it.
  if (tls_ && !lingering()) return await_socket(Socket::wait_read);
  make_room_to_read();
  reading_ = true;
  socket_.async_read_some(
      asio::buffer(input_.data() + end_, input_.size() - end_),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t bytes) {
        self->on_read(error, bytes);
      });
}

void Connection::make_room_to_read() {
  const bool was_full = end_ == input_.size();
  std::memmove(input_.data(), input_.data() + begin_, unread());
  end_ = unread();
  begin_ = 0;
  const std::size_t bytes = input_.size();
  const bool memory_is_short = !memory().has(memory().bytes() / 4);
  // The header of an HTTP request must come as a whole. A read of no bytes would end at once, again
  // and again.
  const bool needs_all_of_it = end_ == bytes && session_->wants() == Wants::kInput;
  if (memory_is_short && end_ == 0 && bytes > kFirstBuffer) {
    input_ = std::vector<char>(kFirstBuffer);
  } else if (was_full && bytes < kLargestBuffer && (!memory_is_short || needs_all_of_it)) {
    input_.resize(bytes * 2);
  }
}

void Connection::on_read(const boost::system::error_code& error, std::size_t bytes) {
  reading_ = false;
  if (closed_) return;
  if (lingering()) {
    received_since_poll_ = true;
    return error ? close() : owner_.read_after_flush(*this);
  }
  end_ += bytes;
  if (bytes > 0 && !std::exchange(heard_, true) && !tls_ && input_[begin_] == kTlsHandshake) {
    turn_away(RejectReason::kTls);
    return abort();
  }
  if (error == asio::error::eof) {
    ended_ = true;
    session_->end_of_input();
  } else if (error) {
    return abort();
  }
  owner_.wants_turn(*this);
}

void Connection::deliver(const queue::Delivery& delivery) {
  session_->deliver(delivery);
  owner_.has_replies(*this);
  owner_.wants_turn(*this);
}

void Connection::body_read(const Body& body) {
  session_->body_read(body);
  owner_.has_replies(*this);
  owner_.wants_turn(*this);
}

void Connection::checkpoint_made(const CheckpointResult& result) {
  session_->checkpoint_made(result);
  owner_.has_replies(*this);
  owner_.wants_turn(*this);
}

void Connection::tried(const push::PostResult& result) {
  session_->tried(result);
  owner_.has_replies(*this);
  owner_.wants_turn(*this);
}

bool Connection::flush() {
  std::size_t left = kMostAtOnce;
  bool tried = false;
  bool has_more = false;
  while (!writing_ && !closed_) {
    const std::string_view ready = session_->replies().sendable(owner_.durable());
    has_more = !ready.empty() && left == 0;
    if (ready.empty() || has_more) break;
    tried = true;
    boost::system::error_code error;
    const std::size_t sent = write_some(ready.substr(0, left), error);
    if (error == asio::error::would_block) {
      writing_ = true;
      send_queue_bytes_ = queued_bytes(socket_.native_handle(), SIOCOUTQ);
      socket_.async_wait(Socket::wait_write,
                         [self = shared_from_this()](const boost::system::error_code&) {
                           self->writing_ = false;
                           self->owner_.has_replies(*self);
                         });
    } else if (error) {
      abort();
      return false;
    }
    session_->replies().sent(sent);
    left -= sent;
  }
  if (tried && may_stay()) owner_.active(*this);
  count_memory();
  if (full_ && !closed_ && session_->wants() != Wants::kRoom) {
    full_ = false;
    owner_.wants_turn(*this);
  }
  close_if_done();
  return has_more;
}

void Connection::finish() {
  const bool is_endless = session_->has_endless_reply();
  session_->close();
  if (!is_endless) return close_if_done();
  flush();
  if (!closed_) abort();
}

void Connection::abort() {
  session_->close();
  session_->replies().clear();
  if (!closed_) close();
}

void Connection::give_up() {
  if (!writing_) return finish();
  // Reset the connection. Otherwise the kernel would keep replies that nobody reads for minutes.
  boost::system::error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  abort();
}

Awaits Connection::awaits() const {
  if (closed_ || lingering()) return Awaits::kNothing;
  if (tls_ && !tls_->is_ready()) return Awaits::kRest;
  if (writing_) return Awaits::kReading;
  if (session_->wants() != Wants::kInput) return Awaits::kNothing;
  const bool is_within = unread() > 0 || session_->mid_command();
  if (!is_within && !session_->replies().empty()) return Awaits::kNothing;
  if (!session_->is_known()) return Awaits::kToken;
  if (is_within_head()) return Awaits::kHead;
  return is_within ? Awaits::kRest : Awaits::kCommand;
}

// A client that has shown no token does not stay, whatever the server answers.
bool Connection::may_stay() const {
  return session_->is_known() || session_->answers_anybody();
}

// Finds three signs of life that active() does not report. A client reads slowly: the kernel takes
// many replies at once, so only its send queue shows that some were taken since the last check.
// Input has arrived but was not read yet: the rest of a line or header may be among it, once. Or
// the client holds jobs or a checkpoint, and so is at work.
bool Connection::shows_life() {
  const int fd = socket_.native_handle();
  // A handshake has one time-out for all its bytes.
  if (tls_ && !tls_->is_ready()) return false;
  if (writing_) {
    const int before = std::exchange(send_queue_bytes_, queued_bytes(fd, SIOCOUTQ));
    return send_queue_bytes_ < before && may_stay();
  }
  if (queued_bytes(fd, FIONREAD) > 0)
    return awaits() != Awaits::kHead || !std::exchange(is_spared_, true);
  return awaits() == Awaits::kCommand && session_->is_at_work();
}

std::string Connection::peer() const {
  boost::system::error_code error;
  const auto end = socket_.remote_endpoint(error);
  if (error) return "a client that is gone";
  if (end.protocol().family() == AF_UNIX) return "a Unix socket";
  return to_string(to_address(end.data(), static_cast<socklen_t>(end.size())));
}

void Connection::close_if_done() {
  if (closed_ || lingering() || session_->wants() != Wants::kNothing ||
      !session_->replies().empty())
    return;
  if (replies_may_get_lost()) {
    linger();
  } else {
    close();
  }
}

bool Connection::replies_may_get_lost() {
  if (ended_) return false;  // all input is read, and no more will come
  const int fd = socket_.native_handle();
  return queued_bytes(fd, SIOCOUTQ) > 0 || queued_bytes(fd, FIONREAD) > 0;
}

void Connection::linger() {
  boost::system::error_code ignored;
  if (tls_) tls_->say_goodbye();
  socket_.shutdown(Socket::shutdown_send, ignored);
  linger_timer_.emplace(socket_.get_executor());
  linger_polls_left_ = kLingerPolls;
  begin_ = end_;
  read();
  poll_lingering_later();
}

void Connection::poll_lingering_later() {
  received_since_poll_ = false;
  linger_timer_->expires_after(kLingerPeriod);
  linger_timer_->async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && !self->closed_) self->poll_lingering();
  });
}

void Connection::poll_lingering() {
  const bool needed = received_since_poll_ || queued_bytes(socket_.native_handle(), SIOCOUTQ) > 0;
  if (needed && --linger_polls_left_ > 0) return poll_lingering_later();
  close();
}

void Connection::close() {
  closed_ = true;
  memory_.set(0);
  session_->forget_memory();
  linger_timer_.reset();
  if (tls_) tls_->say_goodbye();
  boost::system::error_code ignored;
  socket_.shutdown(Socket::shutdown_both, ignored);
  socket_.close(ignored);
  owner_.closed(*this);
}

}  // namespace carillon::server
