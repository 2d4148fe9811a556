// Session: what all commands have in common, and the replies (session.h). session_input.cpp turns
// bytes into commands; session_verbs.cpp says which function carries out each of them.
#include "server/beanstalk/session.h"

namespace carillon::server::beanstalk {
Session::Session(Service& service)
    : Protocol(service.barrier()),
      service_(service),
      client_(service.engine().connect()),
      caller_(service.tokens()),
      answers_(service, replies_),
      memory_(service.memory()) {
  ++service_.counters().connections;
  ++service_.counters().total_connections;
}

Session::~Session() {
  close();
}

void Session::close() {
  if (state_ == State::kClosed) return;
  if (state_ == State::kKicking) answer_kick();
  if (state_ == State::kEachJob) answer_each();
  if (reader_.awaits_pieces()) give_up_large_body();
  state_ = State::kClosed;
  reply_ = {};
  Counters& counters = service_.counters();
  --counters.connections;
  counters.producers -= producer_ ? 1u : 0u;
  counters.workers -= worker_ ? 1u : 0u;
  service_.bodies().forget(client_);
  service_.engine().disconnect(client_, service_.now());
}

Session::Wants Session::wants() const {
  if (state_ == State::kClosed) return Wants::kNothing;
  if (state_ == State::kWaiting || state_ == State::kReading) return Wants::kDelivery;
  if (service_.are_too_many_unsent(replies_.bytes())) return Wants::kRoom;
  if (no_room_) return Wants::kStore;
  return turn_over_ ? Wants::kTurn : Wants::kInput;
}

bool Session::mid_command() const {
  return state_ == State::kInput && !reader_.awaits_line();
}

void Session::count_memory() {
  const bool has_body = awaits_body() || state_ == State::kReading || state_ == State::kSending ||
                        state_ == State::kGathering;
  if (!has_body) held_ = 0;
  const std::size_t replies = replies_.memory();
  memory_.set(held_ + (replies > kOwnReplies ? replies - kOwnReplies : 0));
}

// Returns false if memory is short for this many bytes of a body, or of its piece. Up to `own`
// bytes it never is.
bool Session::may_hold(std::size_t bytes, std::size_t own) {
  if (bytes <= own) return true;
  count_memory();
  if (bytes > service_.most_for_one()) return false;
  held_ = bytes;
  memory_.set(memory_.bytes() + bytes);
  return true;
}

bool Session::is_at_work() const {
  return state_ != State::kClosed && service_.engine().holds_jobs(client_);
}

void Session::end_of_input() {
  input_ended_ = true;
  if (state_ == State::kWaiting) service_.engine().stop_waiting(client_);
}

// --- Commands: each whole line comes to carry_out().

// A body that is neither taken nor discarded would be read as commands, and the client need not be
// its author. So the connection ends then. Only the body of a malformed put is read as commands, as
// in beanstalkd, because its clients rely on it.
void Session::carry_out(const Command& command) {
  verb_ = command.verb;
  if (command.form == Form::kBad) {
    replies_.add(0, kBadFormat);
  } else {
    carry_out_well_formed(command);
  }
  const bool is_read_as_commands = command.verb == Verb::kPut && command.form != Form::kGood;
  const bool has_body = command.body != Command::Body::kNone;
  const bool reads_on = state_ == State::kInput && reader_.awaits_line();
  if (has_body && reads_on && !is_read_as_commands) close();
}

void Session::carry_out_well_formed(const Command& command) {
  ++service_.counters().of(command.verb);
  answers_.or_failure([&] {
    // Only good forms need a right: others are answered with an error, and change nothing.
    const bool is_asked_for = service_.tokens() != nullptr && command.form == Form::kGood;
    if (is_asked_for && is_forbidden(command)) return;
    if (service_.refuses_commands() && command.verb != Verb::kQuit) return refuse_for_now(command);
    dispatch(command);
  });
}

// The log of the server is unavailable.
void Session::refuse_for_now(const Command& command) {
  if (command.body == Command::Body::kCounted)
    return discard_and_answer(command.bytes, failure_reply());
  replies_.add_at_once(failure_reply());
}

// --- Commands that need more than one call of the engine.

void Session::release(const Command& c) {
  const queue::Now now = service_.now();
  if (!service_.engine().fits(now, c.delay)) return replies_.add(0, kOutOfRange);
  answers_.done(service_.engine().release(client_, now, c.id, c.priority, c.delay), "RELEASED\r\n");
}

bool Session::in_long_command() const {
  return state_ == State::kKicking || state_ == State::kPeeking || state_ == State::kListing ||
         state_ == State::kSending || state_ == State::kGathering || state_ == State::kEachJob;
}

void Session::go_on() {
  switch (state_) {
    case State::kKicking:
      return go_on_kicking();
    case State::kPeeking:
      return go_on_peeking();
    case State::kListing:
      return go_on_listing();
    case State::kGathering:
      return go_on_gathering();
    case State::kEachJob:
      return go_on_with_each();
    default:
      return go_on_sending();
  }
}

void Session::go_on_peeking() {
  answers_.or_failure([&] {
    state_ = State::kInput;
    service_.engine().peek_delayed(client_, service_.now(), peek_);
    if (peek_.done) return find(peek_.found);
    state_ = State::kPeeking;
  });
}

void Session::became_producer() {
  if (!producer_) ++service_.counters().producers;
  producer_ = true;
}

void Session::became_worker() {
  if (!worker_) ++service_.counters().workers;
  worker_ = true;
}

}  // namespace carillon::server::beanstalk
