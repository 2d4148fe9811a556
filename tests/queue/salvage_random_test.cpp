// Random bits in random files of a directory with all kinds of things: a salvage saves each job as
// it was, or says that it may be lost, and the new directory serves. The files differ a little from
// run to run, because another thread writes them; CARILLON_ROUNDS=300 tries more.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "carillon/queue/engine.h"
#include "queue/salvage_fixture.h"
#include "queue/seed.h"

namespace carillon::queue {
namespace {

namespace fs = std::filesystem;

constexpr Now kAtRandom{.utc_ns = 1'000'000'000, .mono_ns = 1};
constexpr std::uint32_t kRandomTubes = 6;
constexpr std::uint32_t kThings = 40;  // schedules, and endpoints
constexpr JobId kInFiles = 3'000;      // the later ones are in the log alone
constexpr JobId kJobs = 3'300;

std::string tube_name_of(std::uint32_t tube) {
  return "tube-" + std::to_string(tube);
}

ScheduleRecord schedule(std::uint32_t number) {
  return {.name = "schedule-" + std::to_string(number),
          .schedule = {.tube = tube_name_of(number % kRandomTubes + 1),
                       .body = std::string(std::size_t{number} * 50, 'b'),
                       .cron = "@daily"},
          .created = number};
}

Endpoint endpoint(std::uint32_t number) {
  return {.url = "http://host/" + std::to_string(number),
          .tube = tube_name_of(number % kRandomTubes + 1),
          .created = number + 1};
}

std::size_t body_size_of(JobId id) {
  constexpr std::size_t kSizes[] = {0, 7, 30, 30, 300, 30, 2'000, 5'000, 30, 9'000};
  return id % 500 == 0 ? 600'000 : kSizes[id % 10];
}

// What was put into the directory, and all that was ever there.
class Truth {
 public:
  explicit Truth(const std::string& data) : random_(7) {
    {
      DiskStore store(data, {.recent = 1 << 20});
      for (std::uint32_t tube = 1; tube <= kRandomTubes; ++tube) put_tube(store, tube);
      for (std::uint32_t n = 0; n < kThings; ++n) {
        store.append(
            {.jobs = {},
             .schedules = {{.name = schedule(n).name, .after = schedule(n)}},
             .endpoints = {{.name = "endpoint-" + std::to_string(n), .after = endpoint(n)}},
             .tubes = {},
             .watermarks = {}});
      }
      for (JobId id = 1; id <= kInFiles; ++id) step(store, id);
      store.append({.jobs = {}, .tubes = {}, .watermarks = Watermarks{.next_id = 10 * kJobs}});
      store.close();
    }
    in_log_ = true;
    DiskStore store(data, {});
    for (JobId id = kInFiles + 1; id <= kJobs; ++id) {
      step(store, id);
      if (id % 3 == 0) store.sync();
    }
    store.sync();
    copy_open_store(data, data + "-left");
  }

  const std::map<JobId, JobRecord>& jobs() const { return jobs_; }
  bool was_once(const JobRecord& job) const {
    const auto found = history_.find(job.id);
    return found != history_.end() &&
           std::count(found->second.begin(), found->second.end(), job) > 0;
  }
  // It is as the log says.
  bool is_of_log(JobId id) const { return of_log_.count(id) > 0; }

 private:
  void put_tube(DiskStore& store, std::uint32_t tube) {
    TubeRecord record{.number = tube, .name = tube_name_of(tube)};
    for (const auto& [id, job] : jobs_) {
      if (job.tube == tube) ++(job.buried() ? record.buried : record.scheduled);
    }
    TubeSettings settings;
    settings.retention = 1'000 + tube;
    record.settings = detail::Rare(settings);
    store.append({.jobs = {}, .tubes = {record}, .watermarks = {}});
  }

  void note(const JobRecord& job) {
    history_[job.id].push_back(job);
    if (in_log_) of_log_.insert(job.id);
  }

  void put(DiskStore& store, JobId id) {
    JobRecord job = queue::job(id);
    job.tube = static_cast<std::uint32_t>(random_() % kRandomTubes) + 1;
    job.due = 1'000 + random_() % 100'000;
    job.body_bytes = static_cast<std::uint32_t>(body_size_of(id));
    const std::string body = body_of(id, body_size_of(id));
    Changes changes{.jobs = {{{}, job, {}}}, .tubes = {}, .watermarks = {}};
    if (body.size() > kBodyPiece) {
      const UnfinishedBody begun{.id = id, .bytes = job.body_bytes};
      for (std::uint32_t n = 0; n < pieces_of(begun.bytes); ++n) {
        const auto bytes = std::string_view(body).substr(n * kBodyPiece, kBodyPiece);
        Changes piece{.jobs = {}, .piece = BodyPiece{id, n, bytes}, .tubes = {}, .watermarks = {}};
        if (n == 0) piece.begun = begun;
        store.append(piece);
      }
    } else {
      changes.jobs[0].body = body;
      changes.keys = {{{}, key(id)}};
    }
    store.append(changes);
    jobs_[id] = job;
    note(job);
  }

  static KeyRecord key(JobId id) {
    return {.tube = 1, .key = "key-" + std::to_string(id), .id = id};
  }

  void change(DiskStore& store, JobId id) {
    JobRecord& job = jobs_[id];
    JobRecord after = job;
    switch (random_() % 4) {
      case 0:
        after.due += random_() % 10'000;
        after.burial = 0;
        break;
      case 1:
        after.burial = id;
        break;
      default:
        ++after.history.reserves;  // its place stays
    }
    store.append({.jobs = {{job, after, {}}}, .tubes = {}, .watermarks = {}});
    job = after;
    note(after);
  }

  void erase(DiskStore& store, JobId id) {
    Changes changes{.jobs = {{jobs_[id], {}, {}}}, .tubes = {}, .watermarks = {}};
    if (body_size_of(id) <= kBodyPiece) changes.keys = {{key(id), {}}};
    store.append(changes);
    note(jobs_[id]);
    jobs_.erase(id);
  }

  void step(DiskStore& store, JobId id) {
    put(store, id);
    if (random_() % 3 == 0) change(store, any());
    if (random_() % 4 == 0) erase(store, any());
    if (id % 100 == 0) put_tube(store, static_cast<std::uint32_t>(random_() % kRandomTubes) + 1);
  }

  JobId any() {
    auto at = jobs_.lower_bound(random_() % jobs_.rbegin()->first);
    return at->first;
  }

  std::mt19937_64 random_;
  bool in_log_ = false;
  std::map<JobId, JobRecord> jobs_;
  std::map<JobId, std::vector<JobRecord>> history_;
  std::set<JobId> of_log_;
};

class SalvageOfRandomBits : public SalvageTest {
 protected:
  std::string left() const { return directory_ / "data-left"; }
  bool tells(const std::string& part) const { return SalvageTest::tells(report_.left_out, part); }

  // Returns the name of the file.
  std::string damage(std::mt19937_64& random) {
    std::vector<fs::path> files;
    for (const auto& file : fs::directory_iterator(left())) {
      const std::string ending = file.path().extension();
      const std::string name = file.path().filename();
      const bool is_data = ending == ".sst" || ending == ".blob" || ending == ".data" ||
                           name == "CURRENT" || name.starts_with("MANIFEST-");
      if (is_data && file.file_size() > 0) files.push_back(file.path().filename());
    }
    std::sort(files.begin(), files.end());
    const std::string name = files[random() % files.size()];
    make_copy(left());
    std::string bytes = contents(fs::path(copy()) / name);
    const std::size_t bits = random() % 3 == 0 ? 1 + random() % 20 : 1;
    const std::size_t from =
        random() % 2 == 0 ? bytes.size() - std::min<std::size_t>(bytes.size(), 4'000) : 0;
    std::string what = name + ", bytes";
    for (std::size_t i = 0; i < bits; ++i) {
      const std::size_t at = from + random() % (bytes.size() - from);
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
      what += " " + std::to_string(at);
    }
    write(fs::path(copy()) / name, bytes);
    return what;
  }

  // Without its MANIFEST a state cannot be opened.
  bool salvage_or_refuse(bool may_refuse) {
    const std::string why = complaint([this] { report_ = salvage(); });
    if (!why.empty()) {
      EXPECT_TRUE(may_refuse && contains(why, "only a backup helps")) << why;
      return false;
    }
    EXPECT_EQ(check(copy()).damages.empty(), report_.damages.empty());
    EXPECT_TRUE(!report_.damages.empty() || lost_.empty());
    EXPECT_EQ(report_.lost_jobs, lost_.size());
    return true;
  }

  void expect_jobs(const Truth& truth) {
    const DiskStore store(saved(), {});
    const bool is_log_whole = report_.lost_changes.empty();
    std::set<JobId> there;
    for (std::uint32_t tube = 1; tube <= kRandomTubes; ++tube) {
      std::vector<JobRecord> jobs = store.scan_due(tube, {}, kJobs);
      for (JobRecord& job : store.scan_buried(tube, 0, kJobs)) jobs.push_back(std::move(job));
      for (const JobRecord& job : jobs) {
        SCOPED_TRACE("job " + std::to_string(job.id));
        EXPECT_TRUE(there.insert(job.id).second);
        const auto is = truth.jobs().find(job.id);
        if (is == truth.jobs().end() || is->second != job) {
          const bool is_excused = is_log_whole ? is != truth.jobs().end() && tells("before their")
                                               : truth.is_of_log(job.id) || tells("before their");
          EXPECT_TRUE(is_excused && truth.was_once(job));
        }
        EXPECT_EQ(store.find(job.id), job);
        EXPECT_TRUE(whole_body(store, job.id, job.body_bytes) ==
                    body_of(job.id, body_size_of(job.id)));
        if (::testing::Test::HasFailure()) return;
      }
    }
    EXPECT_EQ(there.size(), report_.jobs);
    for (const auto& [id, job] : truth.jobs()) {
      const bool is_excused = !is_log_whole && truth.is_of_log(id);
      EXPECT_TRUE(there.count(id) > 0 || lost_.count(id) > 0 || is_excused) << id;
      const auto key = store.find_key(1, "key-" + std::to_string(id));
      if (there.count(id) == 0) {
        EXPECT_FALSE(key.has_value()) << id;
      } else if (body_size_of(id) <= kBodyPiece) {
        EXPECT_TRUE(tells("keys, tokens") || is_excused || (key && key->id == id)) << id;
      }
    }
    for (const JobId id : lost_) EXPECT_EQ(there.count(id), 0u) << id;
  }

  void expect_things() {
    const bool is_log_whole = report_.lost_changes.empty();
    const Recovered recovered = DiskStore(saved(), {}).recover();
    std::map<std::string, ScheduleRecord> schedules;
    for (const ScheduleRecord& record : recovered.schedules) schedules[record.name] = record;
    for (std::uint32_t n = 0; n < kThings; ++n) {
      const ScheduleRecord is = schedule(n);
      EXPECT_TRUE(schedules.count(is.name) > 0 ? schedules[is.name] == is
                                               : tells("schedules may be lost"));
      const auto found = recovered.endpoints.find("endpoint-" + std::to_string(n));
      EXPECT_TRUE(found != recovered.endpoints.end() ? found->second == endpoint(n)
                                                     : tells("endpoints, and"));
    }
    std::map<std::uint32_t, TubeRecord> tubes;
    for (const TubeRecord& tube : recovered.tubes) tubes[tube.number] = tube;
    for (std::uint32_t number = 1; number <= kRandomTubes; ++number) {
      const TubeRecord& tube = tubes[number];
      const bool is_whole = tube.name == tube_name_of(number) && tube.settings &&
                            tube.settings->retention == 1'000 + number;
      EXPECT_TRUE(is_whole || !is_log_whole || tells("number " + std::to_string(number) + " is"))
          << number;
    }
  }

  void expect_it_serves() {
    DiskStore store(saved(), {});
    Engine engine(store, {}, kAtRandom);
    const JobCounts jobs = engine.stats(kAtRandom).jobs;
    EXPECT_EQ(jobs.delayed + jobs.ready + jobs.buried, report_.jobs);
    const ClientId client = engine.connect();
    const PutOutcome put = engine.put(client, kAtRandom, {.due_in = 1}, "next");
    EXPECT_GT(put.id, kJobs);
    store.sync();
  }

  // Returns where the damaged directory stays.
  fs::path keep() const {
    fs::path kept = fs::temp_directory_path() / "carillon-salvage-of-random-bits";
    fs::remove_all(kept);
    fs::copy(copy(), kept);
    return kept;
  }

  StoreReport report_;
};

TEST_F(SalvageOfRandomBits, LosesNothingUnsaid) {
  constexpr int kRounds = 6;
  const std::uint64_t seed = seed_or(1);
  const char* const given = std::getenv("CARILLON_ROUNDS");
  const int rounds = given == nullptr ? kRounds : std::atoi(given);
  const Truth truth(directory_ / "data");
  int saved_rounds = 0;
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    std::mt19937_64 random(seed + static_cast<std::uint64_t>(round));
    SCOPED_TRACE("CARILLON_SEED=" + std::to_string(seed + static_cast<std::uint64_t>(round)));
    const std::string what = damage(random);
    SCOPED_TRACE(what);
    if (salvage_or_refuse(what.starts_with("MANIFEST-"))) {
      ++saved_rounds;
      SCOPED_TRACE(testing::PrintToString(report_.damages));
      SCOPED_TRACE(testing::PrintToString(report_.left_out));
      expect_jobs(truth);
      expect_things();
      expect_it_serves();
    }
    if (HasFailure()) ADD_FAILURE() << "the damaged directory is kept as " << keep();
  }
  EXPECT_GT(saved_rounds, 0);
}

}  // namespace
}  // namespace carillon::queue
