// What the server says about itself to Prometheus (exposition.h): the text of `GET /metrics`.
//
//   Scrape scrape(service, client);
//   while (!scrape.look()) { /* serve others */ }
//   reply(scrape.text());
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "carillon/queue/job_listing.h"
#include "server/service.h"
#include "server/text/exposition.h"

namespace carillon::server::metrics {

// At most this many tubes have series of their own; all others are added up under tube="*". If
// there are more tubes, the choice may change when tubes are forgotten, or at a restart. A
// forgotten tube has no series any more, and another one takes its place.
inline constexpr std::size_t kMostTubes = 100;

// Thread safety: none; it belongs to the thread of the service, which must outlive it.
class Scrape {
 public:
  // Ends the list of tubes that `client` has (Engine::list_tubes). About 0.2 ms.
  Scrape(Service& service, queue::ClientId client);

  // Counts the timers of a wheel, or reads the jobs of some tubes, in about a millisecond. Returns
  // true if it has read everything. Throws queue::StoreError.
  bool look();
  // As of now.
  std::string text() const;
  // The age of the ready job that was due first, in ms; none if no ready job was seen.
  std::optional<queue::Millis> oldest_ready_age() const;
  // When the first delayed job is due; none if no delayed job was seen.
  std::optional<queue::UtcMs> next_due() const;

 private:
  struct SeenTube {
    queue::TubeStats stats;
    // When the first ready job was due, and when the first delayed job is due. None if there is no
    // such job, or it was not among the first ones that were read.
    std::optional<queue::UtcMs> ready_since = {};
    std::optional<queue::UtcMs> next_due = {};
    bool ready_is_known = false;
  };

  // Each goes on with a tube, or with a search, and returns true if it is done.
  bool look_at(SeenTube& tube);
  bool find_first(const SeenTube& tube, const queue::JobFilter& filter,
                  std::optional<queue::UtcMs>& due);
  void tell_of_jobs(Exposition& text, const queue::JobCounts& all) const;
  void tell_of_tubes(Exposition& text) const;
  void tell_of_times(Exposition& text) const;
  void tell_of_wheels(Exposition& text) const;

  Service& service_;
  queue::Now now_;
  queue::TimerCount timers_;
  std::vector<SeenTube> tubes_;
  std::size_t looked_at_ = 0;
  queue::JobListing list_;  // the search under way
  int steps_ = 0;           // steps that the search has taken
};

}  // namespace carillon::server::metrics
