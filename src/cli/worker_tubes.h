// The tubes a worker takes jobs from: those that it was given by name, and those that match a
// pattern such as `mail.*`, which come and go while it runs.
//
//   WorkerTubes tubes({"urgent", "mail.*"});         // shared by the slots of a worker
//   TubeWatch watch(tubes, client);                  // of one slot, for one connection
//   if (watch.follow(client)) client.reserve(watch.patience(patience));
//
// With a pattern, the slots ask the server for its tubes about every two seconds, one slot for all
// of them. A tube that appears is watched by an idle slot within about five seconds. A tube that
// matches has gone when it has no job and no producer uses it: then the slots stop watching it, so
// that the server can forget it. Up to kMost tubes that match are watched.
//
// Patterns are those of the shell, in glob(7): `*`, `?` and `[...]`; a name has none of these.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/client.h"
#include "cli/wait.h"

namespace carillon::cli {

// Returns true if the text has a sign that no name of a tube has: `*`, `?`, `[` or `]`.
bool is_pattern(std::string_view text);

// Returns why no name of a tube can match the pattern: `the "[" has no "]" behind it`. Returns an
// empty text if names may match.
std::string why_nothing_matches(std::string_view pattern);

// Thread-safe.
class WorkerTubes {
 public:
  // Names and patterns; none: the tube `default`.
  explicit WorkerTubes(const std::vector<std::string>& tubes);

  // Returns true if there are no patterns: then the tubes are always the same.
  bool are_fixed() const { return patterns_.empty(); }
  const std::set<std::string>& named() const { return named_; }

  // Returns the tubes to watch. Asks the server if nobody did for kAge.
  std::set<std::string> now(Client& client);

  static constexpr std::chrono::seconds kAge{2};
  static constexpr std::size_t kMost = 1'000;

 private:
  using Clock = std::chrono::steady_clock;

  bool matches(const std::string& tube) const;
  void refresh(Client& client);
  static bool is_in_use(Client& client, const std::string& tube);

  std::vector<std::string> patterns_;
  std::set<std::string> named_;
  std::mutex mutex_;  // protects all below
  std::set<std::string> watched_;
  std::set<std::string> left_;  // tubes that match and exist, but are not in use
  std::string next_look_;       // the tube with which the next check of their use begins
  Clock::time_point asked_at_{};
  bool has_asked_ = false;
  bool told_ = false;  // the user knows that more than kMost match
};

// Not thread-safe. A new connection needs a new one.
class TubeWatch {
 public:
  // Lets the client, which has just connected, watch those tubes that have names. `tubes` must
  // outlive the object.
  TubeWatch(WorkerTubes& tubes, Client& client);

  // Lets the client watch the right tubes. Returns false if no tube is there: then it may not
  // reserve.
  bool follow(Client& client);

  // Returns how long to wait in a reserve before the next call of follow().
  Patience patience(Patience asked) const;

  // The reasons why a reserve found no job though watched tubes have ready ones.
  struct HeldBack {
    bool for_a_time = false;  // a limit, or a pause that ends
    std::string for_good;     // the name of a tube that is paused until somebody resumes it
  };
  // Returns no reason if the client's token may not ask.
  HeldBack held_back(Client& client) const;

 private:
  WorkerTubes* tubes_;
  std::set<std::string> watched_;
};

}  // namespace carillon::cli
