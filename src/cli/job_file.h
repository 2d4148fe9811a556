// The lines of the files that `carillon export` writes and `carillon import` reads: one JSON object
// in each (docs/operations.md describes them).
//
//   {"type":"export","version":1,"id":"9f0c…","server":"127.0.0.1:11300","time":"2030-…",…}
//   {"type":"tube","tube":"mail","max_attempts":5,"backoff":"1000ms"}
//   {"type":"group","tube":"mail","group":"acme","weight":3}
//   {"type":"job","id":7,"tube":"mail","state":"delayed","due":"2030-…","due_ms":…,…}
//   {"type":"page","tube":"mail","after":"d1893488400000-8"}
//   {"type":"schedule","name":"report","tube":"mail","cron":"30 8 * * *",…,"body":"sales"}
//   {"type":"end","jobs":1,"tubes":1}
//
// A line without a type is a job, so that files can be written by hand:
//
//   {"tube":"mail","delay":"3s","body":"hello"}
//
// Thread safety: the functions are pure, the others plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "server/api/schedules.h"
#include "server/api/tubes.h"

namespace carillon::cli {

inline constexpr std::uint64_t kJobFileVersion = 1;

struct FileJob {
  std::optional<std::uint64_t> id;  // in the server that was exported
  std::string tube;
  bool buried = false;
  std::uint32_t priority = 65'536;
  // All but `pri` and `due` or `delay`, as put-job takes them: "ttr=60000ms key=order-7".
  std::string options;
  // "due=…", "delay=…" or nothing.
  std::string when;
  std::string key;  // as it stands in `options`; empty: the job has no key
  // A server has held the job, and told when it was put.
  bool was_listed = false;
  std::string body;
};

// The first line. Its id names this export among all that ever were.
struct FileHead {
  std::string id;
  std::string server;  // its address; empty in a file by hand
};
// Behind the jobs of a page: all jobs of the tube before `after` are in the lines above; without
// it, all jobs.
struct FilePage {
  std::string tube;
  std::optional<std::string> after = {};
  std::vector<std::uint64_t> damaged = {};  // the page leaves them out: their bodies are damaged
  bool incomplete = false;  // jobs may be missing: the server could not read all records
};
struct FileEnd {};  // nothing follows
// A line of a type that this version does not know.
struct FileOther {
  std::string type;
};

using FileLine = std::variant<FileOther, FileHead, FileJob, server::PatchTube, server::PatchGroup,
                              server::NewSchedule, FilePage, FileEnd>;

// Throws std::invalid_argument: `"ttr": not a text or a number`.
FileLine parse_file_line(std::string_view text);

}  // namespace carillon::cli
