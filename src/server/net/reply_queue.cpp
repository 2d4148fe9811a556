// ReplyQueue (reply_queue.h).
#include "server/net/reply_queue.h"

#include "carillon/require.h"

namespace carillon::server {
namespace {

// An empty buffer that grew beyond this gives its memory back.
constexpr std::size_t kKeptCapacity = 8 << 10;

}  // namespace

void ReplyQueue::hold(queue::Sequence durable_at, std::size_t replies) {
  const std::uint64_t end = base_ + buffer_.size();
  if (held_.empty() && durable_at == 0) {
    free_ = end;
  } else if (!held_.empty() && durable_at <= held_.back().durable_at) {
    held_.back().end = end;
    held_.back().replies += replies;
  } else {
    held_.push_back({durable_at, end, replies});
  }
}

std::string_view ReplyQueue::sendable(queue::Sequence durable) {
  while (!held_.empty() && held_.front().durable_at <= durable) {
    free_ = held_.front().end;
    held_.pop_front();
  }
  return std::string_view(buffer_).substr(head_, static_cast<std::size_t>(free_ - base_) - head_);
}

void ReplyQueue::sent(std::size_t bytes) {
  CARILLON_REQUIRE(bytes <= buffer_.size() - head_, bytes, head_, buffer_.size());
  head_ += bytes;
  if (head_ == buffer_.size()) {
    base_ += head_;
    head_ = 0;
    buffer_.clear();
    if (buffer_.capacity() > kKeptCapacity) buffer_.shrink_to_fit();
  } else if (head_ > kKeptCapacity && head_ > buffer_.size() / 2) {
    buffer_.erase(0, head_);
    base_ += head_;
    head_ = 0;
  }
}

void ReplyQueue::replace_held(std::string_view instead) {
  std::size_t replies = 0;
  for (const Held& held : held_) replies += held.replies;
  held_.clear();
  buffer_.resize(static_cast<std::size_t>(free_ - base_));
  for (std::size_t i = 0; i < replies; ++i) buffer_.append(instead);
  free_ = base_ + buffer_.size();
}

void ReplyQueue::clear() {
  base_ += buffer_.size();
  free_ = base_;
  head_ = 0;
  buffer_.clear();
  held_.clear();
}

}  // namespace carillon::server
