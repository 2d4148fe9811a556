// One beanstalk client as a state machine without a socket: bytes in, commands to the engine,
// replies out. The connection (server/net/connection.h) feeds it and sends its replies.
//
//   Session session(service);
//   // 21 bytes are used: "res" is not a whole command yet.
//   std::size_t used = session.receive("put 0 0 60 5\r\nhello\r\nres");
//   // "INSERTED 1\r\n", once the job is durable.
//   socket.send(session.replies().sendable(durable));
//
// Commands are carried out and answered in the order in which they came. While a reserve waits,
// `receive` uses no byte; `deliver` ends the wait. It uses no byte, either, while a body is read
// (session_bodies.cpp); `body_read` ends that. While the store has no room, no body of a put is
// taken, and nothing is deleted, released, buried or kicked: a client that is faster than the disk
// waits, and no other client does.
//
// Time. A long command (kick, peek-delayed, list-tubes, the reply with a large body, a batch that
// reserves, releases or deletes) is carried out in steps, so that it can stop in the middle.
//
// The reader (command_reader.h) cuts the bytes into lines and bodies, the session
// carries commands out, and Answers (answers.h) writes the replies. So a put goes: take_line()
// parses the line, dispatch() passes it to begin_put(), which decides whether the body is kept or
// discarded, and take_body() gives the job to the engine and adds the reply.
//
// Tokens. If the server has tokens, the client shows one with `auth` before all others. Each verb
// says what the token must allow: session_verbs.cpp.
//
// Large bodies (more than queue::kBodyPiece bytes) go in pieces both ways. So a large body takes no
// more memory than a piece, and no step takes long: put_piece(), go_on_sending().
//
// Thread safety: none; all sessions of a service belong to its thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/api/caller.h"
#include "server/beanstalk/answers.h"
#include "server/beanstalk/batch.h"
#include "server/beanstalk/command.h"
#include "server/beanstalk/command_reader.h"
#include "server/beanstalk/job_options.h"
#include "server/net/protocol.h"
#include "server/service.h"

namespace carillon::server::beanstalk {

class Session final : public Protocol {
 public:
  // Connects a client to the engine. The destructor calls close().
  explicit Session(Service& service);
  ~Session() override;

  // Protocol
  queue::ClientId client() const override { return client_; }
  using Protocol::receive;
  std::size_t receive(std::string_view bytes, std::uint64_t until_ns) override;
  // A reserve that waits ends with TIMED_OUT, and so will every later one that would have to wait.
  void end_of_input() override;
  void deliver(const queue::Delivery& delivery) override;
  void body_read(const Body& body) override;
  // The client's reserved jobs become ready. A kick that is under way ends, and its reply counts
  // what it has done.
  void close() override;
  Wants wants() const override;
  // Also true while the rest of a body, or of a line that is too long, is next.
  bool mid_command() const override;
  bool awaits_head() const override { return state_ == State::kInput && reader_.awaits_head(); }
  bool is_at_work() const override;
  bool is_known() const override { return caller_.is_known(); }
  bool may_go_on() override;
  void count_memory() override;
  void forget_memory() override { memory_.set(0); }
  std::string_view failure_reply() const override { return "INTERNAL_ERROR\r\n"; }
  std::string_view plain_text_reply() const override {
    return "FORBIDDEN this port speaks TLS (carillon has --tls for it)\r\n";
  }

 private:
  enum class State : std::uint8_t {
    kInput,      // a command line is next, or a body: the reader knows
    kWaiting,    // a reserve waits
    kReading,    // the body for a reply is being read
    kSending,    // a reply has a part of its large body, and more of it is next
    kKicking,    // kick_ is under way
    kPeeking,    // peek_ is under way
    kListing,    // the list of all tubes is being answered
    kGathering,  // gathered_ gets more jobs
    kEachJob,    // each_ is under way
    kClosed,
  };

  bool awaits_body() const { return state_ == State::kInput && reader_.awaits_body(); }
  std::size_t take(std::string_view bytes);
  bool take_line(std::string_view line);
  void refuse_long_line();
  void take_body(std::string_view body_and_end);
  void refuse_http();
  void turn_away(RejectReason reason);

  void carry_out(const Command& command);
  void carry_out_well_formed(const Command& command);
  void end_if_lost();
  bool is_forbidden(const Command& command);
  std::string lacks_tubes(const Command& command, Reach reach);
  std::string lacks_tube_of(queue::JobId id);
  std::string lacks_watched();
  void dispatch(const Command& command);

  // Whether a verb appends to the store in the step that reads its line. If it does, the line waits
  // until the store has room. A put and a kick append in later steps, which wait themselves.
  enum class AppendsAtOnce : std::uint8_t { kNotSaid, kNo, kYes };
  // What the session does for a verb, and what the verb needs of the client's token.
  struct VerbEntry {
    Verb verb;
    void (Session::*carry_out)(const Command& command);
    Rights rights;
    AppendsAtOnce appends_at_once;
  };
  static const std::array<VerbEntry, kVerbs> kEntries;
  static const VerbEntry& entry_of(Verb verb);
  static bool appends_at_once(Verb verb);

  void refuse_for_now(const Command& command);
  // The commands that are one call of the engine (session_verbs.cpp).
  void refuse_unknown(const Command& command);
  void remove(const Command& command);
  void bury(const Command& command);
  void touch(const Command& command);
  void peek(const Command& command);
  void peek_ready(const Command& command);
  void begin_peek_delayed(const Command& command);
  void peek_buried(const Command& command);
  void begin_kick(const Command& command);
  void kick_job(const Command& command);
  void use(const Command& command);
  void watch(const Command& command);
  void ignore(const Command& command);
  void list_used(const Command& command);
  void stats(const Command& command);
  void name_client(const Command& command);
  void quit(const Command& command);

  void show_token(const Command& command);
  void begin_put(const Command& command);
  void begin_put_job(const Command& command);
  void keep_texts();
  void refuse_options(std::uint64_t bytes, std::string_view why);
  void refuse_body(std::uint64_t bytes, std::string_view word, std::string_view why);
  queue::PutOrder put_order() const;
  void answer_put(const queue::PutOutcome& outcome);
  // For cancel-job, patch-job and peek-job: the job that the command names by id or key, or none.
  std::optional<queue::JobId> named_job(const Command& command);
  std::optional<JobOptions> options_of(const Command& command, OptionsOf of);
  void cancel_job(const Command& command);
  void begin_fail(const Command& command);
  void fail_job(std::string_view error);
  void touch_job(const Command& command);
  void peek_job(const Command& command);
  void begin_patch(const Command& command);
  void patch_job(std::optional<std::string_view> body);
  void begin_batch(const Command& command);
  void put_jobs(std::string_view data);
  void begin_each(std::string_view ids);
  void go_on_with_each();
  void answer_each();
  void reserve_jobs(const Command& command);
  void gather(const queue::JobView& job);
  void add_gathered(const Body& body);
  void go_on_gathering();
  void answer_gathered();
  void begin_large_put();
  bool refuse_fast_put();
  void put_piece(std::string_view piece);
  void finish_large_put(std::string_view end);
  void give_up_large_body();
  // Calls `put` with what the command asks for, and answers the client.
  template <class Put>
  void put_job(Put put);
  std::string_view refusal(queue::Now now);
  bool may_hold(std::size_t bytes, std::size_t own);
  // Each returns false if memory is short for the command's body, of which `held` bytes are kept:
  // then the body is discarded, and the client gets an error. The second one is for commands that
  // add to the store.
  bool has_room_for_body(std::uint64_t bytes, std::size_t held);
  bool may_add_body(std::uint64_t bytes, std::size_t held);
  void discard_and_answer(std::uint64_t bytes, std::string_view reply);
  void reserve(const Command& command);
  void reserve_job(const Command& command);
  void release(const Command& command);
  bool in_long_command() const;
  void go_on();
  void go_on_kicking();
  void go_on_peeking();
  void list_tubes(const Command& command);
  void begin_listing();
  void go_on_listing();
  void go_on_choosing();
  void list_watched(const Command& command);
  void answer_kick();
  void pause(const Command& command);
  // Adds an operator's action to the audit.
  void audit(std::string_view action, std::string_view target, std::string outcome);
  void stats_job(const Command& command);
  void stats_tube(const Command& command);

  // The purpose for which a body is read.
  // kReserveAlone: the one job of a reserve-jobs, which is large.
  enum class Asked : std::uint8_t {
    kReserve,
    kReserveAlone,
    kReserveJobs,
    kReserveJob,
    kPeek,
  };
  void fetch(Asked asked, const queue::JobView& job);
  void answer_body(const Body& body);
  void answer_reserved(const Body& body);
  void answer_reserved_job(const Body& body);
  void answer_found(const Body& body);
  void answer_unreadable(const Body& body);
  std::string bury_or_return(const Body& body);

  void answer(const queue::Delivery& delivery);
  void find(const std::optional<queue::JobView>& job);
  void answer_job(std::string_view word, const Body& body);
  void go_on_sending();
  void send_piece(const Body& body);
  void refuse_to_send();
  void became_producer();
  void became_worker();

  Service& service_;
  queue::ClientId client_;
  Caller caller_;
  bool watched_are_allowed_ = false;  // by the token, as lacks_watched() has found out
  CommandReader reader_;
  Answers answers_;
  Verb verb_ = Verb::kUnknown;  // the verb of the command under way
  State state_ = State::kInput;
  bool input_ended_ = false;
  bool producer_ = false;
  bool worker_ = false;
  bool turn_over_ = false;  // `receive` stopped because its time was over
  bool no_room_ = false;    // `receive` stopped because the store has no room

  // The memory that is held for a body that comes in or goes out.
  std::size_t held_ = 0;
  MemoryPool::Share memory_;

  // The command whose body is next, its options, and the text into which they point.
  Command pending_;
  JobOptions options_;
  std::string option_text_;
  queue::LargeBody large_;   // a large body that comes in pieces
  std::string reply_;        // the reply when a body was discarded; kListing: the list so far
  std::uint64_t left_ = 0;   // kListing: names to come
  queue::Kick kick_;         // kKicking
  queue::DelayedPeek peek_;  // kPeeking
  std::unique_ptr<GatheredJobs> gathered_;  // for a reserve-jobs
  std::unique_ptr<EachJob> each_;           // kEachJob
  Asked asked_{};                           // kReading, kSending: what for,
  queue::JobView job_;                      // and the job whose body it is,
  std::uint32_t sent_ = 0;                  // and how much of it the reply has
};

}  // namespace carillon::server::beanstalk
