// Whether the groups of a tube take turns as they should (docs/protocol.md, "Groups"): what each of
// them has got since it has been taking turns with each other one.
//
//   GroupShares shares;
//   shares.follow({{"acme", {.priority = 5, .weight = 3}}, {"bolt", {.priority = 5}}});
//   shares.give("acme");            // a job of it has gone out in its turn
//   shares.follow(...);             // as it is then; returns what is unfair, or an empty text
//
// The promise: there is a v such that each group that takes turns gets weight * v jobs, give or
// take one. So of two groups, got / weight differ by 1/weight + 1/weight at most.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "carillon/queue/job.h"

namespace carillon::simulator {

class GroupShares {
 public:
  struct Turn {
    queue::Priority priority = 0;  // the one of the group's first job
    std::uint32_t weight = 1;

    friend bool operator==(const Turn&, const Turn&) = default;
  };
  using Line = std::map<std::string, Turn>;

  // These groups, and no others, have ready jobs that may go out. Counting begins anew for one that
  // was not there, or had another priority or weight.
  std::string follow(const Line& line) {
    for (const auto& [group, turn] : line) {
      if (!line_.contains(group) || line_[group] != turn) forget(group);
    }
    for (const auto& [group, turn] : line_) {
      if (!line.contains(group)) forget(group);
    }
    line_ = line;
    return unfair();
  }
  void give(const std::string& to) {
    for (const auto& [group, turn] : line_) ++got_[{to, group}];
  }
  void forget(const std::string& group) {
    std::erase_if(got_, [&group](const auto& each) {
      return each.first.first == group || each.first.second == group;
    });
  }
  void forget_all() {
    got_.clear();
    line_.clear();
  }

 private:
  std::string unfair() {
    for (const auto& [a, of_a] : line_) {
      for (const auto& [b, of_b] : line_) {
        if (of_a.priority != of_b.priority) continue;
        const std::uint64_t by_a = got_[{a, b}];
        const std::uint64_t by_b = got_[{b, a}];
        if (by_a * of_b.weight > by_b * of_a.weight + of_a.weight + of_b.weight) {
          return "the group '" + a + "' of weight " + std::to_string(of_a.weight) + " got " +
                 std::to_string(by_a) + " jobs, while '" + b + "' of weight " +
                 std::to_string(of_b.weight) + " got " + std::to_string(by_b);
        }
      }
    }
    return {};
  }

  Line line_;
  // What the one group got while it was taking turns with the other.
  std::map<std::pair<std::string, std::string>, std::uint64_t> got_;
};

}  // namespace carillon::simulator
