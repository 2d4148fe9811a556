// A store whose syncs end when a test says so, and a sink for the reports of a group commit.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "carillon/queue/group_commit.h"
#include "carillon/queue/store.h"

namespace carillon::queue {

// Only counts its appends. Each sync waits until the test lets it end.
class GatedStore final : public Store {
 public:
  Sequence append(const Changes&) override {
    const std::lock_guard lock(mutex_);
    return ++appended_;
  }
  Sequence append_some(Sequence count) {
    Sequence last = 0;
    for (; count > 0; --count) last = append({});
    return last;
  }

  Sequence sync() override {
    std::unique_lock lock(mutex_);
    const Sequence covered = appended_;
    ++entered_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_ || let_ > 0; });
    if (!open_) --let_;
    if (failure_) throw StoreError(*failure_);
    return covered;
  }

  void write() override {
    const std::lock_guard lock(mutex_);
    ++writes_;
    if (write_failure_) throw StoreError(*write_failure_);
  }
  int writes() {
    const std::lock_guard lock(mutex_);
    return writes_;
  }
  std::string failure() const override { return {}; }

  // Lets `count` syncs end, now or later.
  void let(int count) {
    const std::lock_guard lock(mutex_);
    let_ += count;
    changed_.notify_all();
  }
  void let_all() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void fail(const std::string& why) {
    const std::lock_guard lock(mutex_);
    failure_ = why;
  }
  void fail_writes(const std::string& why) {
    const std::lock_guard lock(mutex_);
    write_failure_ = why;
  }
  void write_again() {
    const std::lock_guard lock(mutex_);
    write_failure_.reset();
  }
  void wait_for_sync(int number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return entered_ >= number; });
  }
  int syncs() {
    const std::lock_guard lock(mutex_);
    return entered_;
  }

  Recovered recover() const override { return {}; }
  std::optional<JobRecord> find(JobId) const override { return {}; }
  std::string body(JobId, std::uint32_t = 0) const override { return {}; }
  std::vector<JobRecord> scan_due(std::uint32_t, DueKey, std::size_t) const override { return {}; }
  std::vector<JobRecord> scan_buried(std::uint32_t, std::uint64_t, std::size_t) const override {
    return {};
  }
  std::optional<KeyRecord> find_key(std::uint32_t, std::string_view) const override { return {}; }
  std::vector<KeyRecord> scan_ended_keys(UtcMs, std::size_t) const override { return {}; }
  std::vector<Attempt> story(JobId) const override { return {}; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Sequence appended_ = 0;
  int entered_ = 0;
  int writes_ = 0;
  int let_ = 0;
  bool open_ = false;
  std::optional<std::string> failure_;  // how syncs fail
  std::optional<std::string> write_failure_;
};

// Keeps what was reported, and in which thread.
class Reports {
 public:
  GroupCommit::OnReport sink() {
    return [this](const CommitReport& report) {
      const std::lock_guard lock(mutex_);
      reports_.push_back(report);
      thread_ = std::this_thread::get_id();
      changed_.notify_all();
    };
  }
  std::vector<CommitReport> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reports_.size() >= count; });
    return reports_;
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return reports_.size();
  }
  std::thread::id last_thread() {
    const std::lock_guard lock(mutex_);
    return thread_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<CommitReport> reports_;
  std::thread::id thread_;
};

}  // namespace carillon::queue
