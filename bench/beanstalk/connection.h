// One client of a server for the load program (load.cpp): it sends commands in batches and reads
// their replies without blocking. The dialect (dialect.h) knows where a reply ends.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dialect.h"

namespace carillon::bench {

class Connection {
 public:
  // Connects, blocking. Throws std::runtime_error. REQUIRES: `dialect` outlives the connection.
  Connection(const std::string& host, std::uint16_t port, const Dialect& dialect);
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&&) = delete;
  ~Connection();

  int fd() const { return fd_; }

  // Sends a batch of commands that `replies` replies will answer. REQUIRES: the batch before it was
  // answered in full.
  void send(std::string_view commands, std::size_t replies);

  // Reads and writes as much as is possible now, and calls `on_reply` for each reply that has
  // arrived, with the whole reply. Returns true once the batch was answered in full. Throws
  // std::runtime_error when the server closes the connection.
  template <class OnReply>
  bool step(OnReply on_reply) {
    transfer();
    while (awaited_ > 0) {
      const std::string_view reply = next_reply();
      if (reply.empty()) return false;
      --awaited_;
      on_reply(reply);
    }
    return true;
  }

  bool wants_to_write() const { return written_ < output_.size(); }
  std::chrono::steady_clock::time_point sent_at() const { return sent_at_; }

 private:
  void transfer();
  std::string_view next_reply();  // empty: it has not arrived in full

  int fd_;
  const Dialect* dialect_;
  std::string output_;
  std::size_t written_ = 0;
  std::vector<char> input_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t awaited_ = 0;
  std::chrono::steady_clock::time_point sent_at_;
};

}  // namespace carillon::bench
