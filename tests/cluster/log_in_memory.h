// A shared log in the memory of a test, with faults: it can be unavailable, and lose answers.
//
//   LogInMemory log;
//   LogInMemoryClient one(log), other(log);       // two nodes have one each
//   log.fail_next(LogInMemory::Fault::kLandsUnknown);
//
// Thread safety: all methods.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/shared_log.h"

namespace carillon::cluster {

class LogInMemory {
 public:
  enum class Fault : std::uint8_t {
    kNone,
    kUnavailable,   // it is not taken
    kLandsUnknown,  // it is taken, and the answer is lost
    kLostUnknown,   // it is not taken, and nobody knows
  };

  // For the next append each; behind them all is well again.
  void fail_next(std::vector<Fault> faults);
  // Every call fails, until it is called with false.
  void cut_off(bool on);
  // The log loses all behind `last`, as one of an older disk.
  void cut(Position last);
  // Another log is in its place.
  void replace();

  std::size_t size() const;
  SharedLog::Stored at(Position position) const;
  Epoch epoch() const;
  std::vector<SharedLog::Node> nodes() const;
  Position begins_at() const;

 private:
  friend class LogInMemoryClient;

  using Lock = std::lock_guard<std::mutex>;

  void refuse_if_cut_off() const;

  mutable std::mutex mutex_;
  LogId id_{1, 2};
  std::vector<SharedLog::Stored> entries_;
  std::vector<Epoch> epochs_;  // as of each entry
  std::deque<Fault> faults_;
  bool cut_off_ = false;
  Position begins_at_ = 1;
  std::map<std::uint64_t, SharedLog::Node> nodes_;
};

class LogInMemoryClient final : public SharedLog {
 public:
  explicit LogInMemoryClient(LogInMemory& log) : log_(log) {}

  LogId id() override;
  Place place_of(const Mark& mark) override;
  std::vector<Stored> read(Position after) override;
  Answer append(const Entry& entry, std::string_view bytes) override;
  void report(const Node& node) override;
  std::vector<Node> nodes() override;
  void trim(Position before) override;
  std::int64_t skew() override;

 private:
  LogInMemory& log_;
};

}  // namespace carillon::cluster
