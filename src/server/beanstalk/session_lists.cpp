// The commands list-tubes, list-tubes-watched, list-groups and list-jobs (session.h).
//
// A page of jobs is made in steps: the engine lists some jobs, and then their bodies are fetched if
// the client wants them, as in session_bodies.cpp. Meanwhile a job may be deleted or get another
// body: then it is left out, or read again. A job that has moved towards the end is met again.
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/beanstalk/group_page.h"
#include "server/beanstalk/session.h"
#include "server/beanstalk/stats.h"

namespace carillon::server::beanstalk {
namespace {

// A page, and a line with a body in it before it ends.
constexpr std::size_t kPageMemory = kPageBytes + 2 * std::size_t{kMostListedBody};

}  // namespace

void Session::list_tubes(const Command&) {
  begin_listing();
}

// The length of the list is answered first, and its items follow in the next steps.
void Session::begin_listing() {
  const queue::TubeListSize size = service_.engine().list_tubes(client_);
  left_ = size.tubes;
  state_ = State::kListing;
  if (!caller_.may_use_all_tubes()) {
    body_ = kListHead;
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
    if (caller_.may_use(name)) body_.append(kItemHead).append(name).append("\n");
  left_ -= names->size();
  const bool has_memory = may_hold(body_.size(), kOwnReplies);
  if (left_ > 0 && has_memory) return;
  state_ = State::kLine;
  has_memory ? answer_yaml(0, body_) : answer_out_of_memory(kMemoryIsUsed);
  body_ = {};
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
  state_ = State::kLine;
}

// Up to 2 MB.
void Session::list_watched(const Command&) {
  const std::string list = list_yaml(service_.engine().watched(client_));
  count_memory();
  if (list.size() > kOwnReplies && list.size() > service_.most_for_one())
    return answer_out_of_memory(kMemoryIsUsed);
  answer_yaml(0, list);
}

// The tube may be gone when the client asks for its last page.
void Session::list_groups(const Command& c) {
  const auto options = or_bad_option([&] { return parse_group_list_options(c.options); });
  if (!options) return;
  if (!may_hold(kLongestGroupPage, 0)) return answer_out_of_memory(kMemoryIsUsed);
  const auto page = group_page(service_.engine(), service_.now(), c.tube, *options);
  if (page) return answer_yaml(service_.engine().last_sequence(), *page);
  if (options->after == 0) return answer_not_found();
  answer_yaml(service_.engine().last_sequence(), "{\"next\":null}\n");
}

void Session::list_jobs(const Command& c) {
  const auto options =
      or_bad_option([&] { return parse_list_options(c.options, ListOptionsOf::kList); });
  if (!options) return;
  if (options->is_first && !service_.engine().tube_stats(service_.now(), c.tube))
    return answer_not_found();
  if (!may_hold(kPageMemory, 0)) return answer_out_of_memory(kMemoryIsUsed);
  page_ = std::make_unique<JobPage>(c.tube, *options);
  state_ = State::kPaging;
}

void Session::go_on_paging() {
  state_ = State::kLine;
  or_answer_failure([&] {
    JobPage& page = *page_;
    // A body that has come late may have filled the page.
    if (page.next() == nullptr && !page.is_full()) {
      page.take(service_.engine().list_jobs(service_.now(), page.list(), page.at_once()));
      const std::size_t bytes = kPageMemory + page.list().memory();
      if (bytes > service_.most_for_one()) return answer_out_of_memory(kMemoryIsUsed);
      held_ = bytes;
    }
    while (page.next() != nullptr) {
      if (!add_next_job(std::nullopt)) return;
    }
    state_ = State::kPaging;
    if (!page.is_full()) return;
    state_ = State::kLine;
    answer_yaml(service_.engine().last_sequence(), page.finish());
  });
  if (state_ == State::kLine) page_.reset();
}

// Adds the line of the page's next job. `body`: its body, if it was read. Returns false if the
// session must wait for the body, or if it cannot be read; then the client has got the error.
bool Session::add_next_job(std::optional<Body> body) {
  queue::ListedJob& job = *page_->next();
  if (!page_->wants_body(job)) return page_->add(), true;
  const queue::JobId id = job.record.body_id();
  if (!body) body = body_at_hand(service_.store(), {.id = id});
  if (!body) {
    asked_ = Asked::kPage;
    service_.bodies().read(client_, {.id = id});
    state_ = State::kReading;
    return false;
  }
  if (body->bytes) return page_->add(*body->bytes), true;
  if (!body->damaged) {
    answer_store_failure(body->error);
    return false;
  }
  const auto now = service_.engine().job_stats(service_.now(), job.record.id);
  const auto place = [](const queue::JobRecord& record) { return queue::JobCursor::after(record); };
  if (!now || place(now->record) != place(job.record)) return page_->skip(), true;
  if (now->record.body_id() == id) return page_->add_without_body(body->error), true;
  job = {.record = now->record, .state = now->state, .group = now->group};
  return true;
}

void Session::page_body_read(const Body& body) {
  state_ = State::kLine;
  or_answer_failure([&] {
    if (add_next_job(body)) state_ = State::kPaging;
  });
  if (state_ == State::kLine) page_.reset();
}

}  // namespace carillon::server::beanstalk
