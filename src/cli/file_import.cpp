// Puts the jobs of a file (job_file.h) into a server, and sets what the file says about tubes,
// groups and schedules: `carillon import FILE`.
//
// The jobs go in batches over the line protocol, each put by one put-jobs: the server puts all of a
// batch or nothing. A batch has a token, made of the export's id, its first line and its tube. The
// token counts for a week, so when the same file is imported again, the server knows the batches
// that it has. A name that the user gives the import is a part of the token, too: to put the same
// lines again, or other ones behind the same first line. To make that work, where a batch ends
// depends on the file alone: at another tube, after a number of jobs or bytes, before a key that it
// has already, and at the end of each page of the export, because an export that was interrupted
// goes on there.
//
// Settings and schedules go over HTTP. They can be set again, in the same way. A tube that must
// take no jobs takes them until the end of the file.
//
// A body that is too large for a batch is put by itself, with a key in place of the token; it has
// the checksum of the job as well, because the server does not compare what it has with what comes.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "cli/api.h"
#include "cli/client.h"
#include "cli/exit_status.h"
#include "cli/import.h"
#include "cli/job_file.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/wait.h"
#include "server/beanstalk/job_options.h"
#include "server/text/duration.h"

namespace carillon::cli {
namespace {

using Clock = std::chrono::steady_clock;
using server::beanstalk::OptionsOf;
using server::beanstalk::parse_job_options;
using std::chrono::milliseconds;

// A batch has at most this many jobs, and bytes of bodies and options. Larger ones would make other
// clients wait longer, and are not faster.
constexpr std::size_t kBatchJobs = 200;
constexpr std::size_t kBatchBytes = 512 << 10;
// A larger body is put by itself.
constexpr std::size_t kLargestInBatch = 256 << 10;

std::string options_of(const FileJob& job) {
  std::string options = fmt::format("pri={}", job.priority);
  if (!job.options.empty()) options += " " + job.options;
  if (!job.key.empty() && job.options.find("on-conflict=") == std::string::npos)
    options += " on-conflict=ignore";
  if (job.buried) options += " buried=yes";
  return job.when.empty() ? options : options + " " + job.when;
}

bool was_put(const PutAnswer& answer) {
  using Result = PutAnswer::Result;
  return answer.result == Result::kInserted || answer.result == Result::kReplaced;
}

// The results of an import so far.
struct Imported {
  std::uint64_t jobs = 0;     // put, or with a dry run, that would be
  std::uint64_t already = 0;  // put by an import before
  std::uint64_t met = 0;      // not put: the tube has a job with this key
  // Large bodies without a key, which got one, so that the import can be run again.
  std::uint64_t keyed = 0;
  // Jobs that expire before they are due. Those that would be dead then were buried, the others
  // were left out.
  std::uint64_t never_run = 0;
  std::uint64_t settings = 0;                             // for tubes and groups
  std::uint64_t schedules = 0;                            // that were set
  std::map<std::string, std::uint64_t> passed_over = {};  // lines, by their type
};

// The file, or standard input.
struct Source {
  std::string name;  // in messages
  std::istream& in;
  std::uint64_t bytes = 0;               // its size, for the progress; 0: not known
  std::uint64_t last_line = UINT64_MAX;  // no line behind this one is read, from 1
};

class FileImport {
 public:
  FileImport(const ImportRequest& request, Source source, const StopSignals& stop)
      : request_(request),
        source_(std::move(source)),
        stop_(stop),
        api_(request.server, stop.fd()) {
    if (!request.dry_run) client_.emplace(Stream::connect(request.server, stop.fd()));
  }

  // Throws Interrupted if a signal has come, and Failure.
  void run() {
    std::uint64_t read = 0;
    if (client_) client_->require("put-jobs", "reserve-jobs 0");
    for (std::string text; number_ < source_.last_line && std::getline(source_.in, text);) {
      if (stop_.came()) throw Interrupted();
      ++number_;
      read += text.size() + 1;
      try {
        take(text);
      } catch (const std::invalid_argument& error) {
        fail(number_, error.what());
      }
      if (source_.bytes > 0) line_.show(read, source_.bytes);
    }
    if (source_.in.bad()) throw Failure(fmt::format("cannot read {}", source_.name));
    if (is_export_)
      throw Failure(fmt::format("{} has no last line: the export was not finished", source_.name));
    put_batch();
    hold_back_puts();
    line_.clear();
  }

  const Imported& done() const { return done_; }

  // Throws Failure if the file has no line for one of the tubes that are wanted: mostly its name
  // was mistyped.
  void require_tubes() const {
    std::set<std::string> missing;
    for (const auto& [tube, new_name] : request_.tubes)
      if (!tubes_.contains(tube)) missing.insert(tube);
    if (missing.empty()) return;
    throw Failure(fmt::format("{} has nothing for tube {}; it has lines for {}", source_.name,
                              listed(missing), tubes_.empty() ? "no tube" : listed(tubes_)));
  }

 private:
  struct Pending {
    std::uint64_t number;  // its line
    FileJob job;
  };
  void take(const std::string& text) {
    if (text.empty()) return;
    FileLine line = parse_file_line(text);
    if (export_.empty() && !std::holds_alternative<FileHead>(line))
      begin(false, fmt::format("{:08x}", base::crc32c(0, text)));
    std::visit([this](auto& one) { take(std::move(one)); }, line);
  }

  void take(FileJob job) {
    if (!rename(job.tube) || !is_worth_putting(job)) return;
    const std::string options = options_of(job);
    const std::size_t bytes = job.body.size() + options.size();
    const bool is_large = job.body.size() > kLargestInBatch;
    const bool is_full =
        (!pending_.empty() && pending_.size() >= most_in_batch(pending_.front().job.tube)) ||
        bytes_ + bytes > kBatchBytes;
    const bool is_of_other_tube = !pending_.empty() && pending_.front().job.tube != job.tube;
    if (is_large || is_full || is_of_other_tube || has_pending_key(job.key)) put_batch();
    if (is_large) return put_large({number_, std::move(job)});
    pending_.push_back({number_, std::move(job)});
    bytes_ += bytes;
  }

  // Settings that hold back puts are set after all jobs are put.
  void take(server::PatchTube patch) {
    if (!rename(patch.tube)) return;
    ++done_.settings;
    server::PatchTube later;
    later.tube = patch.tube;
    if (patch.draining.value.value_or(false)) {
      later.draining = patch.draining;
      patch.draining.value = false;
    }
    if (patch.limits.value && patch.limits.value->put_rate.given) {
      later.limits = {.given = true, .value = server::TubeLimits()};
      later.limits.value->put_rate = std::exchange(
          patch.limits.value->put_rate, server::Patch<server::RatePatch>{true, std::nullopt});
    }
    set(patch);
    if (later.draining.given || later.limits.given) at_end_.push_back(std::move(later));
  }

  void take(server::PatchGroup patch) {
    if (!rename(patch.tube)) return;
    ++done_.settings;
    const std::string path =
        "/v1/tubes/" + url_part(patch.tube) + "/groups/" + url_part(patch.group);
    set("PATCH", path, server::write(patch));
  }

  void take(server::NewSchedule schedule) {
    if (!rename(schedule.job.tube)) return;
    ++done_.schedules;
    set("PUT", "/v1/schedules/" + url_part(schedule.name), server::write(schedule));
  }

  void take(const FileHead& head) {
    if (is_export_) throw std::invalid_argument("the export before it was not finished");
    begin(true, head.id);
  }

  void take(const FilePage&) { put_batch(); }
  void take(const FileEnd&) {
    is_export_ = false;
    put_batch();
    hold_back_puts();
  }

  void take(const FileOther& other) { ++done_.passed_over[other.type]; }
  void begin(bool is_export, std::string id) {
    put_batch();
    is_export_ = is_export;
    export_ = std::move(id);
    export_at_ = number_;
  }

  // A job of a server may expire before it is due, if it was released.
  // The server takes no such put. Returns false if nothing would be left of it. A line that was
  // written by hand is put as it is, and refused.
  bool is_worth_putting(FileJob& job) {
    const std::string text = options_of(job);
    const auto options = parse_job_options(text, OptionsOf::kPut);
    const bool runs = !job.was_listed || job.buried || !options.due || !options.expires_at ||
                      *options.expires_at == queue::kNeverExpires ||
                      *options.due < *options.expires_at;
    if (runs) return true;
    ++done_.never_run;
    job.buried = true;
    job.when.clear();
    return options.at_expiry == queue::AtExpiry::kDead;
  }

  void set(std::string_view method, const std::string& path, boost::json::object fields) {
    if (!client_) return;
    for (const char* const name : {"tube", "group", "name"}) fields.erase(name);  // in the path
    try {
      api_.ask(method, path, fields);
    } catch (const Unavailable&) {
      throw;
    } catch (const Failure& error) {
      fail(number_, error.what());
    }
  }

  void set(const server::PatchTube& patch) {
    set("PATCH", "/v1/tubes/" + url_part(patch.tube), server::write(patch));
  }

  void hold_back_puts() {
    for (const server::PatchTube& one : std::exchange(at_end_, {})) set(one);
  }

  // A tube that is here already may have a rate, on which the size of a batch depends. So a batch
  // that is put again has the same jobs, or is refused, if the rate was changed meanwhile.
  std::size_t most_in_batch(const std::string& tube) {
    if (!client_) return kBatchJobs;
    if (batched_ != tube) most_ = client_->most_in_batch(tube, kBatchJobs);
    batched_ = tube;
    return most_;
  }

  // Gives the tube its new name. Returns false if it is not wanted.
  bool rename(std::string& tube) {
    if (request_.tubes.empty()) return true;
    tubes_.insert(tube);
    const auto found = request_.tubes.find(tube);
    if (found == request_.tubes.end()) return false;
    tube = found->second;
    return true;
  }

  // The server refuses a batch in which two jobs have the same key.
  bool has_pending_key(const std::string& key) const {
    return !key.empty() && std::any_of(pending_.begin(), pending_.end(),
                                       [&key](const Pending& one) { return one.job.key == key; });
  }

  void put_batch() {
    const std::vector<Pending> batch = std::exchange(pending_, {});
    bytes_ = 0;
    if (batch.empty()) return;
    if (!client_) return static_cast<void>(done_.jobs += batch.size());
    const std::uint64_t first = batch.front().number;
    const std::uint64_t last = batch.back().number;
    std::string data;
    for (const Pending& one : batch) {
      data += fmt::format("{} {}\r\n", one.job.body.size(), options_of(one.job));
      data += one.job.body;
      data += "\r\n";
    }
    use(batch.front().job.tube);
    const BatchAnswer answer =
        client_->put_jobs(data, fmt::format("once={} window=7d", token(batch.front())));
    using Result = BatchAnswer::Result;
    if (answer.result == Result::kOtherBatch) {
      fail(first,
           fmt::format("{}was imported before, with another content; nothing of that was put; "
                       "if it is another file, add --once TOKEN",
                       first == last ? "" : fmt::format("up to line {}: ", last)));
    }
    if (answer.result == Result::kRefused && answer.refused - 1 < batch.size()) {
      const Pending& refused = batch[answer.refused - 1];
      fail(refused.number, fmt::format("{}; nothing of {} was put",
                                       refusal_text(answer.why, refused.job.body.size()),
                                       line_numbers(first, last)));
    }
    if (answer.jobs.size() != batch.size())
      fail(first, fmt::format("the server refused the batch: {}", answer.why));
    if (answer.result == Result::kAlready) return static_cast<void>(done_.already += batch.size());
    for (const PutAnswer& put : answer.jobs) ++(was_put(put) ? done_.jobs : done_.met);
  }

  void put_large(const Pending& large) {
    if (!client_) return static_cast<void>(++done_.jobs);
    const FileJob& job = large.job;
    std::string options = options_of(job);
    if (job.key.empty()) {
      const std::uint32_t sum = base::crc32c(base::crc32c(0, options), job.body);
      options += fmt::format(" key={}:{:08x} key-window=7d on-conflict=ignore", token(large), sum);
    }
    use(job.tube);
    const PutAnswer answer = put_one(large, options);
    ++(was_put(answer) ? done_.jobs : job.key.empty() ? done_.already : done_.met);
    if (was_put(answer) && job.key.empty()) ++done_.keyed;
  }

  PutAnswer put_one(const Pending& large, const std::string& options) try {
    return client_->put_job(large.job.body, options);
  } catch (const Unavailable&) {
    throw;
  } catch (const Failure& error) {
    fail(large.number, error.what());
  }

  void use(const std::string& tube) {
    if (used_ == tube) return;
    client_->use(tube);
    used_ = tube;
  }

  // The tube is a part of it, so that the file can be imported into another one as well: by its
  // checksum, because its name may be as long as a token.
  std::string token(const Pending& first) const {
    const std::string named = request_.once.empty() ? export_ : export_ + ":" + request_.once;
    return fmt::format("import:{}:{}:{:08x}", named, first.number - export_at_,
                       base::crc32c(0, first.job.tube));
  }

  [[noreturn]] void fail(std::uint64_t line, std::string_view why) const {
    throw Failure(fmt::format("{} line {}: {}", source_.name, line, why));
  }

  const ImportRequest& request_;
  Source source_;
  const StopSignals& stop_;
  std::optional<Client> client_;  // none: a dry run
  Api api_;
  ProgressLine line_;
  Imported done_;
  std::string export_;            // its id; for a file without one, made of its first line
  bool is_export_ = false;        // and not ended
  std::uint64_t number_ = 0;      // the line that is read
  std::uint64_t export_at_ = 0;   // the number of the export's first line
  std::set<std::string> tubes_;   // that have lines, if only some tubes are wanted
  std::vector<Pending> pending_;  // jobs of one tube
  std::size_t bytes_ = 0;         // in their bodies and options
  std::string used_;
  std::vector<server::PatchTube> at_end_;  // what holds back puts
  std::string batched_;                    // the tube for which a batch has `most_` jobs
  std::size_t most_ = 0;
};

// Returns the number of the last line that may be imported. An export that was not finished will
// have other lines behind its last page; from any other file all lines may be imported.
std::uint64_t last_line_to_import(std::istream& in) {
  std::uint64_t number = 0;
  std::uint64_t last_page = 0;
  bool is_unfinished = false;
  for (std::string text; std::getline(in, text);) {
    ++number;
    if (text.starts_with(R"({"type":"end")")) is_unfinished = false;
    if (text.starts_with(R"({"type":"export")")) is_unfinished = true;
    if (text.starts_with(R"({"type":")") && !text.starts_with(R"({"type":"job")"))
      last_page = number;
  }

  return is_unfinished ? last_page : UINT64_MAX;
}

// `file` is what it reads, unless that is standard input.
Source open_source(const std::string& name, std::ifstream& file) {
  if (name == "-") return {.name = "standard input", .in = std::cin};
  file.open(name, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0) throw Failure(fmt::format("cannot read {}: {}", name, error_text(errno)));
  file.seekg(0);
  const std::uint64_t last_line = last_line_to_import(file);
  file.clear();
  file.seekg(0);
  return {
      .name = name, .in = file, .bytes = static_cast<std::uint64_t>(size), .last_line = last_line};
}

void print_result(const Imported& import, milliseconds took, bool json) {
  std::string set;
  if (import.settings > 0) set += ", " + counted(import.settings, "setting");
  if (import.schedules > 0) set += ", " + counted(import.schedules, "schedule");
  write_result(
      json,
      {{"jobs", import.jobs},
       {"already", import.already},
       {"exist", import.met},
       {"keyed", import.keyed},
       {"never_run", import.never_run},
       {"settings", import.settings},
       {"schedules", import.schedules},
       {"milliseconds", took.count()}},
      fmt::format("{}{} in {}", counted(import.jobs, "job"), set, server::short_duration(took)));
  if (json) return;
  if (import.already > 0) {
    remark(fmt::format("{} had been put by an import before; --once TOKEN puts them again",
                       counted(import.already, "other")));
  }

  if (import.keyed > 0) {
    remark(
        fmt::format("{} of more than 256 KiB had no key and got one, import:...: so a run again "
                    "does not put it twice",
                    counted(import.keyed, "job")));
  }

  if (import.never_run > 0) {
    remark(fmt::format(
        "{} would expire before the due time: buried if at-expiry is dead, else left out",
        counted(import.never_run, "job")));
  }

  if (import.met == 1) remark("1 was not put: its tube has a job with its key");
  if (import.met > 1)
    remark(fmt::format("{} were not put: their tubes have jobs with their keys", import.met));
}

}  // namespace

int import_file(const ImportRequest& request) {
  const auto began = Clock::now();
  const StopSignals signals;
  std::ifstream file;
  FileImport import(request, open_source(*request.file, file), signals);
  const auto put = [&import] { return counted(import.done().jobs, "job"); };
  try {
    import.run();
  } catch (const Interrupted&) {
    throw Failure(fmt::format("interrupted after {}; run it again to go on", put()));
  } catch (const Failure& error) {
    if (request.dry_run) throw;
    throw Failure(fmt::format("{}; {} put so far, run it again to go on", error.what(), put()));
  }

  for (const auto& [type, lines] : import.done().passed_over)
    remark(fmt::format("passed over {} of type \"{}\"", counted(lines, "line"), type));
  print_result(import.done(), time_since(began), request.json);
  import.require_tubes();
  return kSuccess;
}

}  // namespace carillon::cli
