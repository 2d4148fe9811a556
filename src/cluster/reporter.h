// The thread in which a node tells the others about itself, and hears of them: how far it is in the
// log, how far its clock is off, and up to where the log may be trimmed.
//
//   Reporter reporter(connect, {.id = identity, .owner = me, .address = "a:11300"}, say, hear);
//   reporter.set({.read = 900, .flushed = 700, .owns = true});
//   if (const auto skew = reporter.skew()) …
//
// It has a connection of its own, so that nothing of this delays an append.
//
// Thread safety: any thread may call any method.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cluster/shared_log.h"

namespace carillon::cluster {

// How long a node may be silent and still count as one that follows.
inline constexpr std::chrono::milliseconds kFollows{10'000};
// How long the log is kept for a node that is silent: for a reboot, and for a person who comes.
inline constexpr std::chrono::milliseconds kKeptFor{3'600'000};

// Returns the position before which the log is not needed: at least two nodes, and all that were
// there in the last hour, have what is before it in their files. 0 if there are fewer than two.
Position not_needed_before(const std::vector<SharedLog::Node>& nodes);

class Reporter {
 public:
  static constexpr std::chrono::milliseconds kEvery{500};

  struct Progress {
    Position read = 0;
    Position flushed = 0;
    Owner owner = {};   // who owns the shard, as far as this node has read
    bool owns = false;  // this node does; then it trims the log
  };

  Reporter(const std::function<std::unique_ptr<SharedLog>()>& connect, SharedLog::Node me,
           std::function<void(const std::string& line)> say,
           std::function<void(const SharedLog::Node* owner)> hear);
  // Takes as long as the calls of one report may.
  ~Reporter();
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  void set(const Progress& progress);

  // This machine's UTC less that of the log's engine, in ms. None: it was never measured.
  std::optional<std::int64_t> skew() const;
  // How many of the other followers that report come before this one, by their ids.
  unsigned before_me() const;

 private:
  void run();
  void report();

  const std::unique_ptr<SharedLog> log_;
  const std::function<void(const std::string& line)> say_;
  const std::function<void(const SharedLog::Node* owner)> hear_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Protected by mutex_:
  SharedLog::Node me_;
  bool is_news_ = false;  // the others should hear at once
  Progress progress_;
  std::optional<std::int64_t> skew_;
  unsigned before_me_ = 0;
  bool ending_ = false;

  Position trimmed_ = 0;    // used by the thread alone
  bool is_silent_ = false;  // the last report could not be made

  std::thread thread_;
};

}  // namespace carillon::cluster
