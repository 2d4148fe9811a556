// Jobs that their keys name: created, replaced, looked at, changed and cancelled (routes.h).
#include <fmt/format.h>

#include "server/http/one_job.h"
#include "server/http/problem.h"
#include "server/http/routes.h"

namespace carillon::server::http {

namespace {

queue::JobId named_job(Exchange& x) {
  const std::string& tube = x.use_tube();
  const std::string& key = x.names[1];
  const auto id = x.engine().job_with_key(x.client(), key);
  if (id) return *id;
  throw Problem(kNotFound, fmt::format("tube {} has no job with the key {}", tube, key));
}

// The path and If-None-Match tell these.
void refuse_headers(const Request& request) {
  for (const auto& [name, value] : request.headers) {
    if (name != "carillon-key" && name != "carillon-on-conflict") continue;
    throw Problem(
        kBadRequest,
        fmt::format("{}: {}: the path tells the key; If-None-Match and If-Match tell what "
                    "becomes of a job that has it",
                    name, value));
  }
}

}  // namespace

// The same PUT twice leaves one job. `If-None-Match: *` creates only, `If-Match` replaces only.
void put_key(Exchange& x) {
  x.use_tube();
  require_key(x.names[1]);
  JobFields job;
  if (describes_job(x.request)) {
    boost::json::object object = parse_object(x.request.body);
    FieldFaults faults;
    for (const std::string_view name : {"key", "on_conflict"})
      if (object.contains(name))
        faults.add(fmt::format("/{}", name), "the path and the headers tell it");
    object["key"] = x.names[1];
    add_trace(x.request, object);
    read_job(object, "", faults, job);
    faults.throw_if_any();
  } else {
    refuse_headers(x.request);
    read_plain_job(x.request, job);
    job.key = x.names[1];
    job.order.key = job.key;
  }
  const bool create_only = x.request.header("if-none-match") == "*";
  job.order.on_conflict = create_only ? queue::OnConflict::kReject : queue::OnConflict::kReplace;
  if (!x.request.header("if-match").empty()) require_match(x, named_job(x));
  answer_put(x, put(x, job));
}

void answer_key(Exchange& x) {
  answer_one(x, named_job(x));
}

void patch_key(Exchange& x) {
  patch_one(x, named_job(x));
}

void cancel_key(Exchange& x) {
  cancel_one(x, named_job(x));
}

}  // namespace carillon::server::http
