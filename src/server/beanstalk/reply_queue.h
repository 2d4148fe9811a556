// The replies of one connection, in order, each held back until the change it tells of is durable.
//
//   replies.add(sequence, "INSERTED ", id, "\r\n");      // now
//   ...                                                  // a sync is under way
//   socket.send(replies.sendable(store.sync()));         // now it may leave
//
// Strictly first in, first out: a reply that needs nothing still waits for those before it.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "carillon/queue/store.h"

namespace carillon::server::beanstalk {

class ReplyQueue {
 public:
  // Appends one reply made of strings and unsigned numbers, which may leave once `durable_at` is
  // durable. 0: nothing to wait for.
  template <class... Parts>
  void add(queue::Sequence durable_at, const Parts&... parts) {
    (append(parts), ...);
    close_reply(durable_at);
  }

  // The bytes at the front that may leave when all up to `durable` is durable. Valid until the next
  // call of anything else. Amortized O(1) for each reply.
  std::string_view sendable(queue::Sequence durable);

  // REQUIRES: at most as many bytes as the last sendable() returned.
  void sent(std::size_t bytes);

  // Puts `instead` in the place of every reply that was not yet sendable.
  void replace_held(std::string_view instead);

  // Forgets everything.
  void clear();

  std::size_t bytes() const { return buffer_.size() - head_; }
  bool empty() const { return bytes() == 0; }
  bool holds() const { return !held_.empty(); }  // some reply was not yet sendable

 private:
  // Successive replies that wait for the same sequence number. `end` counts all bytes ever
  // appended.
  struct Held {
    queue::Sequence durable_at;
    std::uint64_t end;
    std::size_t replies;
  };

  void append(std::string_view text) { buffer_.append(text); }
  void append(std::unsigned_integral auto number) {
    char digits[20];
    buffer_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  }
  void close_reply(queue::Sequence durable_at);

  std::string buffer_;  // from head_ on: what was not sent
  std::size_t head_ = 0;
  std::uint64_t base_ = 0;  // counts the bytes that came before buffer_
  std::uint64_t free_ = 0;  // up to here, in the same count, bytes may leave
  std::deque<Held> held_;   // durable_at strictly rising
};

}  // namespace carillon::server::beanstalk
