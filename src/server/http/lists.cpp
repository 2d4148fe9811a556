// The jobs of a tube in pages (routes.h). A list goes in steps, and others are served in between.
#include <boost/json.hpp>
#include <memory>
#include <string>
#include <utility>

#include "carillon/queue/job_listing.h"
#include "server/api/job.h"
#include "server/http/filters.h"
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
  Job told = job_of(stats);
  if (!job.worker.empty()) told.worker = Bytes{job.worker};
  return write(told);
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

}  // namespace

void list_jobs(RequestContext& x) {
  const std::string& tube = x.tube();
  const beanstalk::ListOptions options = read_job_query(x.request);
  const auto list = std::make_shared<JobList>();
  list->listing = {.tube = tube, .filter = options.filter, .next = options.after};
  list->most = options.limit;
  go_on(x, list);
}

}  // namespace carillon::server::http
