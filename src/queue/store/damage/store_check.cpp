// Verifies files, then reads around what is damaged (carillon/queue/store_check.h).

#include "carillon/queue/store_check.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/directory.h"
#include "base/file_descriptor.h"
#include "carillon/queue/store.h"
#include "queue/store/damage/file_checks.h"
#include "queue/store/damage/offline_state.h"
#include "queue/store/damage/salvage.h"
#include "queue/store/format_version.h"
#include "queue/store/log/log_mender.h"
#include "queue/store/log/log_reader.h"
#include "queue/store/log/log_segment.h"
#include "queue/store/state/no_wait_files.h"
#include "queue/store/state/record_keys.h"
#include "queue/store/state/record_values.h"

namespace carillon::queue {

namespace fs = std::filesystem;

namespace {

// What a DataDirectory locks. A directory without that file was never served: a backup.
using Locks = std::array<base::FileDescriptor, 2>;
Locks lock(const std::string& path) {
  Locks locks{
      base::FileDescriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
      base::FileDescriptor(::open((path + "/owner.pid").c_str(), O_RDWR | O_CLOEXEC)),
  };
  for (const base::FileDescriptor& held : locks) {
    if (held && ::flock(held.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      throw StoreError("data directory " + path + " is in use by another process: stop it first");
  }
  return locks;
}

class Check {
 public:
  Check(const std::string& path, const StoreProgress& progress)
      : path_(path), progress_(progress), locks_(lock(path)), files_(files_in(path)) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(path, ignored)) {
      const std::string name = entry.path().filename();
      has_manifest_ = has_manifest_ || name.starts_with("MANIFEST-") || name == "CURRENT";
    }
    if (files_.empty() && !has_manifest_)
      throw StoreError("data directory " + path + " has no store in it");
    for (const StateFile& file : files_) all_ += file.bytes;
  }

  void verify_files(const WrittenFiles& written, StoreReport& report) {
    for (const auto& [name, file] : written) {
      std::error_code error;
      if (!fs::exists(path_ + "/" + name, error) && !error)
        report.damages.push_back(path_ + "/" + name + " is gone");
    }
    for (StateFile& file : files_) {
      const std::string name = fs::path(file.path).filename();
      if (const auto found = written.find(name); found != written.end())
        file.written = found->second.sum;
      const FileVerdict verdict = [&] {
        const PacedRead paced([this](std::size_t size) { return step(size); });
        return verdict_on(file);
      }();
      if (!go_on_) throw StoreError("the check was ended");
      if (!verdict.fault.empty()) {
        report.damages.push_back(file.path + ": " + verdict.fault);
        if (verdict.is_foreign) foreign_.push_back(name);
        if (!file.has_blobs) damaged_tables_.push_back(name);
      }
      ++report.files;
      report.bytes += file.bytes;
    }
  }

  const std::vector<std::string>& damaged_tables() const { return damaged_tables_; }
  // Names of files that are not those that were written.
  const std::vector<std::string>& foreign() const { return foreign_; }

  bool step(std::size_t size) {
    done_ = std::min(done_ + size, all_);
    go_on_ = go_on_ && progress_(done_, all_);
    return go_on_;
  }

 private:
  const std::string path_;
  const StoreProgress& progress_;
  const Locks locks_;
  std::vector<StateFile> files_;
  std::vector<std::string> damaged_tables_;  // names
  std::vector<std::string> foreign_;
  bool has_manifest_ = false;
  bool go_on_ = true;
  std::uint64_t done_ = 0;
  std::uint64_t all_ = 0;
};

// A directory for links, and for copies of what is mended.
class WorkDirectory {
 public:
  // Its name begins with `name`; if that is empty, it is among the temporary files.
  explicit WorkDirectory(const std::string& name) : path_(name.empty() ? temporary() : name) {
    path_ += "-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr)
      throw StoreError("cannot make " + path_ + ": " + std::strerror(errno));
  }
  ~WorkDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  WorkDirectory(const WorkDirectory&) = delete;
  WorkDirectory& operator=(const WorkDirectory&) = delete;
  std::string state() const { return path_ + "/state"; }
  std::string beneath() const { return path_ + "/beneath"; }
  std::string log() const { return path_ + "/log"; }

 private:
  static std::string temporary() {
    std::error_code error;
    const fs::path path = fs::temp_directory_path(error);
    if (error)
      throw StoreError("there is no directory for temporary files; name one in TMPDIR: " +
                       error.message());
    return (path / "carillon-check").string();
  }

  std::string path_;
};

// The state, and the same without its damaged tables, which hide what others have.
struct States {
  OfflineState all;
  std::optional<OfflineState> beneath;

  States(const std::string& path, const WorkDirectory& work, const Check& check)
      : all(path, work.state(), check.foreign()) {
    const auto format = all.get(kMeta, kFormatKey).bytes;
    if (format && *format != format_name())
      throw StoreError("data directory " + path + " " + other_format(*format));
    if (check.damaged_tables().empty()) return;
    std::vector<std::string> without = check.damaged_tables();
    without.insert(without.end(), check.foreign().begin(), check.foreign().end());
    beneath.emplace(path, work.beneath(), without);
  }
  const OfflineState* hidden() const { return beneath ? &*beneath : nullptr; }

  // What RocksState has written under the key, as far as it can be read.
  std::string written(std::string_view key) const {
    auto value = all.get(kMeta, key).bytes;
    if (!value && beneath) value = beneath->get(kMeta, key).bytes;
    return value.value_or("");
  }

  std::uint64_t identity() const {
    const std::string written = this->written(RocksState::kIdentityKey);
    std::uint64_t identity = 0;
    if (written.size() == sizeof identity) std::memcpy(&identity, written.data(), sizeof identity);
    return identity;
  }

  LogPosition position() const {
    return RocksState::position_of(written(RocksState::kPositionKey))
        .value_or(LogPosition{.mark = mark_of(0)});
  }
};

// Nothing if the MANIFEST cannot be read.
WrittenFiles written_in(const std::string& path, const WorkDirectory& work) {
  try {
    return OfflineState::written_in(path, work.state());
  } catch (const std::exception&) {
    return {};
  }
}

// If the state does not have its identity any more, its log has it.
std::uint64_t identity_of_log(const base::Directory& directory) {
  std::vector<std::string> names;
  directory.list(names);
  for (const std::string& name : names) {
    try {
      if (LogSegment::number_of(name))
        return LogSegment::open(directory, name, LogWrites::kBuffered).identity();
    } catch (const StoreError&) {
      // the next one may do
    }
  }
  return 0;
}

// Adds the lines that no line of the report has already.
void add_damages(StoreReport& report, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    const auto is_known = [&](const std::string& known) { return known == line; };
    if (std::none_of(report.damages.begin(), report.damages.end(), is_known))
      report.damages.push_back(line);
  }
}

// What follows from a gap, in words.
void add_lost_changes(StoreReport& report, const LogReader& reader) {
  constexpr const char* kThen =
      ": jobs that they put are not there, and jobs that they deleted or moved are as they were "
      "before";
  for (const LogReader::Gap& gap : reader.gaps()) {
    const std::string from = std::to_string(gap.first);
    report.lost_changes.push_back(
        (gap.last == 0 ? "change " + from + " of the log and those behind it may be lost"
         : gap.last == gap.first
             ? "change " + from + " of the log is lost"
             : "changes " + from + " to " + std::to_string(gap.last) + " of the log are lost") +
        kThen);
  }
}

constexpr const char* kAllChangesLost =
    "what the changes of the log did is lost: jobs that they put are not there, and jobs that they "
    "deleted or moved are as they were before";

// If the state's position is lost, the log is applied from its beginning. Applying changes again
// that the state has does no harm, if none of them is missing.
void read_changes(const std::string& path, const WorkDirectory& work, const States& states,
                  const Log::Each& each, StoreReport& report) {
  if (!is_of_files(states.position().mark)) return;  // its log lies elsewhere
  std::uint64_t identity = states.identity();
  if (identity == 0) identity = identity_of_log(base::Directory(path));
  const base::Directory directory(mend_log(path, work.log(), identity, report.damages));
  LogPosition start = states.position();
  if (!states.all.get(kMeta, RocksState::kPositionKey).is_sure) {
    LogReader first(directory, identity, 0);
    if (!first.used().empty()) start = {.number = first.used().front().first() - 1, .mark = {}};
    first.read(start, [](LogNumber, std::string_view) {});
    add_damages(report, first.damage());
    if (!first.damage().empty()) {
      report.damages.emplace_back(
          "the changes of the log are left out: some are missing, and the state does not say which "
          "of them it has");
      report.lost_changes.emplace_back(kAllChangesLost);
      return;
    }
  }
  LogReader reader(directory, identity, 0);
  reader.read(start, each);
  add_damages(report, reader.damage());
  add_lost_changes(report, reader);
  report.dropped = reader.dropped();
}

void read_log(const std::string& path, const WorkDirectory& work, const States& states,
              const Log::Each& each, StoreReport& report) {
  try {
    read_changes(path, work, states, each, report);
  } catch (const StoreError& why) {
    report.damages.emplace_back(why.what());
    report.lost_changes.emplace_back(kAllChangesLost);
  }
  for (std::vector<std::string>* lines : {&report.damages, &report.dropped}) {
    for (std::string& line : *lines) {
      if (const auto at = line.find(work.log()); at != std::string::npos)
        line.replace(at, work.log().size(), path);
    }
  }
}

void note_lost(StoreReport& report, JobId id) {
  ++report.lost_jobs;
  if (report.some_lost.size() < StoreReport::kSome) report.some_lost.push_back(id);
}

// Compares the families as a salvage does, without the changes of the log.
class JobCount {
 public:
  JobCount(const States& states, StoreReport& report) : states_(states), report_(report) {}

  void run() {
    for (const Family family : {kMeta, kKeys, kSchedules, kBodies, kJobs, kIndex}) {
      for (const auto at = states_.all.scan(family); at->Valid(); at->Next()) continue;
    }
    count(*states_.all.scan(kIndex));
    for (const Damage& block : states_.all.blocks()) {
      if (block.family != kIndex || !states_.beneath) continue;
      const rocksdb::Slice to(block.to);
      count(*states_.beneath->scan(kIndex, block.from, to));
    }
    if (!states_.all.has_damage(kIndex)) return;
    for (const auto at = states_.all.scan(kJobs); at->Valid(); at->Next()) {
      const std::string_view value(at->value().data(), at->value().size());
      JobRecord job;
      if (value.size() != Pointer{}.size() || !set_job_of_key(value.substr(1), job)) continue;
      if (states_.all.is_doubtful(kIndex, value.substr(1)) && !record(value.substr(1)))
        note_lost(report_, job.id);
    }
  }

 private:
  void count(rocksdb::Iterator& at) {
    for (; at.Valid(); at.Next()) {
      JobRecord job;
      const std::string_view key(at.key().data(), at.key().size());
      if (!set_job_of_key(key, job)) continue;
      const Standing standing = standing_of(states_.all, index_key_of(job), job);
      if (standing == Standing::kGone) continue;
      if (standing == Standing::kThere && is_whole(key, {at.value().data(), at.value().size()})) {
        ++report_.jobs;
      } else {
        note_lost(report_, job.id);
      }
    }
  }

  std::optional<std::string> get(Family family, std::string_view key) const {
    auto value = states_.all.get(family, key).bytes;
    return !value && states_.beneath ? states_.beneath->get(family, key).bytes : value;
  }
  std::optional<std::string> record(std::string_view key) const { return get(kIndex, key); }

  bool is_whole(std::string_view key, std::string_view value) const try {
    const JobRecord job = read_job_value(key, value);
    auto body = get(kBodies, view(job_key(job.body_id())));
    std::size_t bytes = body ? body->size() : 0;
    for (std::uint32_t n = 1; body && bytes < job.body_bytes; ++n) {
      body = get(kBodies, view(piece_key(job.body_id(), n)));
      bytes += body ? body->size() : 0;
    }
    return body && bytes == job.body_bytes;
  } catch (const StoreDamage&) {
    return false;
  }

  const States& states_;
  StoreReport& report_;
};

}  // namespace

StoreReport check_store(const std::string& path, const StoreProgress& progress,
                        const std::string& name) {
  StoreReport report;
  Check check(path, progress);
  const WorkDirectory work(name);
  check.verify_files(written_in(path, work), report);
  try {
    const States states(path, work, check);
    read_log(
        path, work, states, [](LogNumber, std::string_view) {}, report);
    if (!report.damages.empty()) JobCount(states, report).run();
    add_damages(report, states.all.damages());
  } catch (const std::exception& why) {
    report.damages.push_back(path + ": " + why.what());
    report.can_be_salvaged = false;
  }
  return report;
}

StoreReport salvage_store(const std::string& path, const std::string& to,
                          const StoreProgress& progress,
                          const std::function<void(const LostJob&)>& lost) {
  StoreReport report;
  std::error_code error;
  if (fs::exists(fs::symlink_status(to, error)))
    throw StoreError(to + " exists; name a directory that does not exist");
  Check check(path, progress);
  try {
    const WorkDirectory work(to + ".work");
    check.verify_files(written_in(path, work), report);
    const States states(path, work, check);
    Salvage salvage(states.all, states.hidden(), to);
    salvage.copy([&] { return check.step(0); });
    read_log(
        path, work, states, [&](LogNumber, std::string_view change) { salvage.apply(change); },
        report);
    salvage.compare([&](const LostJob& job) {
      note_lost(report, job.id);
      lost(job);
    });
    salvage.finish();
    report.jobs = salvage.jobs();
    add_damages(report, states.all.damages());
    report.left_out = salvage.left_out();
  } catch (const std::exception& why) {
    fs::remove_all(to, error);
    throw StoreError(why.what());
  }
  return report;
}

}  // namespace carillon::queue
