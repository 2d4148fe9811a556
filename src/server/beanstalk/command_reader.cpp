// Lines and bodies out of bytes (command_reader.h).
#include "server/beanstalk/command_reader.h"

#include <algorithm>

#include "carillon/queue/store.h"
#include "carillon/require.h"
#include "server/service.h"

namespace carillon::server::beanstalk {

void CommandReader::expect_body(std::uint32_t bytes) {
  CARILLON_REQUIRE(state_ == State::kLine, bytes);
  left_ = bytes;
  state_ = State::kBody;
}

void CommandReader::expect_pieces(std::uint32_t bytes) {
  CARILLON_REQUIRE(state_ == State::kLine, bytes);
  left_ = bytes;
  state_ = State::kPieces;
}

void CommandReader::discard(std::uint64_t bytes) {
  left_ = bytes + kEnd.size();
  ends_well_ = true;
  state_ = State::kDiscard;
}

void CommandReader::forget_body() {
  body_.clear();
  if (body_.capacity() > kOwnBody && state_ != State::kPieces) body_.shrink_to_fit();
}

CommandReader::Read CommandReader::read(std::string_view bytes) {
  switch (state_) {
    case State::kLine:
      return read_line(bytes);
    case State::kLongLine:
      return skip_long_line(bytes);
    case State::kBody: {
      const Read read = collect(bytes, static_cast<std::size_t>(left_) + kEnd.size(), Event::kBody);
      if (read.event == Event::kBody) state_ = State::kLine;
      return read;
    }
    case State::kPieces:
      return read_piece(bytes);
    case State::kDiscard:
      return discard_some(bytes);
  }
  return {};
}

CommandReader::Read CommandReader::read_line(std::string_view bytes) {
  std::size_t longest = kMaxLine;
  std::size_t length = bytes.substr(0, longest).find(kEnd);
  if (length == std::string_view::npos && bytes.size() >= longest) {
    longest = longest_line(bytes);
    length = bytes.substr(0, longest).find(kEnd);
  }
  if (detector_.is_request(bytes.substr(0, std::min(length, longest - 1))))
    return {.event = Event::kRequest, .used = bytes.size()};
  if (length != std::string_view::npos)
    return {.event = Event::kLine, .used = length + kEnd.size(), .text = bytes.substr(0, length)};
  if (bytes.size() < longest) return {};
  const Command refused = parse_long_line(bytes.substr(0, longest - 1));
  refused_.verb = refused.verb;
  refused_.body = refused.body;
  refused_.bytes = refused.bytes;
  state_ = State::kLongLine;
  return {.used = longest - 1};  // the last byte is kept: it may be the CR of the line's end
}

CommandReader::Read CommandReader::skip_long_line(std::string_view bytes) {
  const std::size_t end = bytes.find(kEnd);
  if (detector_.goes_on_as_request(bytes.substr(0, end)))
    return {.event = Event::kRequest, .used = bytes.size()};
  if (end == std::string_view::npos)
    return {.used = bytes.size() - (bytes.ends_with('\r') ? 1 : 0)};
  state_ = State::kLine;
  return {.event = Event::kLongLine, .used = end + kEnd.size()};
}

// Bytes that come at once are not copied.
CommandReader::Read CommandReader::collect(std::string_view bytes, std::size_t size, Event event) {
  const std::size_t taken = std::min(size - body_.size(), bytes.size());
  if (taken == size) return {.event = event, .used = taken, .text = bytes.substr(0, size)};
  body_.reserve(size);  // otherwise the string would grow beyond the bytes that it may have
  body_.append(bytes.substr(0, taken));
  if (body_.size() < size) return {.used = taken};
  return {.event = event, .used = taken, .text = body_};
}

CommandReader::Read CommandReader::read_piece(std::string_view bytes) {
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, queue::kBodyPiece));
  const bool is_end = size == 0;
  const Read read =
      is_end ? collect(bytes, kEnd.size(), Event::kLastEnd) : collect(bytes, size, Event::kPiece);
  if (read.event == Event::kNothing) return read;
  left_ -= size;
  if (is_end) state_ = State::kLine;
  return read;
}

CommandReader::Read CommandReader::discard_some(std::string_view bytes) {
  const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
  left_ -= taken;
  if (left_ < kEnd.size()) {
    const std::string_view end = kEnd.substr(0, kEnd.size() - static_cast<std::size_t>(left_));
    const std::string_view part = end.substr(end.size() - std::min(end.size(), taken));
    ends_well_ = ends_well_ && bytes.substr(0, taken).ends_with(part);
  }
  if (left_ > 0) return {.used = taken};
  state_ = State::kLine;
  return {.event = Event::kDiscarded, .used = taken};
}

// --- ProtocolDetector: how an HTTP request line is recognized.

namespace {

constexpr std::string_view kVersion = "HTTP/";

}  // namespace

bool ProtocolDetector::Words::read(std::string_view bytes) {
  for (const char byte : bytes) {
    if (matched_ == kVersion.size()) return true;
    read(byte);
  }
  return matched_ == kVersion.size();
}

void ProtocolDetector::Words::read(char byte) {
  if (byte == ' ') {
    in_word_ = false;
    matched_ = 0;
  } else if (!in_word_) {
    in_word_ = true;
    begun_ = std::min(begun_ + 1, 3u);
    matched_ = begun_ == 3 && byte == kVersion.front() ? 1 : 0;
  } else if (matched_ > 0) {
    matched_ = byte == kVersion[matched_] ? matched_ + 1 : 0;
  }
}

}  // namespace carillon::server::beanstalk
