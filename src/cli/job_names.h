// The arguments of commands that name jobs: by their ids, or one by its key.
//
//   JobNames names;
//   add_job_names(command, names, "The jobs to bury");
//   names.check();
//   for (const NamedJob& job : names.all(client)) client.bury_job(job.word, "");
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/client.h"

namespace carillon::cli {

struct NamedJob {
  std::string word;  // as the protocol takes it: "7", "key=invoice-7"
  std::string name;  // as people read it: "job 7", "job with key invoice-7 in tube mail"
};

struct JobNames {
  std::vector<std::uint64_t> ids;
  std::string key;
  std::string tube{kDefaultTube};

  // Throws UsageError if no job is named.
  void check() const;

  // Returns the jobs. Lets the client use the tube of the key.
  std::vector<NamedJob> all(Client& client) const;
};

// Returns true if the job was changed; or else tells why `command` has left it alone.
bool is_changed(std::string_view command, const NamedJob& job, ChangeAnswer answer);

// A key, as is_key() has it (server/beanstalk/command.h). Throws as the parsers in arguments.h do.
std::string parse_key(const std::string& text);

// Adds ID ..., --key KEY and --tube TUBE. `names` must outlive the app.
void add_job_names(CLI::App& command, JobNames& names, const std::string& what);

}  // namespace carillon::cli
