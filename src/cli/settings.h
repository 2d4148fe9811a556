// Options that set fields of the API, for fields whose name or value is another one on a command
// line: `--rate 100/1m` sets both fields of an object. The names and the forms of the values are
// those of files of jobs (file_fields.h). Fields that are the same everywhere need no table:
// Asked::add_arguments() makes their options.
//
//   constexpr Setting kSettings[] = {{"rate", "N/TIME", "Jobs that go out per time: 100/1m"}};
//   add_settings(command, asked, FileObject::kTube, kSettings);
//   ... parse ...              // --rate 100/1m is {"limits":{"rate":{"jobs":100,"per":"1m"}}}
//
// A value without the right form is a UsageError; the server checks what it means.
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
