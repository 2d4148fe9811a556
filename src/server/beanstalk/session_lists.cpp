// The commands list-tubes and list-tubes-watched (session.h).
#include <string>

#include "server/beanstalk/session.h"
#include "server/beanstalk/stats.h"

namespace carillon::server::beanstalk {

void Session::list_tubes(const Command&) {
  begin_listing();
}

// The length of the list is answered first, and its items follow in the next steps.
void Session::begin_listing() {
  const queue::TubeListSize size = service_.engine().list_tubes(client_);
  left_ = size.tubes;
  state_ = State::kListing;
  if (!caller_.may_use_all_tubes()) {
    reply_ = kListHead;
    return;
  }
  const std::uint64_t bytes =
      kListHead.size() + size.tubes * (kItemHead.size() + 1) + size.name_bytes;
  replies_.add(0, "OK ", bytes, kEnd, kListHead);
}

// For a token that is good for some tubes only: the list is answered when its length is known.
void Session::go_on_choosing() {
  const auto names = service_.engine().next_tubes(client_);
  if (!names) return begin_listing();  // too many tubes were forgotten meanwhile
  for (const std::string& name : *names)
    if (caller_.may_use(name)) reply_.append(kItemHead).append(name).append("\n");
  left_ -= names->size();
  const bool has_memory = may_hold(reply_.size(), kOwnReplies);
  if (left_ > 0 && has_memory) return;
  state_ = State::kInput;
  has_memory ? answers_.yaml(0, reply_) : answers_.out_of_memory(kMemoryIsUsed);
  reply_ = {};
}

void Session::go_on_listing() {
  if (!caller_.may_use_all_tubes()) return go_on_choosing();
  const auto names = service_.engine().next_tubes(client_);
  if (!names) return close();
  for (const std::string& name : *names) {
    replies_.add_to_last(kItemHead);
    replies_.add_to_last(name);
    replies_.add_to_last("\n");
  }
  left_ -= names->size();
  if (left_ > 0) return;
  replies_.add_to_last(kEnd);
  state_ = State::kInput;
}

// Up to 2 MB.
void Session::list_watched(const Command&) {
  const std::string list = list_yaml(service_.engine().watched(client_));
  count_memory();
  if (list.size() > kOwnReplies && list.size() > service_.most_for_one())
    return answers_.out_of_memory(kMemoryIsUsed);
  answers_.yaml(0, list);
}

}  // namespace carillon::server::beanstalk
