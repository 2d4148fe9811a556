// The groups of a tube: their jobs take turns, by weight.
//
// A job may name a group, a customer for instance. The jobs of one group of one tube are a *lane*:
// a Tube of its own that no client can name, with its own order of due times, its own ready jobs
// and its own part of memory. So a job is found without passing the jobs of another group. What
// clients know as the tube is the *head* of its lanes; jobs without a group are in the head itself.
//
// Priority comes first: lanes take turns if they have ready jobs, and their first job has the
// lowest priority number. They do so by weighted fair queueing in virtual time, as in Golestani, "A
// self-clocked fair queueing scheme for broadband applications" (INFOCOM 1994). Each lane has a
// time. The lane with the earliest time goes next; then its time moves on by 1/weight. A lane that
// comes, or whose first job gets another priority, starts 1/weight after the earliest lane with
// that priority. So it gets no credit for turns that it did not use, and nothing about it need be
// remembered. A job that is given back has had its turn. The contract:
//
//   While lanes take turns with each other, there is a v such that each of them gets from
//   weight * v - 1 to weight * v + 1 jobs.
//
// For all lanes i of a priority, min <= time(i) <= min + 1/weight(i), where `min` is the earliest
// of these times; check_invariants() checks it. The times are fractions, so nothing is rounded.
//
// O(log lanes) for each job. Thread safety: none.
#pragma once

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <cstddef>
#include <cstdint>

#include "carillon/queue/job.h"

namespace carillon::queue {

class Groups;
struct Tube;

// The place of a lane, or of the head, among the others.
struct Turn {
  Turn(Tube& of, Tube& in) : tube(&of), head(&in) {}

  Tube* tube;
  Tube* head;  // the tube itself, or the one whose lane it is
  std::uint32_t weight = 1;
  bool rests = false;  // the group's own limits let no job go out (throttle.h): it is not in line

  // While it is in line: the priority of its first job, and its time, whole + part / weight. If two
  // have the same time, the one that has reached it first goes first.
  Priority priority = 0;
  std::uint32_t part = 0;
  std::uint64_t whole = 0;
  std::uint64_t arrival = 0;

  // While it has delayed jobs in memory: no such job is due before this.
  UtcMs due_from = 0;

  using Hook = boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>>;
  Hook line_hook;
  Hook due_hook;
  Hook number_hook;
  boost::intrusive::list_member_hook<> buried_hook;
};

class Groups {
 public:
  // `head` has no lane yet.
  explicit Groups(Tube& head);
  ~Groups();
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;

  // The tube is a lane from now on. REQUIRES: it has its `turn`.
  void add(Tube& lane) noexcept;
  // REQUIRES: the lane has no jobs in memory.
  void remove(Tube& lane);
  bool empty() const { return lanes_ == 0; }
  std::size_t size() const { return lanes_; }

  // The following return nullptr if there is no such lane. The lane with this number, or else the
  // next one:
  Tube* from_number(std::uint32_t number) const;
  // A lane with buried jobs, or the head if it has some.
  Tube* with_buried() const { return buried_.empty() ? nullptr : buried_.front().tube; }
  // The lane, or the head, of which a job goes out next.
  Tube* first() const { return line_.empty() ? nullptr : line_.begin()->tube; }

  // The lane, or the head, whose delayed jobs in memory are due first.
  const Turn* first_due() const { return due_.empty() ? nullptr : &*due_.begin(); }

  // The ready jobs of the lane, or the head, have changed.
  void follow(Tube& lane);
  // Call after the first delayed job of the lane has changed to an earlier one.
  void follow_due(Tube& lane) noexcept;
  // The lane's limits let a job go out, or do not.
  void let_rest(Tube& lane, bool rests);
  // A job of the lane goes out, in its turn.
  void charge(Tube& lane);
  // The lane's settings, or the number of its buried jobs, have changed.
  void follow_record(Tube& lane);

  // The head and all lanes together.
  struct Sums {
    std::uint64_t ready = 0;
    std::uint64_t urgent = 0;
    std::uint64_t reserved = 0;
    std::uint64_t ending = 0;
    std::uint64_t scheduled = 0;
    std::uint64_t buried = 0;
    std::uint64_t loaded = 0;

    friend bool operator==(const Sums&, const Sums&) = default;
  };
  Sums sums;
  // What the sums should be. O(lanes).
  Sums counted() const;

  // How many lanes are stored. O(lanes).
  std::uint64_t stored() const;
  // Returns false if a lane is not in its place. O(lanes).
  bool check_invariants() const;

 private:
  struct ByTurn {
    bool operator()(const Turn& a, const Turn& b) const;
  };
  struct ByNumber {
    bool operator()(const Turn& a, const Turn& b) const;
  };
  struct ByDue {
    bool operator()(const Turn& a, const Turn& b) const { return a.due_from < b.due_from; }
  };
  using Line =
      boost::intrusive::set<Turn, boost::intrusive::compare<ByTurn>,
                            boost::intrusive::member_hook<Turn, Turn::Hook, &Turn::line_hook>>;
  using Numbers =
      boost::intrusive::set<Turn, boost::intrusive::compare<ByNumber>,
                            boost::intrusive::member_hook<Turn, Turn::Hook, &Turn::number_hook>>;
  using DueFirst =
      boost::intrusive::multiset<Turn, boost::intrusive::compare<ByDue>,
                                 boost::intrusive::member_hook<Turn, Turn::Hook, &Turn::due_hook>>;
  using Buried = boost::intrusive::list<
      Turn, boost::intrusive::member_hook<Turn, boost::intrusive::list_member_hook<>,
                                          &Turn::buried_hook>>;

  // Returns the earliest lane with the priority; nullptr if no lane has it.
  const Turn* first_with(Priority priority) const;
  void leave_line(Turn& turn);
  // REQUIRES: it has ready jobs, does not rest, and is not in line.
  void stand_in_line(Turn& turn);

  Tube& head_;
  std::size_t lanes_ = 0;
  std::uint64_t arrivals_ = 0;
  Line line_;
  Numbers numbers_;  // only lanes
  DueFirst due_;
  Buried buried_;
};

}  // namespace carillon::queue
