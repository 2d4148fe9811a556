// Reads replies as a client does.

#include "simulator/commands.h"

#include <algorithm>
#include <charconv>

#include "carillon/queue/store.h"

namespace carillon::simulator {

namespace {

constexpr std::string_view kEnd = "\r\n";

std::uint64_t number_in(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string_view word_of(std::string_view line, std::size_t which) {
  for (; which > 0; --which) {
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) return {};
    line.remove_prefix(space + 1);
  }
  return line.substr(0, line.find(' '));
}

// The line at the front, or nothing if its end is not there.
std::optional<Reply> reply_at(std::string_view bytes) {
  const std::size_t length = bytes.find(kEnd);
  if (length == std::string_view::npos) return std::nullopt;
  Reply reply;
  reply.line = bytes.substr(0, length);
  reply.word = word_of(reply.line, 0);
  reply.number = number_in(word_of(reply.line, 1));
  return reply;
}

bool is_job(const Reply& reply) {
  return reply.word == "RESERVED" || reply.word == "FOUND";
}

}  // namespace

std::string shown(const Command& command) {
  constexpr std::string_view kVersion = " HTTP/1.1";
  const std::string line = command.bytes.substr(0, command.bytes.find('\r'));
  if (!command.by_http) return line;
  return line.substr(0, line.size() - kVersion.size()) + " " +
         command.bytes.substr(command.bytes.find("\r\n\r\n") + 4);
}

std::optional<Reply> take_reply(std::string_view& bytes) {
  auto reply = reply_at(bytes);
  if (!reply) return reply;
  std::size_t whole = reply->line.size() + kEnd.size();
  const bool has_number = is_job(*reply);
  if (has_number || reply->word == "OK") {
    const std::uint64_t size = number_in(word_of(reply->line, has_number ? 2 : 1));
    reply->text = bytes.substr(whole, size);
    whole += size + kEnd.size();
    if (bytes.size() < whole || bytes.substr(whole - kEnd.size(), kEnd.size()) != kEnd)
      return std::nullopt;
  }
  if (reply->word == "JOBS" || reply->word == "ALREADY") {
    std::string_view rest = bytes.substr(whole);
    for (std::uint64_t n = 0; n < reply->number; ++n) {
      if (!take_reply(rest)) return std::nullopt;
    }
    reply->text = bytes.substr(whole, bytes.size() - whole - rest.size());
    whole += reply->text.size();
  }
  bytes.remove_prefix(whole);
  return reply;
}

std::vector<Reply> replies_in(std::string_view text) {
  std::vector<Reply> replies;
  while (auto reply = take_reply(text)) replies.push_back(*reply);
  return replies;
}

std::optional<LargeHead> take_large_head(std::string_view& bytes) {
  auto reply = reply_at(bytes);
  const bool alone = reply && reply->line == "JOBS 1";
  std::size_t whole = alone ? reply->line.size() + kEnd.size() : 0;
  if (alone) reply = reply_at(bytes.substr(whole));
  if (!reply || !is_job(*reply)) return std::nullopt;
  reply->alone = alone;
  const std::uint64_t size = number_in(word_of(reply->line, 2));
  if (size <= queue::kBodyPiece) return std::nullopt;
  whole += reply->line.size() + kEnd.size();
  bytes.remove_prefix(whole);
  return LargeHead{*reply, size};
}

std::optional<std::uint64_t> field_of(std::string_view text, std::string_view name) {
  const std::string start = "\n" + std::string(name) + ": ";
  const std::size_t at = text.find(start);
  if (at == std::string_view::npos) return std::nullopt;
  return number_in(text.substr(at + start.size()));
}

}  // namespace carillon::simulator
