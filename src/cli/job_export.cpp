// Writes the jobs of a running server as lines of JSON (job_export.h).

#include "cli/job_export.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <random>
#include <stdexcept>
#include <utility>

#include "cli/counted.h"
#include "cli/error_text.h"
#include "cli/job_file.h"
#include "cli/output.h"

namespace carillon::cli {
namespace {

std::string new_export_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

std::uint64_t utc_now_ms() {
  using std::chrono::milliseconds;
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::floor<milliseconds>(since_epoch).count());
}

std::uint64_t all_jobs(const StatsFields& tube) {
  return tube.number("current-jobs-ready") + tube.number("current-jobs-delayed") +
         tube.number("current-jobs-reserved") + tube.number("current-jobs-buried");
}

}  // namespace

std::string missing_jobs(std::string_view tube) {
  return fmt::format(
      "jobs of tube {} may be missing: a file of the server is damaged, and their records cannot "
      "be read; stop it, and save what is whole: carillon check --data DIR --salvage NEW",
      tube);
}

bool IdSet::insert(std::uint64_t id) {
  constexpr std::uint64_t kStretch = 1 << 16;
  std::vector<bool>& stretch = stretches_[id / kStretch];
  if (stretch.empty()) stretch.resize(kStretch);
  const bool is_new = !stretch[id % kStretch];
  stretch[id % kStretch] = true;
  return is_new;
}

ExportFile::ExportFile(const std::optional<std::string>& name, bool resume)
    : name_(name.value_or("standard output")), is_file_(name.has_value()) {
  if (!is_file_) return;
  constexpr mode_t kMode = 0600;  // bodies may be secret
  const int how = resume ? 0 : O_CREAT | O_EXCL;
  fd_ = base::FileDescriptor(::open(name_.c_str(), O_RDWR | O_CLOEXEC | how, kMode));
  if (!fd_) {
    const bool exists = errno == EEXIST;
    throw Failure(fmt::format("cannot write {}: {}{}", name_, error_text(errno),
                              exists ? "; add --resume if it is an export to be finished" : ""));
  }
  if (resume) read_on();
}

// Lines after the last page line are dropped: they will be written again.
void ExportFile::read_on() {
  std::ifstream in(name_, std::ios::binary);
  std::vector<std::uint64_t> unconfirmed;
  off_t good = 0;
  off_t read = 0;
  std::uint64_t number = 0;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    ++number;
    read += static_cast<off_t>(line.size()) + 1;
    bool is_mark = false;
    try {
      is_mark = take(line, unconfirmed);
    } catch (const std::invalid_argument& error) {
      throw Failure(fmt::format("{} line {}: {}", name_, number, error.what()));
    }
    if (is_mark) good = read;
  }
  if (::ftruncate(fd_.get(), good) != 0 || ::lseek(fd_.get(), good, SEEK_SET) != good)
    throw Failure(fmt::format("cannot write {}: {}", name_, error_text(errno)));
}

// Returns true if the export can go on behind the line.
bool ExportFile::take(const std::string& text, std::vector<std::uint64_t>& unconfirmed) {
  using Kind = FileLine::Kind;
  const FileLine line = parse_file_line(text);
  if (id_.empty() && line.kind != Kind::kExport)
    throw std::invalid_argument("the file is not an export");
  if (line.kind == Kind::kExport) id_ = line.id;
  if (line.kind == Kind::kEnd) ended_ = true;
  if (line.kind == Kind::kJob && line.job.id) unconfirmed.push_back(*line.job.id);
  if (line.kind != Kind::kPage) return line.kind == Kind::kExport || line.kind == Kind::kEnd;
  tube_ = line.tube;
  after_ = line.after;
  for (const std::uint64_t id : line.damaged) {
    damaged_.insert(id);
    ids_.insert(id);
  }
  if (line.incomplete) incomplete_.insert(tube_);
  jobs_ += unconfirmed.size();
  for (const std::uint64_t id : unconfirmed) ids_.insert(id);
  unconfirmed.clear();
  return true;
}

void ExportFile::write(std::string_view lines) {
  if (!is_file_) return write_out(lines);
  while (!lines.empty()) {
    const ssize_t count = ::write(fd_.get(), lines.data(), lines.size());
    if (count >= 0) {
      lines.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      throw Failure(fmt::format("cannot write {}: {}", name_, error_text(errno)));
    }
  }
}

void ExportFile::finish() {
  if (!is_file_ || ::fsync(fd_.get()) == 0) return;
  throw Failure(fmt::format("cannot write {}: {}", name_, error_text(errno)));
}

JobExport::JobExport(Client& client, ExportFile& file, const JobExportOptions& options,
                     const StopSignals& stop, ProgressLine& line)
    : client_(client),
      file_(file),
      options_(options),
      stop_(stop),
      line_(line),
      jobs_(file.jobs()) {}

void JobExport::run() {
  if (!file_.begun()) file_.write(export_file_line(new_export_id(), options_.server, utc_now_ms()));
  std::vector<std::string> tubes = client_.tubes();
  std::sort(tubes.begin(), tubes.end());
  std::erase_if(tubes, [this](const std::string& tube) { return !is_wanted(tube); });
  if (!client_.knows("list-groups -"))
    left_out_ = "the server is too old to tell of groups and schedules";
  for (const std::string& tube : tubes) {
    if (const auto stats = client_.stats_tube(tube)) there_were_ += all_jobs(*stats);
  }
  for (const std::string& tube : tubes) {
    ++tubes_;
    if (tube < file_.tube()) continue;
    const bool is_begun = tube == file_.tube();
    if (is_begun && !file_.after()) continue;
    if (!is_begun) export_settings(tube);
    export_tube(tube, is_begun ? file_.after() : std::nullopt);
  }
  export_schedules();
  file_.finish();
  file_.write(end_file_line(jobs_, tubes_));
  file_.finish();
}

bool JobExport::is_wanted(const std::string& tube) const {
  const std::vector<std::string>& tubes = options_.tubes;
  return tubes.empty() || std::find(tubes.begin(), tubes.end(), tube) != tubes.end();
}

void JobExport::export_settings(const std::string& tube) {
  const auto stats = client_.stats_tube(tube);
  if (!stats) return;
  file_.write(tube_file_line(tube, *stats));
  if (!left_out_.empty() || !stats->has("current-groups")) return;
  for (std::string from; !stop_.came();) {
    const auto page = client_.list_groups(tube, " limit=1000" + from);
    if (!page) return;
    std::string lines;
    for (const std::string& group : page->lines) lines += group_file_line(group);
    file_.write(lines);
    if (!page->next) return;
    from = " after=" + *page->next;
  }
}

// A token of some tubes may not list them.
void JobExport::export_schedules() try {
  if (!left_out_.empty()) return;
  for (const std::string& name : client_.schedules()) {
    if (stop_.came()) throw Interrupted();
    const auto shown = client_.show_schedule(name);
    if (!shown || !is_wanted(tube_of_schedule(*shown))) continue;
    file_.write(schedule_file_line(*shown));
    ++schedules_;
  }
} catch (const Forbidden& error) {
  left_out_ = error.what();
}

void JobExport::export_tube(const std::string& tube, std::optional<std::string> after) {
  do {
    if (stop_.came()) throw Interrupted();
    const std::string from = after ? " after=" + *after : std::string();
    const auto page = client_.list_jobs(tube, " limit=1000 bodies=yes" + from);
    if (!page) return;
    std::string lines;
    std::size_t jobs = 0;
    std::vector<std::uint64_t> damaged;
    for (const std::string& listed : page->lines) {
      const std::string line = line_of(listed, damaged);
      if (!line.empty()) ++jobs;
      lines += line;
    }
    after = page->next;
    file_.write(lines + page_file_line(tube, after, damaged, page->incomplete));
    file_.damaged().insert(damaged.begin(), damaged.end());
    if (page->incomplete) file_.incomplete().insert(tube);
    jobs_ += jobs;
    line_.show(fmt::format("{} of {}", jobs_, counted(std::max(jobs_, there_were_), "job")));
  } while (after);
}

// Returns nothing if the job is gone, or was written before.
std::string JobExport::line_of(const std::string& listed, std::vector<std::uint64_t>& damaged) try {
  const ListedJob job = parse_listed_job(listed);
  if (!file_.ids().insert(job.id)) return {};
  if (job.is_damaged) return damaged.push_back(job.id), "";
  std::optional<std::string> body;
  if (!job.has_body) {
    auto peeked = client_.peek(job.id);
    if (!peeked) return {};
    body = std::move(peeked->body);
  }
  return job_file_line(listed, body);
} catch (const std::invalid_argument& error) {
  throw Failure(fmt::format("the server has listed a job that is not one: {}", error.what()));
}

}  // namespace carillon::cli
