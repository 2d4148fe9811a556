// What the server tells of itself to Prometheus (exposition.h): the text of `GET /metrics`.
//
//   Scrape scrape(service, client);
//   while (!scrape.look()) { /* serve others */ }
//   reply(scrape.text(Exposition::Format::kPrometheus));
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "carillon/queue/job_listing.h"
#include "server/service.h"
#include "server/text/exposition.h"

namespace carillon::server::metrics {

// So many tubes have series of their own; all others are added up under tube="*". With more tubes
// than that, which ones have their own may change when tubes are forgotten, or at a restart.
// A tube that is forgotten has no series any more, and another one takes its place.
inline constexpr std::size_t kMostTubes = 100;

// Thread safety: none; it belongs to the thread of the service, which must outlive it.
class Scrape {
 public:
  // Ends the list of tubes that `client` has (Engine::list_tubes). About 0.2 ms.
  Scrape(Service& service, queue::ClientId client);

  // Counts the timers of a wheel, or looks at the jobs of some tubes, in about a millisecond.
  // Returns true if it has looked at all. Throws queue::StoreError.
  bool look();
  // As of now.
  std::string text(Exposition::Format format) const;
  // Of the ready job that was due first, in ms; none if no ready job was seen.
  std::optional<queue::Millis> oldest_ready_age() const;
  // When the first delayed job is due; none if none was seen.
  std::optional<queue::UtcMs> next_due() const;

 private:
  struct SeenTube {
    queue::TubeStats stats;
    // Of the ready job that was due first, and of the delayed one that is. None if there is none,
    // or if it was not among the first ones that were looked at.
    std::optional<queue::UtcMs> ready_since = {};
    std::optional<queue::UtcMs> next_due = {};
    bool ready_is_known = false;
  };

  // These go on with a tube, and with a search, and return true if it is over.
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
  queue::JobListing list_;  // of the search under way
  int steps_ = 0;           // that it has taken
};

}  // namespace carillon::server::metrics
