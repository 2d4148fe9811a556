// Puts the jobs of a file into a server (file_import.h).

#include "cli/file_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/crc32c.h"
#include "cli/arguments.h"
#include "cli/counted.h"
#include "cli/job_file.h"
#include "cli/progress.h"
#include "server/beanstalk/job_options.h"

namespace carillon::cli {
namespace {

using server::beanstalk::OptionsOf;
using server::beanstalk::parse_job_options;

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

// Returns the server's words for why it refuses a job, as a sentence.
std::string reason(std::string_view why, std::size_t body_bytes) {
  constexpr std::string_view kBadOption = "BAD_OPTION ";
  if (why == "JOB_TOO_BIG")
    return fmt::format("the body has {} bytes, more than the server takes", body_bytes);
  if (why == "TOO_MANY") return "the put-rate of the tube does not let this many in at once";
  if (why == "OUT_OF_RANGE") return "the job would be due after the year 9999";
  if (why.starts_with(kBadOption)) why.remove_prefix(kBadOption.size());
  return std::string(why);
}

// Not thread-safe.
class FileImport {
 public:
  FileImport(Client* client, Api& api, std::istream& in, const FileImportOptions& options,
             const StopSignals& stop, ProgressLine& line, FileImported& done)
      : client_(client),
        api_(api),
        in_(in),
        options_(options),
        stop_(stop),
        line_(line),
        done_(done) {}

  void run();

 private:
  struct Pending {
    std::uint64_t number;  // its line
    FileJob job;
  };
  void take(const std::string& text);
  void take(FileJob job);
  void take(server::PatchTube patch);
  void take(server::PatchGroup patch);
  void take(server::NewSchedule schedule);
  void take(const FileHead& head);
  void take(const FilePage&) { put_batch(); }
  void take(const FileEnd&);
  void take(const FileOther& other) { ++done_.passed_over[other.type]; }
  void begin(bool is_export, std::string id);
  bool is_worth_putting(FileJob& job);
  void set(std::string_view method, const std::string& path, boost::json::object fields);
  void set(const server::PatchTube& patch) {
    set("PATCH", "/v1/tubes/" + url_part(patch.tube), server::write(patch));
  }
  void hold_back_puts();
  std::size_t most_in_batch(const std::string& tube);
  bool rename(std::string& tube) const;
  bool has_pending_key(const std::string& key) const;
  void put_batch();
  void put_large(const Pending& large);
  PutAnswer put_one(const Pending& large, const std::string& options);
  void use(const std::string& tube);
  std::string token(const Pending& first) const;
  [[noreturn]] void fail(std::uint64_t line, std::string_view why) const;

  Client* client_;  // null: a dry run
  Api& api_;
  std::istream& in_;
  const FileImportOptions& options_;
  const StopSignals& stop_;
  ProgressLine& line_;
  FileImported& done_;
  std::string export_;            // its id; for a file without one, made of its first line
  bool is_export_ = false;        // and not ended
  std::uint64_t number_ = 0;      // of the line
  std::uint64_t export_at_ = 0;   // the number of the export's first line
  std::vector<Pending> pending_;  // jobs of one tube
  std::size_t bytes_ = 0;         // in their bodies and options
  std::string used_;
  std::vector<server::PatchTube> at_end_;  // what holds back puts
  std::string batched_;                    // the tube for which a batch has `most_` jobs
  std::size_t most_ = 0;
};

void FileImport::fail(std::uint64_t line, std::string_view why) const {
  throw Failure(fmt::format("{} line {}: {}", options_.name, line, why));
}

void FileImport::set(std::string_view method, const std::string& path, boost::json::object fields) {
  if (client_ == nullptr) return;
  for (const char* const name : {"tube", "group", "name"}) fields.erase(name);  // in the path
  try {
    api_.ask(method, path, fields);
  } catch (const Unavailable&) {
    throw;
  } catch (const Failure& error) {
    fail(number_, error.what());
  }
}

void FileImport::run() {
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  std::uint64_t read = 0;
  if (client_ != nullptr) client_->require("put-jobs", "reserve-jobs 0");
  for (std::string text; number_ < options_.last_line && std::getline(in_, text);) {
    if (stop_.came()) throw Interrupted();
    ++number_;
    read += text.size() + 1;
    try {
      take(text);
    } catch (const std::invalid_argument& error) {
      fail(number_, error.what());
    }
    const auto elapsed =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
    if (options_.bytes > 0) line_.show(progress_text(read, options_.bytes, elapsed));
  }
  if (in_.bad()) throw Failure(fmt::format("cannot read {}", options_.name));
  if (is_export_)
    throw Failure(fmt::format("{} has no last line: the export was not finished", options_.name));
  put_batch();
  hold_back_puts();
}

void FileImport::take(const std::string& text) {
  if (text.empty()) return;
  FileLine line = parse_file_line(text);
  if (export_.empty() && !std::holds_alternative<FileHead>(line))
    begin(false, fmt::format("{:08x}", base::crc32c(0, text)));
  std::visit([this](auto& one) { take(std::move(one)); }, line);
}

void FileImport::begin(bool is_export, std::string id) {
  put_batch();
  is_export_ = is_export;
  export_ = std::move(id);
  export_at_ = number_;
}

void FileImport::take(const FileHead& head) {
  if (is_export_) throw std::invalid_argument("the export before it was not finished");
  begin(true, head.id);
}

void FileImport::take(const FileEnd&) {
  is_export_ = false;
  put_batch();
  hold_back_puts();
}

// Gives the tube its new name. Returns false if it is not wanted.
bool FileImport::rename(std::string& tube) const {
  if (options_.tubes.empty()) return true;
  const auto found = options_.tubes.find(tube);
  if (found == options_.tubes.end()) return false;
  tube = found->second;
  return true;
}

void FileImport::take(server::NewSchedule schedule) {
  if (!rename(schedule.job.tube)) return;
  ++done_.schedules;
  set("PUT", "/v1/schedules/" + url_part(schedule.name), server::write(schedule));
}

void FileImport::take(server::PatchGroup patch) {
  if (!rename(patch.tube)) return;
  ++done_.settings;
  const std::string path = "/v1/tubes/" + url_part(patch.tube) + "/groups/" + url_part(patch.group);
  set("PATCH", path, server::write(patch));
}

// What holds back puts waits until all jobs are put.
void FileImport::take(server::PatchTube patch) {
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

void FileImport::hold_back_puts() {
  for (const server::PatchTube& one : std::exchange(at_end_, {})) set(one);
}

// A tube that is here already may have a rate. The jobs of a batch follow from it: so a batch that
// is put again has the same ones, or is refused, if the rate is another one meanwhile.
std::size_t FileImport::most_in_batch(const std::string& tube) {
  if (client_ == nullptr) return kBatchJobs;
  if (batched_ != tube) most_ = client_->most_in_batch(tube, kBatchJobs);
  batched_ = tube;
  return most_;
}

// A job of a server may expire before it is due, if it was released.
// The server takes no such put. Returns false if nothing would be left of it. A line that was
// written by hand is put as it is, and refused.
bool FileImport::is_worth_putting(FileJob& job) {
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

void FileImport::take(FileJob job) {
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

// The server refuses a batch in which two jobs have the same key.
bool FileImport::has_pending_key(const std::string& key) const {
  return !key.empty() && std::any_of(pending_.begin(), pending_.end(),
                                     [&key](const Pending& one) { return one.job.key == key; });
}

// The tube is a part of it, so that the file can be imported into another one as well: by its
// checksum, because its name may be as long as a token.
std::string FileImport::token(const Pending& first) const {
  const std::string named = options_.once.empty() ? export_ : export_ + ":" + options_.once;
  return fmt::format("import:{}:{}:{:08x}", named, first.number - export_at_,
                     base::crc32c(0, first.job.tube));
}

void FileImport::put_batch() {
  const std::vector<Pending> batch = std::exchange(pending_, {});
  bytes_ = 0;
  if (batch.empty()) return;
  if (client_ == nullptr) return static_cast<void>(done_.jobs += batch.size());
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
    fail(first, fmt::format("{}was imported before, with another content; nothing of that was put; "
                            "if it is another file, add --once TOKEN",
                            first == last ? "" : fmt::format("up to line {}: ", last)));
  }
  if (answer.result == Result::kRefused && answer.refused - 1 < batch.size()) {
    const Pending& refused = batch[answer.refused - 1];
    fail(refused.number,
         fmt::format("{}; nothing of {} was put", reason(answer.why, refused.job.body.size()),
                     line_numbers(first, last)));
  }
  if (answer.jobs.size() != batch.size())
    fail(first, fmt::format("the server refused the batch: {}", answer.why));
  if (answer.result == Result::kAlready) return static_cast<void>(done_.already += batch.size());
  for (const PutAnswer& put : answer.jobs) ++(was_put(put) ? done_.jobs : done_.met);
}

PutAnswer FileImport::put_one(const Pending& large, const std::string& options) try {
  return client_->put_job(large.job.body, options);
} catch (const Unavailable&) {
  throw;
} catch (const Failure& error) {
  fail(large.number, error.what());
}

void FileImport::put_large(const Pending& large) {
  if (client_ == nullptr) return static_cast<void>(++done_.jobs);
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

void FileImport::use(const std::string& tube) {
  if (used_ == tube) return;
  client_->use(tube);
  used_ = tube;
}

}  // namespace

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

void import_lines(Client* client, Api& api, std::istream& in, const FileImportOptions& options,
                  const StopSignals& stop, ProgressLine& line, FileImported& done) {
  FileImport(client, api, in, options, stop, line, done).run();
}

}  // namespace carillon::cli
