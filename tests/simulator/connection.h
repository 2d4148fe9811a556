// A client and its connection: what it has sent and the server has not used yet, and what of the
// replies it knows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/beanstalk/session.h"
#include "server/http/session.h"
#include "server/net/fair_queue.h"
#include "simulator/commands.h"
#include "simulator/large_reply.h"
#include "simulator/manners.h"
#include "simulator/model.h"
#include "simulator/talker.h"

namespace carillon::simulator {

class Connection final : public server::FairQueue::Member {
 public:
  Connection(ClientNumber number, const Manners& manners, server::Service& service)
      : number_(number),
        manners_(manners),
        talker_(manners.role, service.options().max_job_size),
        session_(session_for(manners.role, service)) {}

  ClientNumber number() const { return number_; }
  const Manners& manners() const { return manners_; }
  bool speaks_http() const { return manners_.role == Role::kOperator; }
  server::Protocol& session() { return *session_; }
  const server::Protocol& session() const { return *session_; }

  // --- Client to server.

  void send(Command command) {
    sent_bytes_ += command.bytes.size();
    stream_ += command.bytes;
    commands_.push_back({sent_bytes_, std::move(command)});
  }
  const Talker& talker() const { return talker_; }
  // Commands that are not carried out yet.
  std::size_t unanswered() const { return commands_.size(); }
  // Some of what is on the way arrives. `busy_ns`: how long the server has worked so far.
  void arrive(std::size_t bytes, std::uint64_t busy_ns) {
    bytes = std::min(bytes, stream_.size() - arrived_);
    arrived_ += bytes;
    if (bytes > 0) arrived_ns_ = busy_ns;
  }
  void goes_on(std::uint64_t busy_ns) { arrived_ns_ = busy_ns; }
  // How long the server had worked when the last bytes arrived, or when it could go on with them.
  std::uint64_t arrived_ns() const { return arrived_ns_; }
  // Its put waits for the store. Returns how often that has no room since it began to wait.
  int asks_for_room(bool has_room, std::uint64_t busy_ns) {
    if (has_room) arrived_ns_ = busy_ns;
    return asked_for_room_ = has_room ? 0 : asked_for_room_ + 1;
  }
  // What has arrived and is not used.
  std::string_view input() const {
    return std::string_view(stream_).substr(begin_, arrived_ - begin_);
  }
  // How many bytes of the input belong to the command that is being read.
  std::size_t rest_of_command() const {
    return commands_.empty() ? input().size()
                             : std::min<std::size_t>(input().size(), commands_.front().end - used_);
  }
  void use(std::size_t bytes) {
    used_ += bytes;
    begin_ += bytes;
    if (begin_ < stream_.size() / 2) return;
    stream_.erase(0, begin_);
    arrived_ -= std::exchange(begin_, 0);
  }
  // Returns true if the first command is a put of a large body that has not arrived as a whole.
  bool sends_large_body() const {
    return !commands_.empty() && commands_.front().end - used_ > input().size() &&
           commands_.front().command.body.size() > queue::kBodyPiece;
  }
  // Returns true if all bytes of the first command are used; then take_command() removes it.
  bool has_used_command() const { return !commands_.empty() && commands_.front().end <= used_; }
  const Command& first_command() const { return commands_.front().command; }
  Command take_command() {
    Command command = std::move(commands_.front().command);
    commands_.pop_front();
    return command;
  }
  // Nothing more is sent; what is on the way is lost.
  void end_input() {
    ended_ = true;
    stream_.resize(arrived_);
  }
  bool ended() const { return ended_; }

  // --- Server to client.

  bool has_new_replies() const { return left_ + session_->replies().bytes() != seen_; }
  // Replies that were made since the last call. They are not sent yet, and perhaps may not be.
  std::string new_replies() {
    if (!has_new_replies()) return std::exchange(begun_, {});
    const server::ReplyQueue& replies = session_->replies();
    const std::uint64_t made = left_ + replies.bytes();
    server::ReplyQueue copy = replies;
    std::string bytes(copy.sendable(UINT64_MAX));
    bytes.erase(0, bytes.size() - static_cast<std::size_t>(made - seen_));
    seen_ = made;
    return std::exchange(begun_, {}) + bytes;
  }
  // The replies end with one that is not complete: new_replies() returns these bytes once more.
  void keep(std::string_view begun) { begun_ = begun; }

  // The reply with a large body that is being made.
  LargeReply& large_reply() { return large_reply_; }
  const LargeReply& large_reply() const { return large_reply_; }

  // A reply that ends with the bytes seen so far; when it has left, the client knows of the append.
  struct Note {
    std::uint64_t end = 0;
    std::uint64_t append = 0;
    queue::JobId given = 0;  // a new id
  };
  void note(std::uint64_t back, std::uint64_t append, queue::JobId given) {
    notes_.push_back({seen_ - back, append, given});
  }
  // Bytes have left. Calls `know` for each reply that has left as a whole.
  template <typename Know>
  void leave(std::size_t bytes, const Know& know) {
    session_->replies().sent(bytes);
    left_ += bytes;
    while (!notes_.empty() && notes_.front().end <= left_) {
      know(notes_.front());
      notes_.pop_front();
    }
  }

 private:
  // Operators speak HTTP, and the others the line protocol.
  static std::unique_ptr<server::Protocol> session_for(Role role, server::Service& service) {
    static const std::vector<std::string> no_names;
    if (role == Role::kOperator) return std::make_unique<server::http::Session>(service, no_names);
    return std::make_unique<server::beanstalk::Session>(service);
  }

  struct Sent {
    std::uint64_t end = 0;  // position in the stream of all bytes sent
    Command command;
  };

  const ClientNumber number_;
  const Manners manners_;
  const Talker talker_;
  const std::unique_ptr<server::Protocol> session_;
  std::deque<Sent> commands_;
  std::string stream_;  // sent, from begin_ on not used, up to arrived_ there
  std::size_t begin_ = 0;
  std::size_t arrived_ = 0;
  std::uint64_t sent_bytes_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t arrived_ns_ = 0;
  int asked_for_room_ = 0;
  bool ended_ = false;
  std::deque<Note> notes_;
  LargeReply large_reply_;
  std::string begun_;       // the first bytes of a reply of which more will come
  std::uint64_t seen_ = 0;  // bytes of replies that new_replies() has returned
  std::uint64_t left_ = 0;  // bytes of replies that have left
};

}  // namespace carillon::simulator
