// ClusterLog: the log of a store that several nodes share (SharedLog), by the rules of Role.
//
//   const ClusterLogs logs(options);
//   queue::DiskStore store("carillon-data", {}, logs);    // follows until this node owns the shard
//   queue::Engine engine(store, …);                       // and serves
//   …
//   store.sync();    // appends a window; throws queue::Deposed once another node owns the shard
//   …
//   // Then destroy engine and store, and open the store again: it follows.
//
// *Following is opening the store*: a store applies the changes that its log has and its state has
// not, and a shared log has more as long as another node owns the shard. read() returns when this
// node has claimed the shard and has read the log up to its claim: the take-over is the path of a
// start. What a deposed owner had not flushed is dropped by opening the store again.
//
// The state's files may hold only what counts. So a flush begins after a sync() of all that was
// appended, as with a log in files, and stores the role's Mark (Log::mark()).
//
// Beats: an owner that appends nothing is silent to the others, who claim after two seconds. So
// whoever appends must do so every kBeat, if need be an empty change (Engine::append_barrier()). It
// comes from no thread here: if the event loop of the owner hangs, another node must take over.
//
// Thread safety: as every queue::Log.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/log.h"
#include "cluster/reporter.h"
#include "cluster/role.h"
#include "cluster/shared_log.h"

namespace carillon::cluster {

struct ClusterOptions {
  // Makes a way to the shared log. It connects when it is used.
  std::function<std::unique_ptr<SharedLog>()> connect;
  // Where clients reach this node, for people and other nodes (SharedLog::Node).
  std::string address;
  std::string http = {};
  // Waits for this time, in the thread that follows. Returns false to end the node.
  std::function<bool(std::chrono::milliseconds)> wait;
  // Gets a line about what the node has found, from any thread.
  std::function<void(const std::string& line)> say;
  // Gets the node that serves, as far as this one has heard; null: none. Called about twice a
  // second, from another thread.
  std::function<void(const SharedLog::Node* owner)> hear = [](const SharedLog::Node*) {};
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

// Thrown by a store that was being opened when ClusterOptions::wait() returned false.
class FollowingEnded : public std::runtime_error {
 public:
  FollowingEnded() : std::runtime_error("the node has ended before it owned the shard") {}
};

class ClusterLog final : public queue::Log {
 public:
  // `identity`: a random number of the data directory. `options` must outlive this.
  ClusterLog(const ClusterOptions& options, std::uint64_t identity);

  void read(const queue::LogPosition& after, const Each& each) override;
  queue::LogNumber append(std::string_view change, const Apply& apply) override;
  queue::LogNumber sync() override;
  bool is_shared() const override { return true; }
  void write() override { sync(); }
  void leave() override;
  std::string failure() const override;
  std::optional<std::string> mark() const override;
  queue::LogNumber last() const override;
  void trim(const queue::LogPosition& flushed) override;
  std::size_t bytes() const override { return bytes_; }
  bool has_room() const override;
  void give_back() override {}
  const std::vector<std::string>& dropped() const override { return dropped_; }

 private:
  using Lock = std::lock_guard<std::mutex>;

  bool follow(const Each& each);
  void find_place();
  void take(const SharedLog::Stored& stored, const Each& each);
  void apply(const std::vector<std::string_view>& changes, queue::LogNumber first,
             const Each& each);
  void await_utc() const;
  void end_doubt();
  bool is_confirmed() const;
  bool collect(queue::LogNumber wanted);
  void catch_up();
  void tick();
  void send();
  void refused(const std::string& why);
  void obey(const Actions& actions);
  void refuse_if_over() const;
  void note_trouble(const std::string& why);
  void report_progress();

  const ClusterOptions& options_;
  const Owner me_;
  const std::unique_ptr<SharedLog> log_;
  Reporter reporter_;

  mutable std::mutex mutex_;
  // Protected by mutex_:
  std::string open_;  // changes that were appended since the last window was closed
  std::size_t open_changes_ = 0;
  queue::LogNumber last_ = 0;
  std::string failure_;

  mutable std::mutex role_mutex_;  // locked before mutex_
  // Protected by role_mutex_:
  std::optional<Role> role_;  // from read() on
  std::optional<Entry> to_send_;
  std::string uncommitted_;  // changes of windows that do not count yet
  std::size_t uncommitted_changes_ = 0;
  Position cursor_ = 0;     // the last entry that was read
  Position confirmed_ = 0;  // an append was answered that is here or behind it
  bool placed_ = false;
  std::chrono::steady_clock::time_point last_tick_;
  std::optional<Mark> between_windows_;  // while it follows; none: within a window
  std::string trouble_;                  // why the log has not taken a thing
  std::string deposed_;                  // empty: not deposed

  bool is_following_ = false;  // written by read() alone
  std::atomic<Position> flushed_ = 0;
  std::atomic<std::size_t> bytes_ = 0;  // bytes of entries since the last trim
  std::vector<std::string> dropped_;    // empty: a shared log leaves nothing out
};

// The shared logs of stores.
class ClusterLogs final : public queue::LogSource {
 public:
  // `options` must outlive this and the logs.
  explicit ClusterLogs(const ClusterOptions& options) : options_(options) {}

  std::string make(const base::Directory& directory, std::uint64_t identity) const override;
  std::unique_ptr<queue::Log> open(const base::Directory& directory,
                                   std::uint64_t identity) const override;

 private:
  const ClusterOptions& options_;
};

}  // namespace carillon::cluster
