// The lines of the files that `carillon export` writes and `carillon import` reads: one JSON object
// in each (docs/operations.md has them all).
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
#include <vector>

#include "cli/stats_fields.h"

namespace carillon::cli {

inline constexpr std::uint64_t kJobFileVersion = 1;

struct FileJob {
  std::optional<std::uint64_t> id;  // where it comes from
  std::string tube;
  bool buried = false;
  std::uint32_t priority = 65'536;
  // All but `pri` and `due` or `delay`, as put-job takes them: "ttr=60000ms key=order-7".
  std::string options;
  // "due=…", "delay=…" or nothing.
  std::string when;
  std::string key;  // as it stands in `options`; empty: none
  // A server has held the job, and told when it was put.
  bool was_listed = false;
  std::string body;
};

// What is set for a tube or a group, or a schedule.
struct FileSetting {
  std::string tube;
  std::string schedule;  // its name; empty: it is none
  // As set-tube and set-schedule take them: "group=acme weight=3".
  std::string options;
  // What holds back puts, to be set when all of the jobs are put: "puts=refused".
  std::string at_end;
  std::string body;
};

struct FileLine {
  enum class Kind : std::uint8_t {
    kExport,  // the first line: `id` names this export, of all that ever were
    kJob,
    kSetting,
    kPage,   // all jobs of the tube before `after` are in the lines above; without it, all jobs
    kEnd,    // nothing follows
    kOther,  // of a kind that this version does not know; import says so
  };
  Kind kind = Kind::kOther;
  std::string type;
  std::string id;
  FileJob job;
  FileSetting setting;
  std::string tube;
  std::optional<std::string> after;
  // The jobs that a page leaves out because their bodies are damaged.
  std::vector<std::uint64_t> damaged = {};
  // Jobs of the tube may be missing, because the server could not read all records.
  bool incomplete = false;
  std::uint64_t jobs = 0;
};

// Throws std::invalid_argument: `"ttr": not a text or a number`.
FileLine parse_file_line(std::string_view text);

// Returns the line of a job: what list-jobs says of it (docs/protocol.md), with "type" and
// "due_ms". If it says nothing of the body, `body` has it. Throws std::invalid_argument if `listed`
// is not a job.
std::string job_file_line(std::string_view listed, const std::optional<std::string>& body);

// What list-jobs says of a job, as far as an export has to know it.
struct ListedJob {
  std::uint64_t id = 0;
  bool has_body = false;
  bool is_damaged = false;
};
// Throws std::invalid_argument.
ListedJob parse_listed_job(std::string_view text);

// Return the lines of what is set, made of the answers to stats-tube, list-groups (one line) and
// show-schedule; nothing if nothing is set.
std::string tube_file_line(std::string_view tube, const StatsFields& stats);
std::string group_file_line(std::string_view listed);
std::string schedule_file_line(std::string_view shown);
// Returns the tube of a schedule, from the answer to show-schedule.
std::string tube_of_schedule(std::string_view shown);

std::string export_file_line(std::string_view id, std::string_view server, std::uint64_t now_ms);
std::string page_file_line(std::string_view tube, const std::optional<std::string>& after,
                           const std::vector<std::uint64_t>& damaged, bool incomplete);
std::string end_file_line(std::uint64_t jobs, std::uint64_t tubes);

}  // namespace carillon::cli
