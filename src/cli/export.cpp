// `carillon export`: writes the jobs of a running server, what is set for its tubes and groups, and
// its schedules to a file of JSON lines (job_file.h).
//
// The tubes come in the order of their names: what is set for the tube and its groups, and then its
// jobs in pages. After the jobs of a page stands a line that says where the next one begins, so an
// export that was interrupted goes on from the last such line of its file. A job that a worker
// moves on meanwhile may be listed twice; it is written once. The schedules come last, so that no
// schedule of a file that is imported comes before the jobs.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "cli/api.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/exit_status.h"
#include "cli/file_fields.h"
#include "cli/job_file.h"
#include "cli/json_fields.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/wait.h"
#include "server/text/address.h"
#include "server/text/duration.h"
#include "server/text/json_value.h"
#include "server/text/timestamp.h"

namespace carillon::cli {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kExportExamples =
    R"(Each job is a line of JSON, with its body and all that carillon import needs.
The server goes on meanwhile: a job that is there all the time, and that nobody
kicks or moves to an earlier time, is in the file exactly once. The last line
says that the file is whole. If the command is interrupted, --resume goes on.
What is set for tubes and groups, and the schedules, are in it as well. Tokens,
and endpoints with their secrets, are not: carillon endpoint set.

Examples:
  carillon export --out jobs.jsonl
  carillon export --out jobs.jsonl --resume
  carillon export --tube mail | jq -r 'select(.state == "buried").body')";

struct ExportRequest {
  ServerAddress server;
  std::vector<std::string> tubes;
  std::optional<std::string> out;
  bool resume = false;
  bool json = false;
};

std::string line_of(const json::object& object) {
  return server::json_text(object) + "\n";
}

// --- The file.

// A set of ids of jobs: a bit for each, in those stretches of ids in which there is one.
class IdSet {
 public:
  // Returns false if the set has it.
  bool insert(std::uint64_t id) {
    constexpr std::uint64_t kStretch = 1 << 16;
    std::vector<bool>& stretch = stretches_[id / kStretch];
    if (stretch.empty()) stretch.resize(kStretch);
    const bool is_new = !stretch[id % kStretch];
    stretch[id % kStretch] = true;
    return is_new;
  }

 private:
  std::unordered_map<std::uint64_t, std::vector<bool>> stretches_;
};

// The target of the lines: a file, or standard output.
class ExportFile {
 public:
  // Throws Failure: a file must not exist, or with `resume` it must, and be an export. Without a
  // name it is standard output.
  ExportFile(const std::optional<std::string>& name, bool resume)
      : name_(name.value_or("standard output")) {
    if (!name) return;
    constexpr mode_t kMode = 0600;  // bodies may be secret
    const int how = resume ? 0 : O_CREAT | O_EXCL;
    fd_ = base::FileDescriptor(::open(name_.c_str(), O_RDWR | O_CLOEXEC | how, kMode));
    if (!fd_)
      fail_to_write(errno == EEXIST ? "; add --resume if it is an export to be finished" : "");
    if (resume) read_on();
  }

  // Throws Failure.
  void write(std::string_view lines) {
    if (!fd_) return write_out(lines);
    while (!lines.empty()) {
      const ssize_t count = ::write(fd_.get(), lines.data(), lines.size());
      if (count < 0 && errno != EINTR) fail_to_write();
      if (count > 0) lines.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  // Everything is on the disk when this returns. Throws Failure.
  void finish() {
    if (fd_ && ::fsync(fd_.get()) != 0) fail_to_write();
  }

  bool is_whole() const { return damaged.empty() && incomplete.empty(); }

  // The contents of the file, from an export before and from this one.
  bool begun = false;
  bool ended = false;
  std::string server;  // the address in its head
  FilePage last = {};  // its last page; its tube is empty if there is no page
  std::uint64_t jobs = 0;
  IdSet ids;
  // Jobs that are not in it, because the server cannot read their bodies; and tubes of which it
  // cannot read all records, so that jobs may be missing.
  std::set<std::uint64_t> damaged;
  std::set<std::string> incomplete;

 private:
  // Lines after the last page line are dropped: they will be written again.
  void read_on() {
    std::ifstream in(name_, std::ios::binary);
    std::vector<std::uint64_t> unconfirmed;
    off_t good = 0;
    off_t read = 0;
    std::uint64_t number = 0;
    for (std::string line; std::getline(in, line) && !in.eof();) {
      ++number;
      read += static_cast<off_t>(line.size()) + 1;
      try {
        if (take(line, unconfirmed)) good = read;
      } catch (const std::invalid_argument& error) {
        throw Failure(fmt::format("{} line {}: {}", name_, number, error.what()));
      }
    }
    if (::ftruncate(fd_.get(), good) != 0 || ::lseek(fd_.get(), good, SEEK_SET) != good)
      fail_to_write();
  }

  // Returns true if the export can go on behind the line.
  bool take(const std::string& text, std::vector<std::uint64_t>& unconfirmed) {
    const FileLine line = parse_file_line(text);
    const auto* const head = std::get_if<FileHead>(&line);
    const bool is_head = head != nullptr;
    if (is_head) this->server = head->server;
    if (!begun && !is_head) throw std::invalid_argument("the file is not an export");
    begun = true;
    ended = ended || std::holds_alternative<FileEnd>(line);
    if (const auto* const job = std::get_if<FileJob>(&line); job != nullptr && job->id)
      unconfirmed.push_back(*job->id);
    const auto* const page = std::get_if<FilePage>(&line);
    if (page == nullptr) return is_head || ended;
    last = *page;
    damaged.insert(page->damaged.begin(), page->damaged.end());
    if (page->incomplete) incomplete.insert(page->tube);
    jobs += unconfirmed.size();
    unconfirmed.insert(unconfirmed.end(), page->damaged.begin(), page->damaged.end());
    for (const std::uint64_t id : unconfirmed) ids.insert(id);
    unconfirmed.clear();
    return true;
  }

  [[noreturn]] void fail_to_write(std::string_view advice = "") const {
    throw Failure(fmt::format("cannot write {}: {}{}", name_, error_text(errno), advice));
  }

  std::string name_;  // in messages
  base::FileDescriptor fd_;
};

// --- What goes into it.

std::string head_line(const ServerAddress& server) {
  const std::uint64_t now = utc_now_ms();
  std::random_device random;
  return line_of({{"type", "export"},
                  {"version", kJobFileVersion},
                  {"id", fmt::format("{:08x}{:08x}", random(), random())},
                  {"server", server::to_string(server)},
                  {"time", server::format_timestamp(now)},
                  {"time_ms", now}});
}

// Puts what identifies the object in front of its fields. Returns no line if no field is set.
std::string line_of_settings(json::object line, const json::object& fields) {
  const std::size_t none = line.size();
  // Fields with these values are left out: they are what a new tube or group has.
  const auto says_nothing = [](const json::value& value) {
    return value == 0 || value == "0ms" || value == "0%" || value == "returns";
  };
  for (const auto& [name, value] : fields)
    if (!says_nothing(value)) line[name] = value;
  return line.size() == none ? "" : line_of(line);
}

std::string tube_line(const json::value& tube) {
  return line_of_settings({{"type", "tube"}, {"tube", tube.at("name")}},
                          file_fields(FileObject::kTube, tube));
}

std::string group_line(const json::value& group) {
  json::object fields = file_fields(FileObject::kGroup, group);
  for (const char* const count : {"ready", "reserved", "delayed", "buried"}) fields.erase(count);
  const bool is_set = fields.contains("max_running") || fields.contains("rate");
  if (fields.at("weight") == 1 && !is_set) return "";
  return line_of_settings({{"type", "group"}}, fields);
}

std::string schedule_line(const json::object& schedule) {
  json::object line{{"type", "schedule"}};
  for (const auto& [name, value] : file_fields(FileObject::kSchedule, schedule)) line[name] = value;
  for (const auto& [name, value] : file_fields(FileObject::kScheduledJob, schedule.at("job")))
    line[name] = value;
  return line_of(line);
}

std::string page_line(const FilePage& page) {
  json::object line{{"type", "page"}, {"tube", page.tube}, {"after", nullptr}};
  if (page.after) line["after"] = *page.after;
  if (!page.damaged.empty())
    line["damaged"] = json::array(page.damaged.begin(), page.damaged.end());
  if (page.incomplete) line["incomplete"] = true;
  return line_of(line);
}

// --- The export.

// Calls read(), which reads a tube or group that was listed and may be gone by now.
template <class Read>
void unless_gone(Read read) try {
  read();
} catch (const Refusal& refusal) {
  if (refusal.status != 404) throw;
}

struct BodyIsDamaged {};

bool has_body(const json::object& job) {
  return job.contains("body") || job.contains("body_base64");
}

class Export {
 public:
  Export(Api& api, const ExportRequest& request, const StopSignals& stop, ProgressLine& line)
      : api_(api), request_(request), stop_(stop), line_(line) {}

  // Asks which tubes there are. Throws Interrupted if a signal has come, and Failure, also if a
  // tube that is named is not there; so do the next ones.
  void begin() {
    read_pages("/v1/tubes", "", [&](json::object& page) {
      for (json::value& tube : page.at("tubes").as_array()) {
        if (!is_wanted(tube.at("name"))) continue;
        for (const char* const state : {"ready", "delayed", "reserved", "buried"})
          there_were_ += tube.at("jobs").at(state).to_number<std::uint64_t>();
        tubes_.push_back(std::move(tube));
      }
    });
    if (!request_.resume) require_named_tubes();
  }

  // REQUIRES: begin() has returned.
  void run(ExportFile& file) {
    if (!file.begun) file.write(head_line(request_.server));
    const FilePage last = file.last;
    for (const json::value& tube : tubes_) {
      const std::string name(tube.at("name").as_string());
      if (name < last.tube) continue;
      const bool is_begun = name == last.tube;
      if (is_begun && !last.after) continue;
      if (!is_begun) {
        file.write(tube_line(tube));
        if (tube.at("groups") != 0) export_groups(name, file);
      }
      export_jobs(name, is_begun ? *last.after : "", file);
    }
    export_schedules(file);
    file.finish();
    file.write(line_of({{"type", "end"}, {"jobs", file.jobs}, {"tubes", tubes_.size()}}));
    file.finish();
  }

  std::uint64_t tubes() const { return tubes_.size(); }
  std::uint64_t schedules() const { return schedules_; }

 private:
  bool is_wanted(const json::value& tube) const {
    const std::vector<std::string>& tubes = request_.tubes;
    const std::string_view name = tube.as_string();
    return tubes.empty() || std::find(tubes.begin(), tubes.end(), name) != tubes.end();
  }

  // A tube may have a schedule and nothing else.
  void require_named_tubes() {
    std::set<std::string> missing(request_.tubes.begin(), request_.tubes.end());
    for (const json::value& tube : tubes_) missing.erase(std::string(tube.at("name").as_string()));
    if (missing.empty()) return;
    read_pages("/v1/schedules", "", [&](json::object& page) {
      for (const json::value& schedule : page.at("schedules").as_array())
        missing.erase(std::string(schedule.at("job").at("tube").as_string()));
    });
    if (!missing.empty()) throw no_such_tube(*missing.begin());
  }

  // Calls `take` with each page of the list.
  void read_pages(std::string target, std::string token,
                  const std::function<void(json::object&)>& take) {
    target += target.find('?') == target.npos ? "?page_size=1000" : "&page_size=1000";
    if (stop_.came()) throw Interrupted();
    api_.read_pages(target, std::move(token), [&](json::object& page) {
      take(page);
      if (stop_.came()) throw Interrupted();
      return true;
    });
  }

  void export_groups(const std::string& tube, ExportFile& file) {
    unless_gone([&] {
      read_pages("/v1/tubes/" + url_part(tube) + "/groups", "", [&](json::object& page) {
        std::string lines;
        for (const json::value& group : page.at("groups").as_array()) lines += group_line(group);
        file.write(lines);
      });
    });
  }

  void export_jobs(const std::string& tube, std::string token, ExportFile& file) try {
    const std::string target = "/v1/tubes/" + url_part(tube) + "/jobs?bodies=true";
    read_pages(target, std::move(token), [&](json::object& listed) {
      FilePage page{.tube = tube, .incomplete = listed.contains("incomplete")};
      if (const json::value& next = listed.at("next_page_token"); next.is_string())
        page.after = std::string(next.get_string());
      std::string lines;
      std::size_t jobs = 0;
      for (const json::value& job : listed.at("jobs").as_array()) {
        const std::string line = job_line(job, file, page);
        if (!line.empty()) ++jobs;
        lines += line;
      }
      file.write(lines + page_line(page));
      file.damaged.insert(page.damaged.begin(), page.damaged.end());
      if (page.incomplete) file.incomplete.insert(tube);
      file.jobs += jobs;
      line_.show(
          fmt::format("{} of {}", file.jobs, counted(std::max(file.jobs, there_were_), "job")));
    });
  } catch (const Refusal& refusal) {
    if (refusal.status != 404) throw;
    file.write(page_line({.tube = tube}));  // it is gone, and so are its jobs
  }

  // Returns no line if the job is gone, or was written before.
  std::string job_line(json::value job, ExportFile& file, FilePage& page) {
    const auto id = job.at("id").to_number<std::uint64_t>();
    if (!file.ids.insert(id)) return "";
    if (job.as_object().contains("body_error")) return page.damaged.push_back(id), "";
    if (!has_body(job.as_object())) {
      try {
        job = large_job(id);
      } catch (const BodyIsDamaged&) {
        return page.damaged.push_back(id), "";
      }
      if (job.is_null()) return "";
    }
    json::object line{{"type", "job"}};
    for (auto& [name, value] : file_fields(FileObject::kJob, job)) {
      line[name] = value;
      if (name == "due")
        line["due_ms"] = server::parse_timestamp(std::string_view(value.as_string()));
    }
    return line_of(line);
  }

  // Returns the job, whose body is too large for a page, with its body, both as they were at one
  // moment. Null if it is gone. Throws BodyIsDamaged.
  json::value large_job(std::uint64_t id) {
    constexpr int kTries = 5;
    const std::string path = fmt::format("/v1/jobs/{}", id);
    for (int tries = 1;; ++tries) {
      try {
        json::object job = api_.get(path);
        if (has_body(job)) return job;
        const json::object before = file_fields(FileObject::kJob, job);
        add_body(job, api_.fetch("GET", path + "/body"));
        if (file_fields(FileObject::kJob, api_.get(path)) == before) return job;
        if (tries == kTries) throw Failure(fmt::format("job {} changes again and again", id));
      } catch (const Refusal& refusal) {
        if (refusal.status != 404) throw;
        return nullptr;
      } catch (const ServerFailed& failed) {
        if (failed.status != 500) throw;
        if (tries == kTries) throw BodyIsDamaged();
      } catch (const Unavailable&) {  // the answer was cut: by damage, a replaced body, or the end
        if (tries < kTries) continue;
        api_.get("/healthz");
        throw BodyIsDamaged();
      }
    }
  }

  void export_schedules(ExportFile& file) {
    read_pages("/v1/schedules", "", [&](json::object& page) {
      for (const json::value& listed : page.at("schedules").as_array()) {
        if (!is_wanted(listed.at("job").at("tube"))) continue;
        if (stop_.came()) throw Interrupted();
        const std::string_view name = listed.at("name").as_string();
        unless_gone([&] {
          file.write(schedule_line(api_.get("/v1/schedules/" + url_part(name))));
          ++schedules_;
        });
      }
    });
  }

  Api& api_;
  const ExportRequest& request_;
  const StopSignals& stop_;
  ProgressLine& line_;
  std::vector<json::value> tubes_;
  std::uint64_t there_were_ = 0;  // jobs at the beginning
  std::uint64_t schedules_ = 0;
};

// --- The command.

// Says what is missing in the file.
int report_missing(const ExportFile& file) {
  for (const std::uint64_t id : file.damaged)
    remark(fmt::format("job {} is not in it: its body is damaged", id));
  for (const std::string& tube : file.incomplete) remark_missing_jobs(tube);
  return file.is_whole() ? kSuccess : kFailure;
}

void report(const ExportRequest& request, const Export& done, std::uint64_t jobs,
            milliseconds took) {
  const std::string schedules =
      done.schedules() > 0 ? " and " + counted(done.schedules(), "schedule") : "";
  const std::string text =
      fmt::format("{} of {}{} in {}", counted(jobs, "job"), counted(done.tubes(), "tube"),
                  schedules, server::short_duration(took));
  if (!request.out) return remark(text);
  write_result(request.json,
               {{"file", *request.out},
                {"jobs", jobs},
                {"tubes", done.tubes()},
                {"schedules", done.schedules()},
                {"milliseconds", took.count()}},
               fmt::format("{}: {}", *request.out, text));
}

int export_jobs(const ExportRequest& request) {
  if (request.resume && !request.out) throw UsageError("--resume needs the file: --out FILE");
  const auto began = Clock::now();
  const StopSignals signals;
  ProgressLine line;
  Api api(request.server, signals.fd());
  Export jobs(api, request, signals, line);
  jobs.begin();  // before the file is made: the server may be down
  ExportFile file(request.out, request.resume);
  // Another server's jobs have other ids, and other pages.
  if (const std::string here = server::to_string(request.server);
      !file.server.empty() && file.server != here)
    throw Failure(
        fmt::format("{} is an export of {}, and not of {}", *request.out, file.server, here));
  if (file.ended) {
    remark(fmt::format("{} {}", *request.out,
                       file.is_whole() ? "is whole already" : "has all that could be read"));
    return report_missing(file);
  }

  const auto failure = [&](std::string_view why) {
    return Failure(fmt::format("{} after {}{}", why, counted(file.jobs, "job"),
                               request.out ? "; add --resume to go on" : ""));
  };
  try {
    jobs.run(file);
  } catch (const Interrupted&) {
    throw failure("interrupted");
  } catch (const Unavailable& error) {
    throw failure(fmt::format("{},", error.what()));
  }

  line.clear();
  report(request, jobs, file.jobs, time_since(began));
  return report_missing(file);
}

}  // namespace

void add_export(CLI::App& command, int& exit_code) {
  ExportRequest& request = set_action(command, exit_code, kExportExamples, export_jobs);
  add_value(
      command, "--out FILE", request.out,
      [](const std::string& text) {
        if (text.empty()) throw std::invalid_argument("\"\": not a file's name");
        return text;
      },
      "Where to write (default: standard output)");
  add_flag(command, "--resume", request.resume, "Go on with an export that was interrupted");
  add_value(command, "--tube TUBE", request.tubes, parse_tube,
            "Only this one, or these (default: all)");
  add_json_and_server(command, request, R"(With --out: print {"file":...,"jobs":...,"tubes":...,
"schedules":...,"milliseconds":...})");
}

}  // namespace carillon::cli
