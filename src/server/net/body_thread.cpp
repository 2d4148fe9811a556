// BodyThread (body_thread.h).
#include "server/net/body_thread.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace carillon::server {

BodyThread::BodyThread(const queue::Store& store, std::function<void()> on_done)
    : store_(store), on_done_(std::move(on_done)), thread_([this] { run(); }) {}

BodyThread::~BodyThread() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void BodyThread::read(queue::ClientId client, BodyName name) {
  {
    const std::lock_guard lock(mutex_);
    asked_.push_back({.client = client, .name = name, .body = {}});
  }
  changed_.notify_one();
}

void BodyThread::forget(queue::ClientId client) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(asked_.begin(), asked_.end(),
                                  [client](const Read& read) { return read.client == client; });
  if (found != asked_.end()) asked_.erase(found);
}

std::list<BodyThread::Read> BodyThread::take() noexcept {
  const std::lock_guard lock(mutex_);
  return std::exchange(done_, {});
}

void BodyThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || !asked_.empty(); });
    if (closing_) return;
    std::list<Read> at_work;
    at_work.splice(at_work.end(), asked_, asked_.begin());
    lock.unlock();
    try {
      at_work.front().body = read_body(store_, at_work.front().name);
    } catch (const std::exception&) {
      // Not even the error message fits into memory. A body without bytes says enough.
    }
    lock.lock();
    done_.splice(done_.end(), at_work);
    if (done_.size() == 1) on_done_();
  }
}

}  // namespace carillon::server
