// Session: what the client's token allows (session.h).
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "server/beanstalk/session.h"

namespace carillon::server::beanstalk {
// A wrong token ends the connection, so that each guess costs a new one.
void Session::show_token(const Command& c) {
  watched_are_allowed_ = false;
  if (caller_.show(c.tube)) return replies_.add(0, "AUTHENTICATED\r\n");
  ++service_.counters().wrong_tokens;
  rejection_ = RejectReason::kWrongToken;
  replies_.add(0, "NOT_AUTHENTICATED\r\n");
  close();
}

bool Session::may_go_on() {
  watched_are_allowed_ = false;
  return caller_.look_again();
}

// If the client's token does not allow the command, answers the client, and returns true. It does
// so, too, if a body follows and the store fails while the tube of its job is looked up.
bool Session::is_forbidden(const Command& command) {
  const Rights rights = entry_of(command.verb).rights;
  std::string why = caller_.lacks(rights);
  // A worker learns the ttr and the attempts of the job that it holds.
  if (command.verb == Verb::kStatsJob && service_.engine().holds(client_, command.id))
    why = caller_.lacks({Needs::kWork, rights.reach});
  try {
    if (why.empty() && rights.needs != Needs::kNothing && !caller_.may_use_all_tubes())
      why = lacks_tubes(command, rights.reach);
  } catch (const queue::StoreError& error) {
    if (command.body != Command::Body::kCounted) throw;
    service_.report_store_failure(error.what());
    discard_and_answer(command.bytes, "INTERNAL_ERROR\r\n");
    return true;
  }
  if (why.empty()) return false;
  if (command.body == Command::Body::kCounted) {
    refuse_body(command.bytes, kForbidden, why);
  } else {
    replies_.add(0, kForbidden, std::string_view(why), kEnd);
  }
  return true;
}

// If a tube or job does not exist, the command itself says so.
std::string Session::lacks_tubes(const Command& command, Reach reach) {
  queue::Engine& engine = service_.engine();
  switch (reach) {
    case Reach::kTube:
      return caller_.lacks_tube(command.tube);
    case Reach::kTubeInUse:
      return caller_.lacks_tube(engine.tube_in_use(client_));
    case Reach::kWatched:
      return lacks_watched();
    case Reach::kJob:
      if (command.key.empty()) return lacks_tube_of(command.id);
      return caller_.lacks_tube(engine.tube_in_use(client_));
    default:
      return {};
  }
}

std::string Session::lacks_tube_of(queue::JobId id) {
  const auto stats = service_.engine().job_stats(service_.now(), id);
  return stats ? caller_.lacks_tube_of(fmt::format("job {}", id), stats->tube) : std::string();
}

// A client can only watch allowed tubes: so the result is valid until the token changes.
std::string Session::lacks_watched() {
  if (watched_are_allowed_) return {};
  for (const auto& tube : service_.engine().watched(client_))
    if (std::string why = caller_.lacks_tube(tube); !why.empty()) return why;
  watched_are_allowed_ = true;
  return {};
}

}  // namespace carillon::server::beanstalk
