// Reads replies as a client does.

#include "simulator/commands.h"

#include <charconv>

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

}  // namespace

std::optional<Reply> take_reply(std::string_view& bytes) {
  const std::size_t length = bytes.find(kEnd);
  if (length == std::string_view::npos) return std::nullopt;
  Reply reply;
  reply.line = bytes.substr(0, length);
  reply.word = word_of(reply.line, 0);
  reply.number = number_in(word_of(reply.line, 1));
  std::size_t whole = length + kEnd.size();
  const bool is_job = reply.word == "RESERVED" || reply.word == "FOUND";
  if (is_job || reply.word == "OK") {
    const std::uint64_t size = number_in(word_of(reply.line, is_job ? 2 : 1));
    reply.text = bytes.substr(whole, size);
    whole += size + kEnd.size();
    if (bytes.size() < whole || bytes.substr(whole - kEnd.size(), kEnd.size()) != kEnd)
      return std::nullopt;
  }
  bytes.remove_prefix(whole);
  return reply;
}

std::optional<std::uint64_t> field_of(std::string_view text, std::string_view name) {
  const std::string start = "\n" + std::string(name) + ": ";
  const std::size_t at = text.find(start);
  if (at == std::string_view::npos) return std::nullopt;
  return number_in(text.substr(at + start.size()));
}

}  // namespace carillon::simulator
