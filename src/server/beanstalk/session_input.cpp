// Session: bytes in, cut into lines and bodies (session.h). What the commands do is in session.cpp.

#include <algorithm>
#include <string_view>

#include "server/beanstalk/session.h"

namespace carillon::server::beanstalk {
namespace {

// The clock is read at least once in this many steps.
constexpr unsigned kStepsPerReading = 8;

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
    const bool appends = state_ == State::kBody || state_ == State::kPieces ||
                         state_ == State::kKicking || state_ == State::kEachJob;
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

std::size_t Session::take(std::string_view bytes) {
  switch (state_) {
    case State::kLine:
      return take_line(bytes);
    case State::kLongLine:
      return skip_long_line(bytes);
    case State::kBody:
      return take_body(bytes);
    case State::kPieces:
      return take_piece(bytes);
    case State::kSwallow:
      return swallow(bytes);
    case State::kWaiting:
    case State::kReading:
    case State::kSending:
    case State::kKicking:
    case State::kPeeking:
    case State::kListing:
    case State::kGathering:
    case State::kEachJob:
    case State::kClosed:
      break;
  }
  return 0;
}

std::size_t Session::take_line(std::string_view bytes) {
  std::size_t longest = kMaxLine;
  std::size_t length = bytes.substr(0, longest).find(kEnd);
  if (length == std::string_view::npos && bytes.size() >= longest) {
    longest = longest_line(bytes);
    length = bytes.substr(0, longest).find(kEnd);
  }
  if (detector_.is_request(bytes.substr(0, std::min(length, longest - 1))))
    return refuse_http(bytes);
  if (length != std::string_view::npos) {
    ++heads_;
    const Command command = parse_command(bytes.substr(0, length));
    if (appends_at_once(command.verb) && !service_.store_has_room()) {
      no_room_ = true;
      return 0;
    }
    carry_out(command);
    if (!detector_.admits(command.verb)) turn_away(RejectReason::kUnknownCommands);
    return length + kEnd.size();
  }
  if (bytes.size() < longest) return 0;
  const Command refused = parse_long_line(bytes.substr(0, longest - 1));
  verb_ = refused.verb;
  after_line_ = refused.body;
  left_ = refused.bytes;
  state_ = State::kLongLine;
  return longest - 1;  // the last byte is kept: it may be the CR of the line's end
}

std::size_t Session::skip_long_line(std::string_view bytes) {
  const std::size_t end = bytes.find(kEnd);
  if (detector_.goes_on_as_request(bytes.substr(0, end))) return refuse_http(bytes);
  if (end == std::string_view::npos) return bytes.size() - (bytes.ends_with('\r') ? 1 : 0);
  ++heads_;
  state_ = State::kLine;
  if (after_line_ == Command::Body::kCounted && verb_ != Verb::kPut) {
    swallow_and_answer(left_, kBadFormat);
  } else {
    replies_.add(0, kBadFormat);
    if (after_line_ != Command::Body::kNone) end_if_lost();
  }
  if (!detector_.admits(Verb::kUnknown)) turn_away(RejectReason::kUnknownCommands);
  return end + kEnd.size();
}

std::size_t Session::swallow(std::string_view bytes) {
  const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
  left_ -= taken;
  if (left_ < kEnd.size()) {
    const std::string_view end = kEnd.substr(0, kEnd.size() - left_);
    const std::string_view part = end.substr(end.size() - std::min(end.size(), taken));
    ends_well_ = ends_well_ && bytes.substr(0, taken).ends_with(part);
  }
  if (left_ > 0) return taken;
  state_ = State::kLine;
  replies_.add(0, reply_);
  body_.clear();  // it may hold the reply
  if (!ends_well_) end_if_lost();
  return taken;
}

// Nobody knows where the next command begins: the next bytes may be a part of a body, and the
// client need not be its author. So the session ends. Only after a put it reads on, as beanstalkd
// does, because its clients rely on it.
void Session::end_if_lost() {
  if (verb_ != Verb::kPut) close();
}

}  // namespace carillon::server::beanstalk
