// Lists in pages: the jobs and the groups of a tube, and the tubes (routes.h). A list goes in
// steps, and others are served in between.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "carillon/queue/job_listing.h"
#include "server/api/problem.h"
#include "server/api/tubes.h"
#include "server/http/filters.h"
#include "server/http/job_fields.h"
#include "server/http/routes.h"

namespace carillon::server::http {

namespace {

namespace json = boost::json;

// A page ends when so many jobs were looked at, so that its client sees that the list goes on.
constexpr std::uint64_t kMostLookedAt = 16'384;

json::object shown(const queue::ListedJob& job, const std::string& tube) {
  queue::JobStats stats;
  stats.record = job.record;
  stats.tube = tube;
  stats.group = job.group;
  stats.state = job.state;
  json::object told = json_of(stats, {}, std::nullopt);
  told.erase("attempts");  // one job shows its story
  if (!job.worker.empty()) set_text(told, "worker", job.worker);
  return told;
}

struct JobList {
  queue::JobListing listing;
  std::size_t most = 0;
  json::array jobs = {};
};

void answer(RequestContext& x, json::object page, std::string_view next) {
  page["next_page_token"] = next.empty() ? json::value(nullptr) : json::value(next);
  x.answer({.body = json::serialize(page), .durable_at = x.engine().last_sequence()});
}

void go_on(RequestContext& x, const std::shared_ptr<JobList>& list) {
  queue::JobListing& listing = list->listing;
  const std::size_t held = listing.memory();
  for (const queue::ListedJob& job :
       x.engine().list_jobs(x.now(), listing, list->most - list->jobs.size())) {
    list->jobs.push_back(shown(job, listing.tube));
    x.hold(1 << 10);
  }
  x.hold(listing.memory() - held);
  const bool is_full = list->jobs.size() == list->most || listing.looked_at >= kMostLookedAt;
  if (!listing.done && !is_full)
    return x.later([list](RequestContext& then) { go_on(then, list); });
  json::object page{{"jobs", std::move(list->jobs)}};
  if (listing.incomplete) page["incomplete"] = true;
  answer(x, std::move(page), listing.done ? "" : to_text(listing.next));
}

// The names that come next, of all that are there: these are in no order.
struct TubeList {
  Page page;
  std::uint64_t left = 0;  // names that were not looked at
  std::set<std::string> names = {};
  json::array tubes = {};
};

void show_tubes(RequestContext& x, const std::shared_ptr<TubeList>& list) {
  constexpr int kAtOnce = 50;
  for (int n = 0; n < kAtOnce && !list->names.empty(); ++n) {
    const std::string name = list->names.extract(list->names.begin()).value();
    list->page.after = name;
    if (const auto stats = x.engine().tube_stats(x.now(), name))
      list->tubes.push_back(write(tube_of(*stats)));
    x.hold(2 << 10);
  }
  if (!list->names.empty())
    return x.later([list](RequestContext& then) { show_tubes(then, list); });
  answer(x, {{"tubes", std::move(list->tubes)}}, list->left > 0 ? list->page.after : "");
}

void begin_tubes(RequestContext& x, const std::shared_ptr<TubeList>& list);

void find_tubes(RequestContext& x, const std::shared_ptr<TubeList>& list) {
  const auto names = x.engine().next_tubes(x.client());
  if (!names) return begin_tubes(x, list);  // too many were forgotten meanwhile
  list->left -= names->size();
  for (const std::string& name : *names)
    if (name > list->page.after && x.may_use(name)) list->names.insert(name);
  // One more than the page has tells whether others follow.
  while (list->names.size() > list->page.size + 1) list->names.erase(std::prev(list->names.end()));
  if (list->left > 0) return x.later([list](RequestContext& then) { find_tubes(then, list); });
  const bool goes_on = list->names.size() > list->page.size;
  if (goes_on) list->names.erase(std::prev(list->names.end()));
  list->left = goes_on ? 1 : 0;
  show_tubes(x, list);
}

void begin_tubes(RequestContext& x, const std::shared_ptr<TubeList>& list) {
  list->names.clear();
  list->left = x.engine().list_tubes(x.client()).tubes;
  find_tubes(x, list);
}

// The page begins with the group that has this number; 0: with the first one.
struct GroupList {
  std::uint32_t next = 0;
  std::size_t left = 0;
  json::array groups = {};
};

std::uint32_t group_number_of(const std::string& token) {
  std::uint32_t number = 0;
  if (token.empty()) return 0;
  const char* const end = token.data() + token.size();
  const auto [rest, error] = std::from_chars(token.data(), end, number);
  if (error == std::errc() && rest == end && number > 0) return number;
  throw wrong_query("page_token",
                    fmt::format("\"{}\": not what an answer calls next_page_token", token));
}

void show_groups(RequestContext& x, const std::shared_ptr<GroupList>& list) {
  constexpr std::size_t kAtOnce = 50;
  const auto page =
      x.engine().list_groups(x.now(), x.tube(), list->next, std::min(list->left, kAtOnce));
  if (!page && list->next == 0)
    throw Problem(kNotFound, fmt::format("there is no tube \"{}\"", x.tube()));
  list->next = page ? page->next : 0;  // the tube may be gone when its last page is asked for
  if (page) {
    x.hold(page->groups.size() << 10);
    list->left -= page->groups.size();
    for (const queue::GroupPage::Group& group : page->groups)
      list->groups.push_back(write(group_of(x.tube(), group.name, group.stats)));
  }
  if (list->next != 0 && list->left > 0)
    return x.later([list](RequestContext& then) { show_groups(then, list); });
  const std::string next = list->next == 0 ? "" : std::to_string(list->next);
  answer(x, {{"groups", std::move(list->groups)}}, next);
}

}  // namespace

void list_groups(RequestContext& x) {
  const Page page = read_page(x.request);
  const auto list = std::make_shared<GroupList>();
  list->next = group_number_of(page.after);
  list->left = page.size;
  show_groups(x, list);
}

void list_jobs(RequestContext& x) {
  const std::string& tube = x.tube();
  const beanstalk::ListOptions options = read_job_query(x.request);
  const auto list = std::make_shared<JobList>();
  list->listing = {.tube = tube, .filter = options.filter, .next = options.after};
  list->most = options.limit;
  go_on(x, list);
}

void list_tubes(RequestContext& x) {
  const auto list = std::make_shared<TubeList>();
  list->page = read_page(x.request);
  begin_tubes(x, list);
}

}  // namespace carillon::server::http
