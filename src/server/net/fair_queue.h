// FairQueue: decides which client is served next, and for how long, so that a client that asks for
// much waits for itself. The event loop owns one; it knows no socket and no clock.
//
//   FairQueue line(300'000, 5'000'000);                // a quantum of 300 us, rounds of 5 ms
//   line.join(connection);                            // it has work
//   while (FairQueue::Member* next = line.next()) {    // nullptr: nobody has work
//     ... serve it for at most next->credit() ns; it joins again if work is left ...
//     line.spent(*next, ns);
//   }
//
// How. This is deficit round robin (Shreedhar and Varghese, SIGCOMM 1995) by the time spent, with
// the two lists of fq_codel (RFC 8290, section 4.2). A member has a credit in ns. The time spent on
// it is taken from the credit; one long command makes it negative. Members with work stand in two
// lists:
//  - *new*: members that had no work before. They are served first, so that a client with little
//    traffic is answered soon, whatever the others ask for.
//  - *old*: members that have used up their credit. At each round a member gets one quantum more,
//    and it is served only when that makes its credit positive.
// If many members have work, the quantum is smaller, so that a round does not take longer: a member
// with little traffic that has just been served may have to wait for a round.
// A new member without more work goes through the old list once before it counts as new again. And
// whenever the new members have used a quantum together, the first old member comes before the next
// new one. So neither many members with little work nor many that come and leave can stop the old
// ones.
//
// Contracts
//  - Each member of the old list that has work gets one quantum in each round. Between two quanta
//    of old members, new ones use at most a quantum and one command.
//  - A member owes at most kLongestDebt quanta. A larger debt is not the member's fault: the
//    machine was busy.
//
// Complexity: each call is amortized O(1). Thread safety: none.
#pragma once

#include <algorithm>
#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>

#include "carillon/require.h"

namespace carillon::server {

class FairQueue {
 public:
  class Member {
   public:
    // How long (ns) it may be served; more than 0 for the member that next() has returned.
    std::int64_t credit() const { return credit_; }

   protected:
    ~Member() = default;

   private:
    friend class FairQueue;
    boost::intrusive::list_member_hook<> hook_;
    std::int64_t credit_ = 0;
    bool has_work_ = false;
    bool is_new_ = false;  // which list a member is in, if it is in one
  };

  static constexpr std::int64_t kLongestDebt = 64;

  // `quantum`: ns at most. `round`: what a round should take at most, in ns. A quantum is never
  // less than a 16th of `quantum`. REQUIRES: both are more than 0.
  FairQueue(std::int64_t quantum, std::int64_t round) : most_(quantum), round_(round) {
    CARILLON_REQUIRE(quantum > 0 && round > 0, quantum, round);
  }
  FairQueue(const FairQueue&) = delete;
  FairQueue& operator=(const FairQueue&) = delete;

  // The member has work. Does nothing if it is in line already.
  void join(Member& member);

  // Forgets the member. REQUIRED before a member is destroyed whose line lives on.
  void leave(Member& member);

  // Returns the member to be served now, or nullptr if nobody has work. The member leaves the line
  // until it joins again.
  Member* next();

  // `ns` were spent on the member, which may have left meanwhile.
  void spent(Member& member, std::int64_t ns);

  // How many members have work.
  std::size_t size() const { return working_; }
  bool empty() const { return working_ == 0; }

 private:
  using List = boost::intrusive::list<
      Member,
      boost::intrusive::member_hook<Member, boost::intrusive::list_member_hook<>, &Member::hook_>>;

  std::int64_t quantum() const {
    const auto members = static_cast<std::int64_t>(working_);
    return std::clamp(round_ / std::max<std::int64_t>(members, 1), (most_ + 15) / 16, most_);
  }
  List& list_of(const Member& member) { return member.is_new_ ? new_ : old_; }
  void move_to_old(Member& member);

  const std::int64_t most_;
  const std::int64_t round_;
  List new_;
  List old_;
  std::size_t working_ = 0;
  std::int64_t used_by_new_ = 0;  // ns, since an old member got a quantum or was served
};

}  // namespace carillon::server
