// Jobs in pages (job_pages.h). A list goes in steps, and others are served in between.
#include "server/api/job_pages.h"

#include <memory>
#include <utility>

#include "carillon/queue/engine.h"
#include "server/api/operations.h"

namespace carillon::server {

namespace {

// A page ends when it has passed this many jobs, so that its client sees that the list goes on.
constexpr std::uint64_t kMostPassed = 16'384;

Job listed(const queue::ListedJob& job, const std::string& tube) {
  queue::JobStats stats;
  stats.record = job.record;
  stats.tube = tube;
  stats.group = job.group;
  stats.state = job.state;
  Job told = job_of(stats);
  if (!job.worker.empty()) told.worker = Bytes{job.worker};
  return told;
}

struct JobList {
  queue::JobListing listing;
  std::size_t most;
  JobPage page = {};
};

void list_more(RequestContext& x, const std::shared_ptr<JobList>& list) {
  queue::JobListing& listing = list->listing;
  JobPage& page = list->page;
  const std::size_t held = listing.memory();
  for (const queue::ListedJob& job :
       x.engine().list_jobs(x.now(), listing, list->most - page.jobs.size())) {
    page.jobs.push_back(listed(job, listing.tube));
    x.hold(1 << 10);
  }
  x.hold(listing.memory() - held);
  const bool is_full = page.jobs.size() == list->most || listing.looked_at >= kMostPassed;
  if (!listing.done && !is_full)
    return x.later([list](RequestContext& then) { list_more(then, list); });
  if (listing.incomplete) page.incomplete = true;
  if (!listing.done) page.next_page_token = listing.next;
  answer(x, page);
}

void list_jobs(RequestContext& x, const ListJobs& asked) {
  const auto list = std::make_shared<JobList>(
      JobList{.listing = {.tube = asked.tube, .filter = asked.jobs()}, .most = asked.page_size});
  if (asked.page_token) list->listing.next = *asked.page_token;
  list_more(x, list);
}

constexpr std::array kJobPageRows = {operation<list_jobs>({.method = "GET",
                                                           .path = "/v1/tubes/{tube}/jobs",
                                                           .name = "listJobs",
                                                           .tag = "jobs",
                                                           .summary = "Lists jobs by due time.",
                                                           .rights = {Needs::kRead, Reach::kTube},
                                                           .appends = Appends::kNo,
                                                           .problems = "400",
                                                           .answer = &kShape<JobPage>})};

}  // namespace

std::span<const Operation> job_page_operations() {
  return kJobPageRows;
}

}  // namespace carillon::server
