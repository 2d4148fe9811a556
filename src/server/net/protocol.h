// What a connection needs of the protocol that its client speaks. Each protocol has a session: the
// client as a state machine without a socket. Bytes go in, commands to the engine, replies come
// out. server/beanstalk/session.h is one.
//
// The connection passes the bytes that it reads to `receive`, and asks wants() what must happen
// next. What the engine, the store or a reader of bodies has for the client comes by `deliver`,
// `body_read`, `checkpoint_made` and `tried`. Replies stand in replies() until they are durable and
// sent.
//
// Time. `receive` stops at a moment that its caller gives, and goes on in the next call. So no
// client stops the loop for long.
//
// Thread safety: none; all sessions of a service belong to its thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "carillon/queue/engine.h"
#include "server/net/bodies.h"
#include "server/net/checkpoint_lease.h"
#include "server/net/reply_queue.h"

namespace carillon::server {

namespace push {
struct PostResult;
}

// Why a client is rejected: it does not speak the protocol of its port, or its token is wrong.
enum class RejectReason : std::uint8_t {
  kNone,
  kHttp,
  kUnknownCommands,
  kWrongToken,
  kTls,        // TLS, on a port without TLS
  kPlainText,  // plain text, on a port with TLS
  kNoTls,      // its handshake failed
};
inline constexpr std::size_t kRejectReasons = 7;

class Protocol {
 public:
  // What must happen before `receive` uses another byte.
  enum class Wants {
    kInput,     // more bytes must come: those that were left over are not a whole command
    kTurn,      // other connections should get their turn
    kRoom,      // replies must leave: see Service::are_too_many_unsent()
    kStore,     // Service::store_has_room() must be true: the next step appends
    kDelivery,  // `deliver`, `body_read`, `checkpoint_made` or `tried` must be called
    kNothing,   // the session is closed, and uses no more
  };

  explicit Protocol(Barrier* barrier) : replies_(barrier) {}
  Protocol(const Protocol&) = delete;
  Protocol& operator=(const Protocol&) = delete;
  virtual ~Protocol() = default;

  // The engine's client for which the session works. It never changes.
  virtual queue::ClientId client() const = 0;

  // Carries out the whole commands in `bytes`, and goes on with a long one. Returns how many bytes
  // were used; the others must be passed again, followed by later ones. Stops after the first step
  // that ends at `until_ns` or later, by the monotonic clock; the session wants kTurn then. A step
  // is one command, or a bounded part of a long one.
  virtual std::size_t receive(std::string_view bytes, std::uint64_t until_ns) = 0;
  std::size_t receive(std::string_view bytes) { return receive(bytes, UINT64_MAX); }

  // Reports that the client has closed its half of the connection. Ends the wait for a job, and
  // every later wait.
  virtual void end_of_input() = 0;

  // Ends the wait for a job with what Engine::take_deliveries has returned for this client.
  virtual void deliver(const queue::Delivery& delivery) = 0;
  // Ends the wait for a body with the result of Service::bodies() for this client.
  virtual void body_read(const Body& body) = 0;
  // Ends the wait for a checkpoint with the result of CheckpointLease::poll() for this client.
  virtual void checkpoint_made(const CheckpointResult&) {}
  // Ends the wait for the result of a trial of an endpoint (push::Pusher::try_out).
  virtual void tried(const push::PostResult&) {}

  // Disconnects the client from the engine. The replies may still be sent.
  virtual void close() = 0;

  virtual Wants wants() const = 0;
  // Returns true if part of a command was used, and the rest of it is next.
  virtual bool mid_command() const = 0;
  // Returns true if a command line, or the header of a request, or the rest of one, comes next.
  virtual bool awaits_head() const = 0;
  // How many lines or headers have come as a whole.
  std::uint64_t heads() const { return heads_; }
  // Returns true if the client has reserved jobs, or a checkpoint that it copies.
  virtual bool is_at_work() const = 0;
  // Returns true if its last reply is endless: only the end of the connection ends it.
  virtual bool has_endless_reply() const { return false; }
  // Returns true if its client has read an endless reply too slowly, and has missed a part.
  virtual bool has_fallen_behind() const { return false; }

  // Returns false if the server has tokens, and the client has shown no token: over HTTP, in its
  // last request.
  virtual bool is_known() const = 0;
  // Returns true if some requests need no token, such as /healthz over HTTP: then answers are signs
  // of life.
  virtual bool answers_anybody() const { return false; }
  // Checks the client's token once more, after the tokens were reloaded. Returns false if the token
  // is gone: the caller must close the session.
  virtual bool may_go_on() = 0;

  // Counts anew how much of the memory of all connections the session has. Call it when replies
  // were added or have left.
  virtual void count_memory() = 0;
  // Gives back all of that memory. From now on both may outlive the service.
  virtual void forget_memory() = 0;

  // The answer to a command whose changes did not become durable, because the store has failed.
  virtual std::string_view failure_reply() const = 0;

  // The answer, in plain text, to a client that does not speak TLS on a port with TLS.
  virtual std::string_view plain_text_reply() const = 0;

  // Why the session has closed itself, if the client does not speak this protocol. Only the first
  // call after that returns the reason; the others return kNone.
  RejectReason take_rejection() { return std::exchange(rejection_, RejectReason::kNone); }

  ReplyQueue& replies() { return replies_; }
  const ReplyQueue& replies() const { return replies_; }

 protected:
  ReplyQueue replies_;
  std::uint64_t heads_ = 0;
  RejectReason rejection_ = RejectReason::kNone;
};

}  // namespace carillon::server
