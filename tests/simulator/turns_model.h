// The model of turns: what the groups of tubes have got while they certainly took turns (model.h).
//
//   turns.follow("mail", groups);          // before each job that goes out; returns what is unfair
//   turns.give("mail", "acme");            // it was a job of this group
//   turns.job_has_changed("mail", "acme", 5);
//
// A group takes turns without a break as long as one of its jobs, the *witness*, stays ready and
// unchanged, and none of its jobs comes that would go out before it by its priority.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "carillon/queue/job.h"
#include "simulator/group_shares.h"

namespace carillon::simulator {

class TurnsModel {
 public:
  struct Witness {
    queue::JobId id = 0;
    std::uint64_t change = 0;  // KnownJob::change
  };
  struct Group {
    GroupShares::Turn turn = {};
    Witness witness = {};
  };
  using Groups = std::map<std::string, Group>;

  // As the last follow() has found it.
  std::optional<Witness> witness(const std::string& tube, const std::string& group) const;
  // These groups have a witness, and no others. REQUIRES: forget() was called for those whose
  // witness of the last time did not stay.
  std::string follow(const std::string& tube, const Groups& groups);
  void give(const std::string& tube, const std::string& group) { tubes_[tube].shares.give(group); }
  // A job of the group has come, gone or changed, and has this priority, or had it.
  void job_has_changed(const std::string& tube, const std::string& group, queue::Priority priority);
  void forget(const std::string& tube, const std::string& group);
  void forget(const std::string& tube) { tubes_.erase(tube); }
  void forget_all() { tubes_.clear(); }

 private:
  struct Entry {
    Groups groups;
    GroupShares shares;
  };
  std::map<std::string, Entry> tubes_;
};

}  // namespace carillon::simulator
