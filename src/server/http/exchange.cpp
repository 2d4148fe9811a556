// Exchange: what several functions of the API have in common (exchange.h).
#include "server/http/exchange.h"

#include <fmt/format.h>

#include <charconv>

#include "server/beanstalk/command.h"
#include "server/http/problem.h"

namespace carillon::server::http {

queue::JobId Exchange::job_id() const {
  const std::string& text = names.front();
  queue::JobId id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error == std::errc() && end == text.data() + text.size() && id >= 1 && id <= queue::kLastId)
    return id;
  throw Problem(kBadRequest, fmt::format("\"{}\": not the id of a job, a number from 1 to {}", text,
                                         queue::kLastId));
}

const std::string& Exchange::use_tube() {
  const std::string& tube = names.front();
  if (!beanstalk::is_tube_name(tube)) {
    throw Problem(kBadRequest,
                  fmt::format("\"{}\": not the name of a tube: 1 to {} letters, digits "
                              "and any of -+/;.$_(), and no - in front",
                              tube, beanstalk::kMaxTubeName));
  }
  engine().use(client_, tube);
  return tube;
}

void Exchange::require_room() {
  if (service_.draining()) throw Problem(kDraining, "the server is draining (SIGUSR1)");
  if (service_.is_out_of_memory()) {
    service_.report_out_of_memory(kSystemGivesNone);
    throw Problem(kNoMemory, std::string(kSystemGivesNone));
  }
  if (service_.refuses_puts(now_))
    throw Problem(kNoSpace, "the disk, or the memory for jobs, is nearly full");
}

void Exchange::read_body(queue::JobId job, queue::JobId body_id, OnBody then, Again again) {
  awaited_of_ = job;
  awaited_ = body_id;
  on_body_ = std::move(then);
  again_ = again;
}

void Exchange::body_came(const Body& body) {
  now_ = service_.now();
  const queue::JobId awaited = *std::exchange(awaited_, std::nullopt);
  if (body.bytes) return std::exchange(on_body_, {})(*this, *body.bytes);
  if (body.damaged) {
    const auto job = engine().peek(now_, awaited_of_);
    if (!job || job->body_id != awaited) return again_(*this, awaited_of_);
  }
  service_.report_store_failure(body.error);
  throw Problem(kFailed, "the body cannot be read: " + body.error);
}

}  // namespace carillon::server::http
