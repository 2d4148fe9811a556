// A page of a list of jobs, while it is made: the reply of list-jobs. Each job is a line of JSON;
// the last line says where the next page begins.
//
//   JobPage page("mail", options);
//   while (!page.is_full()) {
//     page.take(engine.list_jobs(now, page.list(), page.at_once()));
//     while (const queue::ListedJob* job = page.next())
//       page.wants_body(*job) ? page.add(body_of(*job)) : page.add();
//   }
//   reply(page.finish());
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/queue/job_listing.h"
#include "server/api/list_options.h"

namespace carillon::server::beanstalk {

// A larger body is not in a page.
inline constexpr std::uint32_t kMostListedBody = 64 << 10;
// A page ends when it has kPageBytes bytes, or after kMostLookedAt jobs were scanned.
inline constexpr std::size_t kPageBytes = 128 << 10;
inline constexpr std::uint64_t kMostLookedAt = 16'384;

class JobPage {
 public:
  JobPage(std::string_view tube, const ListOptions& options)
      : options_(options),
        list_{.tube = std::string(tube), .filter = options.filter, .next = options.after} {}

  // What to ask the engine for next.
  queue::JobListing& list() { return list_; }
  std::size_t at_once() const;
  // REQUIRES: next() is null; not is_full().
  void take(std::vector<queue::ListedJob> jobs);

  // The job whose line comes next; null if the engine must be asked, or if the page is full.
  queue::ListedJob* next();
  bool wants_body(const queue::ListedJob& job) const {
    return options_.bodies && job.record.body_bytes <= kMostListedBody;
  }
  // Adds the job's line.
  void add(std::optional<std::string_view> body = std::nullopt) { add("body", body); }
  // The same for a job with a damaged body.
  void add_without_body(std::string_view why) { add("body_error", why); }
  // The job is gone, or somewhere else.
  void skip() { ++at_; }

  bool is_full() const;
  // Adds the last line, and returns the page.
  std::string finish();

 private:
  void add(std::string_view name, std::optional<std::string_view> text);
  bool has_room() const { return jobs_ < options_.limit && text_.size() < kPageBytes; }

  ListOptions options_;
  queue::JobListing list_;
  std::vector<queue::ListedJob> pending_;
  std::size_t at_ = 0;    // the first of these without a line
  std::size_t jobs_ = 0;  // jobs in this page
  std::string text_;
};

}  // namespace carillon::server::beanstalk
