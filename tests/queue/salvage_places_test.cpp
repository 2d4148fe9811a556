// A bit at every kind of place in the files of a state: what has its own checksum is saved.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "queue/salvage_fixture.h"
#include "queue/store/log/change_codec.h"
#include "queue/store/log/local_log.h"
#include "queue/store/state/rocks_state.h"

namespace carillon::queue {
namespace {

namespace fs = std::filesystem;

constexpr JobId kJobsThere = 8'000;
constexpr JobId kLargeEvery = 40;

class SalvagePlaces : public SalvageTest {
 protected:
  static std::size_t size_of(JobId id) { return id % kLargeEvery == 0 ? 5'000 : 30; }
  static JobRecord record(JobId id) { return job(id, size_of(id)); }

  // Made once: the tests damage copies. Its tables have several parts of an index.
  static void SetUpTestSuite() {
    made = std::make_unique<TemporaryDirectory>();
    DiskStore store(*made / "whole", {});
    for (JobId id = 1; id <= kJobsThere; ++id) {
      const std::string body = body_of(id, size_of(id));
      store.append({.jobs = {{{}, record(id), body}}, .tubes = {}, .watermarks = {}});
    }
    for (JobId id = 100; id <= kJobsThere; id += 100)
      store.append({.jobs = {{record(id), {}, {}}}, .tubes = {}, .watermarks = {}});
    store.append({.jobs = {},
                  .tubes = {{1, "default", there(), 0}},
                  .watermarks = Watermarks{.next_id = kJobsThere + 1}});
    store.close();
  }
  static void TearDownTestSuite() { made.reset(); }
  static std::uint64_t there() { return kJobsThere - kJobsThere / 100; }

  // The largest file with the ending; a table is of the family.
  static fs::path largest(const std::string& ending, const std::string& family = "") {
    fs::path found;
    std::uint64_t most = 0;
    for (const auto& file : fs::directory_iterator(*made / "whole")) {
      if (file.path().extension() != ending || file.file_size() <= most) continue;
      if (!family.empty() && !contains(contents(file.path()), "name" + family)) continue;
      most = file.file_size();
      found = file.path().filename();
    }
    return found;
  }

  static std::uint64_t varint(const std::string& bytes, std::size_t& at) {
    std::uint64_t number = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<std::uint8_t>(bytes[at++]);
      number |= std::uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return number;
    }
  }

  // Where the parts of a table begin.
  struct Places {
    std::size_t foot, names, index, properties, filter;
    std::size_t properties_size;
  };
  static Places places_of(const std::string& bytes) {
    Places places{};
    places.foot = bytes.size() - 53;
    std::size_t at = places.foot + 1;
    places.names = varint(bytes, at);
    varint(bytes, at);
    places.index = varint(bytes, at);
    at = bytes.find("rocksdb.properties", places.names) + 18;
    places.properties = varint(bytes, at);
    places.properties_size = varint(bytes, at);
    at = bytes.find("BuiltinBloomFilter", places.names) + 18;
    places.filter = varint(bytes, at);
    return places;
  }

  void damage(const fs::path& name, const std::vector<std::size_t>& places) {
    make_copy(*made / "whole");
    for (const std::size_t at : places) flip(fs::path(copy()) / name, at, 4);
  }

  StoreReport salvage() {
    StoreReport report = SalvageTest::salvage();
    EXPECT_FALSE(report.damages.empty());
    EXPECT_EQ(report.lost_jobs, lost_.size());
    return report;
  }

  // Every job is saved, or listed; no erased one is either.
  void expect_lost(std::size_t least, std::size_t most) {
    const StoreReport report = salvage();
    SCOPED_TRACE(testing::PrintToString(report.damages));
    EXPECT_GE(lost_.size(), least);
    EXPECT_LE(lost_.size(), most);
    EXPECT_EQ(report.jobs + lost_.size(), there());
    const DiskStore store(saved(), {});
    const std::vector<JobRecord> jobs = store.scan_due(1, {}, kJobsThere);
    EXPECT_EQ(jobs.size(), report.jobs);
    for (const JobRecord& job : jobs) {
      EXPECT_TRUE(job.id % 100 != 0 && lost_.count(job.id) == 0) << job.id;
      EXPECT_EQ(job, record(job.id));
      EXPECT_TRUE(whole_body(store, job.id, job.body_bytes) == body_of(job.id, size_of(job.id)));
    }
  }

  static inline std::unique_ptr<TemporaryDirectory> made;
};

TEST_F(SalvagePlaces, DamageOfATableCostsOnlyBlocksOfData) {
  for (const char* family : {"jobs", "index", "bodies"}) {
    const fs::path name = largest(".sst", family);
    const std::string bytes = contents(fs::path(*made / "whole") / name);
    ASSERT_GT(bytes.size(), 100'000u) << family;
    const Places at = places_of(bytes);
    ASSERT_LT(at.filter, at.index);
    const struct {
      const char* what;
      std::size_t place;
    } places[] = {
        {"the filter", at.filter + 5},
        {"the last part of the index", at.index - 20},
        {"the index", at.index + 3},
        {"the properties", at.properties + 50},
        {"the end of the properties", at.properties + at.properties_size - 6},
        {"the names of these", at.names + 10},
        {"where these are", at.foot + 3},
        {"the kind of the checksums", at.foot},
        {"the last byte", bytes.size() - 1},
    };
    int round = 0;
    for (const auto& [what, place] : places) {
      if (family != std::string("index") && ++round % 3 != 1) continue;
      SCOPED_TRACE(std::string(family) + ": " + what);
      damage(name, {place});
      expect_lost(0, 0);
    }
    SCOPED_TRACE(family);
    ASSERT_FALSE(HasFailure());
    damage(name, {at.filter / 2, at.properties + 50, at.foot + 3});
    expect_lost(family == std::string("jobs") ? 0 : 1,
                600);  // records say which pointers were lost
  }
}

TEST_F(SalvagePlaces, DamageOfAFileOfBodiesCostsOneBodyAtMost) {
  const fs::path name = largest(".blob");
  const std::string bytes = contents(fs::path(*made / "whole") / name);
  const std::size_t foot = bytes.size() - 32;
  for (const std::size_t at : {std::size_t{1}, std::size_t{5}, std::size_t{9}, std::size_t{13},
                               std::size_t{20}, foot, foot + 10, foot + 31}) {
    SCOPED_TRACE("byte " + std::to_string(at));
    damage(name, {at});
    expect_lost(0, 0);
  }
  for (const std::size_t at : {std::size_t{30 + 2}, std::size_t{30 + 200}}) {
    SCOPED_TRACE("byte " + std::to_string(at));
    damage(name, {at, 9, foot + 5});
    expect_lost(1, 1);
  }
}

// Also shorter than any table, and longer than it was.
TEST_F(SalvagePlaces, AFileThatIsCutShortCostsNoMoreThanThatFile) {
  const fs::path bodies = largest(".blob");
  for (const fs::path& name : {largest(".sst", "index"), largest(".sst", "bodies"), bodies}) {
    const std::string bytes = contents(fs::path(*made / "whole") / name);
    const std::size_t most = name == bodies ? kJobsThere / kLargeEvery : there();
    for (const std::size_t left : {bytes.size() / 2, bytes.size() - 10, std::size_t{10},
                                   std::size_t{0}, bytes.size() + 100}) {
      SCOPED_TRACE(name.string() + " with " + std::to_string(left) + " bytes of " +
                   std::to_string(bytes.size()));
      damage(name, {});
      std::string cut = bytes;
      cut.resize(left, 'x');
      write(fs::path(copy()) / name, cut);
      const bool is_part = left == bytes.size() / 2;
      const bool is_all = left < 100;
      expect_lost(is_all ? most / 2 : is_part ? 1 : 0, is_all ? most : is_part ? most * 2 / 3 : 0);
    }
  }
}

// No byte of them is tried as the beginning of a block: that would take minutes.
TEST_F(SalvagePlaces, FullOfZerosCostTheirBlocks) {
  constexpr std::size_t kHole = 20 << 10;
  const fs::path name = largest(".sst", "index");
  std::string bytes = contents(fs::path(*made / "whole") / name);
  const Places at = places_of(bytes);
  ASSERT_GT(at.filter, 4 * kHole);
  for (std::size_t hole = kHole; hole + kHole < at.filter; hole += 2 * kHole)
    bytes.replace(hole, kHole, kHole, '\0');
  bytes[at.index + 3] = static_cast<char>(bytes[at.index + 3] ^ 16);
  damage(name, {});
  write(fs::path(copy()) / name, bytes);
  expect_lost(1, there() * 3 / 4);
}

TEST_F(SalvagePlaces, AMissingTableCostsNoMoreThanThatTable) {
  for (const char* family : {"jobs", "index", "bodies"}) {
    SCOPED_TRACE(family);
    const fs::path name = largest(".sst", family);
    damage(name, {});
    fs::remove(fs::path(copy()) / name);
    const bool has_copies = family == std::string("jobs");  // records say which pointers were lost
    expect_lost(has_copies ? 0 : 1, has_copies ? 0 : there());
    const StoreReport found = check(copy());
    EXPECT_TRUE(found.can_be_salvaged);
    EXPECT_EQ(found.damages.at(0), copy() + "/" + name.string() + " is gone");
  }
}

// Each of these has several records, and the last one is of another life.
TEST_F(SalvagePlaces, DamageOfALogsHeaderCostsNothing) {
  constexpr JobId kPut = 400;
  const auto append = [](DiskStore& store, JobId id) {
    const std::string body = body_of(id, 9'000);
    store.append({.jobs = {{{}, job(id, 9'000), body}},
                  .tubes = {{1, "default", id, 0}},
                  .watermarks = Watermarks{.next_id = id + 1}});
    store.sync();
  };
  for (const JobId from : {JobId{1}, kPut / 2 + 1}) {
    DiskStore store(data(), {});
    for (JobId id = from; id < from + kPut / 2; ++id) append(store, id);
    copy_open_store(data(), copy());
    store.close();
    fs::remove_all(data());
    fs::copy(copy(), data());
  }
  std::vector<fs::path> segments;
  for (const auto& file : fs::directory_iterator(data())) {
    if (LogSegment::number_of(file.path().filename().string())) segments.push_back(file.path());
  }
  ASSERT_GE(segments.size(), 3u);
  int unknown = 0;
  for (const fs::path& segment : segments) {
    SCOPED_TRACE(segment.filename());
    make_copy(data());
    std::string bytes = contents(segment);
    bytes.replace(0, 100, 100, '\xff');
    write(fs::path(copy()) / segment.filename(), bytes);
    const StoreReport report = salvage();
    SCOPED_TRACE(testing::PrintToString(report.damages));
    EXPECT_TRUE(contains(report.damages.at(0), "its header is broken"));
    EXPECT_FALSE(contains(report.damages.at(0), ".work")) << report.damages.at(0);
    if (!report.lost_changes.empty()) {  // it was made ahead, and has no record
      ++unknown;
      continue;
    }
    EXPECT_EQ(report.jobs, kPut);
    const DiskStore store(saved(), {});
    for (JobId id = 1; id <= kPut; ++id) EXPECT_TRUE(store.body(id) == body_of(id, 9'000)) << id;
  }
  EXPECT_LE(unknown, 1);
}

}  // namespace
}  // namespace carillon::queue
