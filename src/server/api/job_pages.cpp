// Jobs in pages (job_pages.h). A list goes in steps, and others are served in between.
//
// The engine lists some jobs, and then their bodies are read, if the client wants them. Meanwhile a
// job may be deleted or get another body: then it is left out, or read again. The list meets a job
// again that has moved towards the end.
#include "server/api/job_pages.h"

#include <deque>
#include <memory>
#include <utility>

#include "carillon/queue/engine.h"
#include "server/api/operations.h"
#include "server/api/tubes.h"

namespace carillon::server {

namespace {

// A page ends when it has passed this many jobs, so that its client sees that the list goes on.
constexpr std::uint64_t kMostPassed = 16'384;
// A larger body is not in a page, and a page with this many bytes of bodies ends.
constexpr std::uint32_t kLargestListed = 64 << 10;
constexpr std::size_t kBytesInPage = 128 << 10;

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
  bool bodies;
  JobPage page = {};
  std::deque<queue::ListedJob> found = {};  // by the engine, and not in the page yet
  queue::JobCursor next = {};               // behind the last one that is in the page
  std::size_t bytes = 0;                    // of the bodies in the page
};
using List = std::shared_ptr<JobList>;

void list_more(RequestContext& x, const List& list);

// Passes the first of the jobs that were found; `told` is what the page shows of it, if anything.
void pass(RequestContext& x, JobList& list, std::optional<Job> told) {
  list.next = queue::JobCursor::after(list.found.front().record);
  list.found.pop_front();
  if (!told) return;
  const std::size_t bytes = told->body ? told->body->bytes.size() : 0;
  list.bytes += bytes;
  x.hold((1 << 10) + bytes);
  list.page.jobs.push_back(*std::move(told));
}

void pass_with_body(RequestContext& x, const List& list, std::string_view body) {
  Job told = listed(list->found.front(), list->listing.tube);
  told.body = Bytes{std::string(body)};
  pass(x, *list, std::move(told));
  list_more(x, list);
}

// The body of the first job that was found could not be read.
void pass_without_body(RequestContext& x, const List& list, const Body& body) {
  queue::ListedJob& job = list->found.front();
  if (!body.damaged) {
    x.service().report_store_failure(body.error);
    throw unreadable(job.record.id, body);
  }
  const auto now = x.engine().job_stats(x.now(), job.record.id);
  const auto place = [](const queue::JobRecord& record) { return queue::JobCursor::after(record); };
  if (!now || place(now->record) != place(job.record)) {
    pass(x, *list, std::nullopt);
  } else if (now->record.body_id() != job.record.body_id()) {
    job = {.record = now->record, .state = now->state, .group = now->group};
  } else {
    Job told = listed(job, list->listing.tube);
    told.body_error = body.error;
    pass(x, *list, std::move(told));
  }
  list_more(x, list);
}

void read_next_body(RequestContext& x, const List& list) {
  const queue::JobRecord& record = list->found.front().record;
  x.read_body(
      {.id = record.id, .body_id = record.body_id(), .body_bytes = record.body_bytes},
      [list](RequestContext& then, std::string_view body) { pass_with_body(then, list, body); },
      [list](RequestContext& then, const Body& body) { pass_without_body(then, list, body); });
}

void list_more(RequestContext& x, const List& list) {
  queue::JobListing& listing = list->listing;
  JobPage& page = list->page;
  if (list->found.empty() && !listing.done) {
    const std::size_t held = listing.memory();
    for (queue::ListedJob& job :
         x.engine().list_jobs(x.now(), listing, list->most - page.jobs.size()))
      list->found.push_back(std::move(job));
    x.hold(listing.memory() - held);
  }
  while (!list->found.empty() && list->bytes < kBytesInPage) {
    const queue::ListedJob& job = list->found.front();
    if (list->bodies && job.record.body_bytes <= kLargestListed) return read_next_body(x, list);
    pass(x, *list, listed(job, listing.tube));
  }
  const bool is_cut = !list->found.empty();
  const bool is_full = is_cut || page.jobs.size() == list->most ||
                       listing.looked_at >= kMostPassed || list->bytes >= kBytesInPage;
  if (!listing.done && !is_full)
    return x.later([list](RequestContext& then) { list_more(then, list); });
  if (listing.incomplete) page.incomplete = true;
  if (is_cut) {
    page.next_page_token = list->next;
  } else if (!listing.done) {
    page.next_page_token = listing.next;
  }
  answer(x, page);
}

void list_jobs(RequestContext& x, const ListJobs& asked) {
  if (!asked.page_token) found_tube(x, asked.tube);  // it may be gone before its last page
  const auto list =
      std::make_shared<JobList>(JobList{.listing = {.tube = asked.tube, .filter = asked.jobs()},
                                        .most = asked.page_size,
                                        .bodies = asked.bodies});
  if (asked.page_token) list->listing.next = *asked.page_token;
  list_more(x, list);
}

constexpr auto kJobPageRows = rows(
    "jobs", operation<list_jobs, JobPage>("GET /v1/tubes/{tube}/jobs", {Needs::kRead, Reach::kTube},
                                          "Lists jobs by due time.", {.problems = "404"}));

}  // namespace

std::span<const Operation> job_page_operations() {
  return kJobPageRows;
}

}  // namespace carillon::server
