// Verifies every checksum in a data directory that no server uses, for `carillon check`.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "carillon/queue/store.h"
#include "carillon/queue/store_check.h"
#include "cli/checks.h"
#include "cli/exit_status.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/wait.h"
#include "server/text/json_text.h"
#include "server/text/timestamp.h"

namespace carillon::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownDamages = 10;  // lines of damages

std::string ids_text(const queue::StoreReport& report) {
  std::string text;
  for (const queue::JobId id : report.some_lost)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", id);
  return text + (report.lost_jobs > report.some_lost.size() ? ", ..." : "");
}

// Adds a finding: a failure, or after a salvage, which has saved the rest, a warning.
using Tell = void (Findings::*)(std::string subject, std::string found, std::string advice);

void add_damages(const queue::StoreReport& report, Tell tell, const std::string& advice,
                 Findings& findings) {
  const std::string_view jobs = report.lost_jobs == 0 ? "no job is known to be lost by it"
                                : report.lost_jobs > report.some_lost.size()
                                    ? "the line \"jobs\" names some of the jobs"
                                    : "the line \"jobs\" names the jobs";
  for (std::size_t i = 0; i < report.damages.size() && i < kShownDamages; ++i)
    (findings.*tell)("damage", report.damages[i], std::string(jobs));
  if (report.damages.size() > kShownDamages)
    (findings.*tell)("damage",
                     fmt::format("and {} more places", report.damages.size() - kShownDamages),
                     std::string(jobs));
  for (const std::string& line : report.lost_changes)
    (findings.*tell)("changes", line, "find the jobs that were done since, before workers run");
  for (const std::string& line : report.dropped)
    findings.warn("log", line, "nothing: a start leaves it out, too");
  if (!report.can_be_salvaged) {
    findings.fail("jobs", "cannot be read, nor can --salvage save them", "go back to a backup");
  } else if (report.lost_jobs == 0) {
    findings.warn("jobs", "none is known to be lost", advice);
  } else {
    (findings.*tell)("jobs",
                     fmt::format("{} cannot be read ({}); {} are whole",
                                 counted(report.lost_jobs, "job"), ids_text(report), report.jobs),
                     advice);
  }
}

std::string line_of(const queue::LostJob& job) {
  std::string line = fmt::format("{{\"id\":{}", job.id);
  const auto add = [&](std::string_view name, std::string_view text) {
    line += ',';
    server::append_json_field(line, name, text);
  };
  if (!job.tube.empty()) add("tube", job.tube);
  if (job.due) add("due", server::format_timestamp(*job.due));
  add("why", job.why);
  if (job.body) add("body", *job.body);
  return line + "}\n";
}

void add_left_out(const queue::StoreReport& report, const std::string& list, Findings& findings) {
  const std::string advice = fmt::format("{} has these lines, too", list);
  for (std::size_t i = 0; i < report.left_out.size() && i < kShownDamages; ++i)
    findings.warn("left out", report.left_out[i], advice);
  if (report.left_out.size() > kShownDamages)
    findings.warn("left out", fmt::format("and {} more", report.left_out.size() - kShownDamages),
                  advice);
}

std::string line_of_left_out(const std::string& what) {
  std::string line = "{";
  server::append_json_field(line, "left_out", what);
  return line + "}\n";
}

// Bodies are in it, so only its owner may read it.
std::FILE* make_list(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  return file < 0 ? nullptr : ::fdopen(file, "w");
}

}  // namespace

bool has_store(const std::string& directory) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename();
    if (name == "CURRENT" || name.starts_with("MANIFEST-")) return true;
  }
  return false;
}

void check_store(const std::string& directory, const StopSignals& signals, Findings& findings) {
  ProgressLine line;
  try {
    const queue::StoreReport report = queue::check_store(directory, line.until(signals));
    const std::string read =
        fmt::format("{} in {}", size_text(report.bytes), counted(report.files, "file"));
    if (report.damages.empty()) return findings.ok("jobs", read + ", every checksum is right");
    add_damages(report, &Findings::fail,
                fmt::format("carillon check --data {} --salvage NEW makes a directory with what is "
                            "whole, and a list of what is not",
                            directory),
                findings);
  } catch (const std::exception& error) {
    if (signals.came()) throw Interrupted();
    findings.fail("jobs", error.what(), "see docs/operations.md, Damaged files");
  }
}

void salvage_store(const std::string& directory, const std::string& to, const StopSignals& signals,
                   Findings& findings) {
  const std::string list = to + ".lost";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(make_list(list), &std::fclose);
  if (!file) {
    return findings.fail("salvage", fmt::format("cannot make {}: {}", list, error_text(errno)),
                         "name another directory");
  }
  const auto remove_list = [&] { std::remove(list.c_str()); };
  ProgressLine line;
  try {
    const auto add_lines = [&](const std::string& lines) {
      if (std::fwrite(lines.data(), 1, lines.size(), file.get()) != lines.size())
        throw queue::StoreError(fmt::format("cannot write {}: {}", list, error_text(errno)));
    };
    const queue::StoreReport report =
        queue::salvage_store(directory, to, line.until(signals),
                             [&](const queue::LostJob& job) { add_lines(line_of(job)); });
    for (const std::string& what : report.left_out) add_lines(line_of_left_out(what));
    if (std::fflush(file.get()) != 0 || ::fsync(::fileno(file.get())) != 0)
      throw queue::StoreError(fmt::format("cannot write {}: {}", list, error_text(errno)));
    findings.ok("salvage", fmt::format("{} has {}", to, counted(report.jobs, "job")));
    if (!report.damages.empty())
      add_damages(report, &Findings::warn, fmt::format("carillon serve --data {}", to), findings);
    add_left_out(report, list, findings);
    if (report.lost_jobs == 0 && report.left_out.empty()) return remove_list();
    if (report.lost_jobs == 0) return;
    findings.warn("lost",
                  fmt::format("{} lists the jobs that cannot be read, with the body where "
                              "it can be",
                              list),
                  "put again what is needed");
  } catch (const std::exception& error) {
    remove_list();
    if (signals.came()) throw Interrupted();
    findings.fail("salvage", error.what(), "see docs/operations.md, Damaged files");
  }
}

}  // namespace carillon::cli
