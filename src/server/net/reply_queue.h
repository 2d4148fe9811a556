// The replies of one connection, in order. Each is held back until the change that it reports is
// durable. The session adds replies, and the connection sends them.
//
//   replies.add(sequence, "INSERTED ", id, "\r\n");      // now
//   ...                                                  // a sync is under way
//   socket.send(replies.sendable(store.sync()));         // now it may leave
//
// Strictly first in, first out: a reply that waits for no change still waits for the replies before
// it. If there is a barrier, each reply waits for it, unless it leaves at once.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "carillon/queue/store.h"
#include "carillon/require.h"
#include "server/net/barrier.h"

namespace carillon::server {

class ReplyQueue {
 public:
  // `barrier` must outlive the queue. Null: the log is not shared.
  explicit ReplyQueue(Barrier* barrier = nullptr) : barrier_(barrier) {}

  // Appends one reply, made of strings and unsigned numbers. It may leave once `durable_at` is
  // durable (0: it waits for no change), and behind the barrier.
  template <class... Parts>
  void add(queue::Sequence durable_at, const Parts&... parts) {
    (append(parts), ...);
    hold(barrier_ == nullptr ? durable_at : barrier_->next(), 1);
  }

  // The same for a reply that describes no job and no tube: it waits only for those before it.
  template <class... Parts>
  void add_at_once(const Parts&... parts) {
    (append(parts), ...);
    hold(0, 1);
  }

  // Goes on with the reply that was added last. Parts of it may have left. The part waits as the
  // reply does, and behind the barrier as of now.
  void add_to_last(std::string_view part) {
    append(part);
    hold(barrier_ == nullptr ? 0 : barrier_->next(), 0);
  }

  // Returns the bytes at the front that may leave, given that all changes up to `durable` are
  // durable. Valid until the next call of any other method. Amortized O(1) for each reply.
  std::string_view sendable(queue::Sequence durable);

  // Removes bytes that were sent. REQUIRES: at most as many as the last sendable() returned.
  void sent(std::size_t bytes);

  // Replaces every reply that is not sendable yet by `instead`.
  void replace_held(std::string_view instead);

  // Forgets everything.
  void clear();

  std::size_t bytes() const { return buffer_.size() - head_; }
  bool empty() const { return bytes() == 0; }
  // Returns how many bytes of memory the replies take.
  std::size_t memory() const { return buffer_.capacity() + held_.size() * sizeof(Held); }
  // Returns true if some reply is not sendable yet.
  bool holds() const { return !held_.empty(); }
  // Returns what must be durable before the first held reply may leave. REQUIRES: holds().
  queue::Sequence waits_for() const {
    CARILLON_REQUIRE(holds());
    return held_.front().durable_at;
  }

 private:
  // Successive replies that wait for the same sequence number. Positions in the stream of replies
  // count all bytes ever appended.
  struct Held {
    queue::Sequence durable_at;
    std::uint64_t end;  // position
    std::size_t replies;
  };

  void append(std::string_view text) { buffer_.append(text); }
  void append(std::unsigned_integral auto number) {
    char digits[20];
    buffer_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  }
  // What was appended waits for this; `replies` of them begin there.
  void hold(queue::Sequence durable_at, std::size_t replies);

  Barrier* barrier_;
  std::string buffer_;  // buffer_[head_, end) was not sent yet
  std::size_t head_ = 0;
  std::uint64_t base_ = 0;  // the position of buffer_[0]
  std::uint64_t free_ = 0;  // the position up to which bytes may leave
  std::deque<Held> held_;   // durable_at strictly rising
};

}  // namespace carillon::server
