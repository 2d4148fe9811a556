// One client of a beanstalk server for the load generator (load.cpp): it sends commands in batches
// and reads their replies without blocking.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace carillon::bench {

// The first line of a server's reply to one command, without its CR LF.
using ReplyLine = std::string_view;

class Connection {
 public:
  // Connects, blocking. Throws std::runtime_error.
  Connection(const std::string& host, std::uint16_t port);
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&&) = delete;
  ~Connection();

  int fd() const { return fd_; }

  // Sends a batch of commands that `replies` replies will answer. REQUIRES: the batch before it was
  // answered in full.
  void send(std::string_view commands, std::size_t replies);

  // Reads and writes as much as is possible now, and calls `on_reply` for each reply that has
  // arrived; bodies are skipped. Returns true once the batch was answered in full. Throws
  // std::runtime_error when the server closes the connection.
  template <class OnReply>
  bool step(OnReply on_reply) {
    transfer();
    while (awaited_ > 0) {
      const ReplyLine line = next_reply();
      if (line.empty()) return false;
      --awaited_;
      on_reply(line);
    }
    return true;
  }

  bool wants_to_write() const { return written_ < output_.size(); }
  std::chrono::steady_clock::time_point sent_at() const { return sent_at_; }

 private:
  void transfer();
  ReplyLine next_reply();  // empty: it has not arrived in full

  int fd_;
  std::string output_;
  std::size_t written_ = 0;
  std::vector<char> input_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t awaited_ = 0;
  std::chrono::steady_clock::time_point sent_at_;
};

}  // namespace carillon::bench
