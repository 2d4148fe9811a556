// Session: bytes in, commands carried out, one step after the other; and how a client is turned
// away (session.h).
#include <string_view>

#include "server/beanstalk/session.h"

namespace carillon::server::beanstalk {
namespace {

// The clock is read at least once in this many steps.
constexpr unsigned kStepsPerReading = 8;

// The whole answer to an HTTP request. A browser shows it to no page of another site, because it
// grants no access; a person who has mistaken the port can read it. Without an answer a browser
// might send the request again.
constexpr std::string_view kNotHttp =
    "HTTP/1.1 400 Bad Request\r\n"
    "Content-Type: text/plain\r\n"
    "Content-Length: 55\r\n"
    "Connection: close\r\n"
    "\r\n"
    "This port speaks the beanstalk protocol, and not HTTP.\n";

}  // namespace

std::size_t Session::receive(std::string_view bytes, std::uint64_t until_ns) {
  turn_over_ = no_room_ = false;
  std::size_t used = 0;
  for (unsigned steps = 0; wants() == Wants::kInput; ++steps) {
    if (!in_long_command() && used == bytes.size()) break;
    // Most commands read the clock. The others are short.
    if (steps % kStepsPerReading == kStepsPerReading - 1) service_.now();
    if (steps > 0 && service_.last_now().mono_ns >= until_ns) {
      turn_over_ = true;
      break;
    }
    const bool appends = awaits_body() || state_ == State::kKicking || state_ == State::kEachJob;
    if (appends && !service_.store_has_room()) {
      no_room_ = true;
      break;
    }
    if (in_long_command()) {
      go_on();
      continue;
    }
    const std::size_t taken = take(bytes.substr(used));
    if (taken == 0) break;
    used += taken;
  }
  return used;
}

// Returns how many bytes were used.
std::size_t Session::take(std::string_view bytes) {
  using Event = CommandReader::Event;
  const CommandReader::Read read = reader_.read(bytes);
  switch (read.event) {
    case Event::kNothing:
      break;
    case Event::kRequest:
      refuse_http();
      break;
    case Event::kLine:
      return take_line(read.text) ? read.used : 0;
    case Event::kLongLine:
      refuse_long_line();
      break;
    case Event::kBody:
      take_body(read.text);
      break;
    case Event::kPiece:
      put_piece(read.text);
      break;
    case Event::kLastEnd:
      finish_large_put(read.text);
      break;
    case Event::kDiscarded:
      if (service_.refuses_commands()) {
        replies_.add_at_once(std::string_view(reply_));
      } else {
        replies_.add(0, std::string_view(reply_));
      }
      reply_.clear();
      if (!reader_.ended_well()) end_if_lost();
      break;
  }
  const bool has_text =
      read.event == Event::kBody || read.event == Event::kPiece || read.event == Event::kLastEnd;
  if (has_text) reader_.forget_body();
  return read.used;
}

// Returns false if the line must wait until the store has room.
bool Session::take_line(std::string_view line) {
  const Command command = parse_command(line);
  if (appends_at_once(command.verb) && !service_.store_has_room()) {
    no_room_ = true;
    return false;
  }
  ++heads_;
  carry_out(command);
  if (!reader_.admits(command.verb)) turn_away(RejectReason::kUnknownCommands);
  return true;
}

void Session::refuse_long_line() {
  ++heads_;
  const Command& refused = reader_.refused();
  verb_ = refused.verb;
  if (refused.body == Command::Body::kCounted && verb_ != Verb::kPut) {
    discard_and_answer(refused.bytes, kBadFormat);
  } else {
    replies_.add(0, kBadFormat);
    if (refused.body != Command::Body::kNone) end_if_lost();
  }
  if (!reader_.admits(Verb::kUnknown)) turn_away(RejectReason::kUnknownCommands);
}

// Nobody knows where the next command begins: the next bytes may be a part of a body, and the
// client need not be its author. So the session ends. Only after a put it reads on, as beanstalkd
// does, because its clients rely on it.
void Session::end_if_lost() {
  if (verb_ != Verb::kPut) close();
}

void Session::refuse_http() {
  replies_.add(0, kNotHttp);
  turn_away(RejectReason::kHttp);
}

void Session::turn_away(RejectReason reason) {
  rejection_ = reason;
  ++service_.counters().closed_foreign;
  close();
}

}  // namespace carillon::server::beanstalk
