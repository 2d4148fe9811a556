// The arguments of commands that name jobs: by their ids, or one by its key.
//
//   JobNames names;
//   add_job_names(command, names, "The jobs to bury");
//   names.check();
//   for (const NamedJob& job : names.all()) api.ask("DELETE", job.path);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"

namespace carillon::cli {

struct NamedJob {
  std::string path;  // of the API: "/v1/jobs/7", "/v1/tubes/mail/keys/invoice-7"
  std::string name;  // as people read it: "job 7", "job with key invoice-7 in tube mail"
};

struct JobNames {
  std::vector<std::uint64_t> ids;
  std::string key;
  std::string tube{kDefaultTube};

  // Throws UsageError if no job is named.
  void check() const;

  std::vector<NamedJob> all() const;
};

// A key, as is_key() has it (server/beanstalk/command.h). Throws as the parsers in arguments.h do.
std::string parse_key(const std::string& text);

// Adds ID ..., --key KEY and --tube TUBE. `names` must outlive the app.
void add_job_names(CLI::App& command, JobNames& names, const std::string& what);

}  // namespace carillon::cli
