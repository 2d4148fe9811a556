#include "cluster/reporter.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <utility>

#include "carillon/queue/store.h"

namespace carillon::cluster {

namespace {

constexpr std::chrono::milliseconds kSharp{250};

}  // namespace

Position not_needed_before(const std::vector<SharedLog::Node>& nodes) {
  std::size_t count = 0;
  Position least = UINT64_MAX;
  for (const SharedLog::Node& node : nodes) {
    if (node.silent_for > kKeptFor) continue;
    ++count;
    least = std::min(least, node.flushed);
  }
  return count < 2 ? 0 : least;
}

Reporter::Reporter(const std::function<std::unique_ptr<SharedLog>()>& connect, SharedLog::Node me,
                   std::function<void(const std::string& line)> say,
                   std::function<void(const SharedLog::Node* owner)> hear)
    : log_(connect()),
      say_(std::move(say)),
      hear_(std::move(hear)),
      me_(std::move(me)),
      thread_([this] { run(); }) {}

Reporter::~Reporter() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Reporter::set(const Progress& progress) {
  const std::lock_guard lock(mutex_);
  progress_ = progress;
  me_.read = progress.read;
  me_.flushed = progress.flushed;
  is_news_ = is_news_ || me_.serves != progress.owns;
  me_.serves = progress.owns;
  if (is_news_) changed_.notify_one();
}

std::optional<std::int64_t> Reporter::skew() const {
  const std::lock_guard lock(mutex_);
  return skew_;
}

unsigned Reporter::before_me() const {
  const std::lock_guard lock(mutex_);
  return before_me_;
}

void Reporter::run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    lock.unlock();
    try {
      report();
      if (std::exchange(is_silent_, false)) say_("this node reports itself again");
    } catch (const std::exception& error) {
      if (!std::exchange(is_silent_, true))
        say_(std::string("this node cannot report itself to the others: ") + error.what());
    }
    lock.lock();
    changed_.wait_for(lock, kEvery, [this] { return ending_ || is_news_; });
    is_news_ = false;
  }
}

void Reporter::report() {
  std::unique_lock lock(mutex_);
  const SharedLog::Node me = me_;
  const Progress progress = progress_;
  lock.unlock();
  const auto began = std::chrono::steady_clock::now();
  const std::int64_t skew = log_->skew();
  // A question that took long says little about the clocks.
  const bool is_sharp = std::chrono::steady_clock::now() - began <= kSharp;
  log_->report(me);
  const std::vector<SharedLog::Node> nodes = log_->nodes();
  const auto before = std::count_if(nodes.begin(), nodes.end(), [&](const SharedLog::Node& node) {
    return node.id < me.id && node.owner != progress.owner && node.silent_for <= kFollows;
  });
  const auto serves = std::find_if(nodes.begin(), nodes.end(), [&](const SharedLog::Node& node) {
    return node.owner == progress.owner && node.serves;
  });
  hear_(serves == nodes.end() ? nullptr : &*serves);
  lock.lock();
  if (is_sharp) skew_ = skew;
  before_me_ = static_cast<unsigned>(before);
  lock.unlock();
  if (const Position before_this = not_needed_before(nodes);
      progress.owns && before_this > trimmed_) {
    log_->trim(before_this);
    trimmed_ = before_this;
  }
}

}  // namespace carillon::cluster
