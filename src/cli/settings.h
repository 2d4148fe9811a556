// Options that set limits, retries and other fields of the API: fields that have another name on a
// command line, or whose value people write in a shorter form. Names and forms are those of files
// (file_fields.h).
//
//   constexpr Setting kSettings[] = {{"rate", "N/TIME", "Jobs that go out per time: 100/1m"}};
//   add_settings(command, asked, FileObject::kTube, kSettings);
//   ... parse ...              // --rate 100/1m is {"limits":{"rate":{"jobs":100,"per":"1m"}}}
//
// The server checks the values; these functions only split them.
#pragma once

#include <span>

#include "cli/asked.h"
#include "cli/file_fields.h"

namespace carillon::cli {

struct Setting {
  const char* field;  // "max_running", for --max-running
  const char* type;   // "N"
  const char* help;
};

// Adds the options. `asked` must outlive the command.
void add_settings(CLI::App& command, Asked& asked, FileObject of,
                  std::span<const Setting> settings);

// Adds --max-attempts, --backoff, --jitter and --lost.
void add_retry_settings(CLI::App& command, Asked& asked, FileObject of);

}  // namespace carillon::cli
