// FairQueue: deficit round robin with a list of new members (fair_queue.h).
#include "server/net/fair_queue.h"

#include <algorithm>
#include <utility>

namespace carillon::server {

void FairQueue::join(Member& member) {
  if (std::exchange(member.has_work_, true)) return;
  ++working_;
  if (member.hook_.is_linked()) return;
  member.is_new_ = true;
  member.credit_ = quantum();
  new_.push_back(member);
}

void FairQueue::leave(Member& member) {
  if (std::exchange(member.has_work_, false)) --working_;
  if (member.hook_.is_linked()) list_of(member).erase(List::s_iterator_to(member));
}

FairQueue::Member* FairQueue::next() {
  while (working_ > 0) {
    const bool old_is_due = used_by_new_ >= quantum() && !old_.empty();
    Member& first = new_.empty() || old_is_due ? old_.front() : new_.front();
    if (first.credit_ <= 0) {
      first.credit_ += quantum();
      if (first.credit_ <= 0) used_by_new_ = 0;  // its quantum pays a debt
      move_to_old(first);
    } else if (first.has_work_) {
      if (!first.is_new_) used_by_new_ = 0;
      first.has_work_ = false;
      --working_;
      return &first;
    } else if (first.is_new_) {
      move_to_old(first);
    } else {
      old_.pop_front();
    }
  }
  return nullptr;
}

void FairQueue::spent(Member& member, std::int64_t ns) {
  if (member.is_new_) used_by_new_ += ns;
  if (!member.hook_.is_linked()) return;
  member.credit_ = std::max(member.credit_ - ns, -kLongestDebt * most_);
}

void FairQueue::move_to_old(Member& member) {
  list_of(member).erase(List::s_iterator_to(member));
  member.is_new_ = false;
  old_.push_back(member);
}

}  // namespace carillon::server
