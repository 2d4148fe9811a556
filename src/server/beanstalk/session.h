// One beanstalk connection as a state machine without a socket: bytes in, commands to the engine,
// replies out.
//
//   Session session(service);
//   std::size_t used = session.receive("put 0 0 60 5\r\nhello\r\nres");   // 21: the rest is no whole command yet
//   socket.send(session.replies().sendable(durable));                     // "INSERTED 1\r\n", once it is durable
//
// Commands are carried out in the order in which they came and answered in that order. While a
// reserve waits nothing is read: `receive` uses no byte until `deliver` has brought the end of the
// waiting.
//
// Not thread safe; all sessions of a service belong to its thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/beanstalk/command.h"
#include "server/beanstalk/reply_queue.h"
#include "server/beanstalk/service.h"

namespace carillon::server::beanstalk {

class Session {
 public:
  // What has to happen before `receive` uses another byte.
  enum class Wants {
    kInput,     // more bytes: those that were left over are no whole command
    kTurn,      // nothing, but others should get their turn first
    kRoom,      // some of the replies must leave: there are more than options.max_unsent
    kDelivery,  // a reserve waits
    kNothing,   // it is closed
  };

  // Connects to the engine, and disconnects in the end.
  explicit Session(Service& service);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Carries out what is complete in `bytes` and returns how many were used. The others must come
  // again, with more behind them.
  std::size_t receive(std::string_view bytes);

  // The client has closed its half of the connection: a reserve that waits ends with TIMED_OUT, and
  // so will every later one.
  void end_of_input();

  // The end of the waiting, from Engine::take_deliveries.
  void deliver(const queue::Delivery& delivery);

  // Disconnects from the engine: the jobs reserved are ready again. The replies may still be sent.
  void close();

  Wants wants() const;
  bool mid_command()
      const;  // part of it is used: the rest of a body is next, or of a line that is too long
  bool holds_jobs() const;  // that it has reserved
  queue::ClientId client() const { return client_; }
  ReplyQueue& replies() { return replies_; }
  const ReplyQueue& replies() const { return replies_; }

 private:
  enum class State : std::uint8_t {
    kLine,      // a command line is next
    kLongLine,  // one that was too long is being discarded, up to its end
    kBody,      // the body of put_ is next
    kSwallow,   // the body of a put that was refused is being discarded
    kWaiting,
    kClosed,
  };

  std::size_t take_line(std::string_view bytes);
  std::size_t skip_long_line(std::string_view bytes);
  std::size_t take_body(std::string_view bytes);
  std::size_t swallow(std::string_view bytes);

  void carry_out(const Command& command);
  void dispatch(const Command& command);
  void begin_put(const Command& command);
  void finish_put(std::string_view body_and_end);
  void reserve(const Command& command);
  void reserve_job(queue::JobId id);
  void release(const Command& command);
  void kick(std::uint32_t bound);
  void kick_job(queue::JobId id);
  void pause(const Command& command);
  void stats_job(queue::JobId id);
  void stats_tube(std::string_view tube);
  void ignore(std::string_view tube);

  void answer(const queue::Delivery& delivery);
  void answer(const queue::Outcome& outcome, std::string_view done);
  void answer_found(const std::optional<queue::JobView>& job);
  void answer_yaml(queue::Sequence durable_at, std::string_view yaml);
  void answer_job(std::string_view word, const queue::JobView& job);
  void answer_not_found();
  void answer_store_failure(std::string_view error);

  void became_producer();
  void became_worker();

  Service& service_;
  queue::ClientId client_;
  ReplyQueue replies_;
  State state_ = State::kLine;
  bool input_ended_ = false;
  bool producer_ = false;
  bool worker_ = false;
  bool turn_over_ = false;

  Command put_;             // kBody: what is to be put
  std::string body_;        // kBody: what came of the body and its CR LF in earlier calls
  std::uint64_t left_ = 0;  // kSwallow: bytes still to be discarded
};

}  // namespace carillon::server::beanstalk
