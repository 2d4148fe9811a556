// Session: kicks and pauses, and how they get into the audit (session.h).
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "server/api/feed.h"
#include "server/beanstalk/session.h"

namespace carillon::server::beanstalk {
void Session::audit(std::string_view action, std::string_view target, std::string outcome) {
  service_.feed().tell({.at = service_.last_now().utc_ns / 1'000'000,
                        .who = caller_.shown_as(service_.engine().name_of(client_)),
                        .action = std::string(action),
                        .target = std::string(target),
                        .outcome = std::move(outcome)});
}

void Session::go_on_kicking() {
  try {
    service_.engine().kick(client_, service_.now(), kick_);
    if (!kick_.done) return;
    if (!kick_.error.empty()) service_.report_store_failure(kick_.error);
    answer_kick();
  } catch (const queue::StoreError& error) {
    answers_.store_failure(error.what());
  }
  state_ = State::kInput;
}

void Session::answer_kick() {
  replies_.add(kick_.durable_at, "KICKED ", kick_.kicked, kEnd);
  if (kick_.kicked > 0) {
    audit("tube:kick", service_.engine().tube_in_use(client_),
          fmt::format("kicked {}", kick_.kicked));
  }
}

void Session::pause(const Command& c) {
  if (!service_.engine().pause(service_.now(), c.tube, c.delay)) return answers_.not_found();
  replies_.add(0, "PAUSED\r\n");
  audit(c.delay > 0 ? "tube:pause" : "tube:resume", c.tube, "done");
}

}  // namespace carillon::server::beanstalk
