// Parses the names of jobs.

#include "cli/job_names.h"

#include <fmt/format.h>

#include <stdexcept>

#include "cli/api.h"
#include "server/beanstalk/command.h"

namespace carillon::cli {

std::string parse_key(const std::string& text) {
  if (server::is_key(text)) return text;
  throw std::invalid_argument(fmt::format("\"{}\": a key has {}", text, server::kKeyRule));
}

void JobNames::check() const {
  if (ids.empty() && key.empty()) throw UsageError("give the jobs' IDs, or the --key of one");
}

std::vector<NamedJob> JobNames::all() const {
  std::vector<NamedJob> jobs;
  for (const std::uint64_t id : ids)
    jobs.push_back({.path = fmt::format("/v1/jobs/{}", id), .name = fmt::format("job {}", id)});
  if (key.empty()) return jobs;
  return {{.path = fmt::format("/v1/tubes/{}/keys/{}", url_part(tube), url_part(key)),
           .name = fmt::format("job with key {} in tube {}", key, tube)}};
}

void add_job_names(CLI::App& command, JobNames& names, const std::string& what) {
  const Argument ids = add_value(command, "ID", names.ids, parse_job_id, what).type_name("");
  add_value(command, "--key", names.key, parse_key, "The job with this key")
      .type_name("KEY")
      .excludes(ids);
  add_tube_option(command, names.tube, "Of this tube (default: default)").excludes(ids);
}

}  // namespace carillon::cli
