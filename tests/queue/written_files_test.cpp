// Files of a state that are gone, or that somebody has replaced by a copy's file of the same name
// and size. A start hands out no body of another queue, and a check names each such file.

#include "queue/store/state/written_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "carillon/queue/store_check.h"
#include "queue/file_bytes.h"
#include "queue/numbered_jobs.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBody = 20'000;  // bytes, in a file of large bodies
constexpr JobId kShared = 20;          // jobs of before the copy was made
constexpr JobId kAll = 50;

TEST(FileSum, IsOfAllBytesAndOfTheBeginning) {
  const std::string bytes = body_of(1, 10'000);
  FileSum whole;
  whole.add(bytes);
  FileSum pieces;
  for (std::size_t at = 0; at < bytes.size(); at += 999)
    pieces.add(std::string_view(bytes).substr(at, 999));
  EXPECT_TRUE(pieces == whole);
  FileSum beginning;
  beginning.add(bytes.substr(0, FileSum::kBeginning));
  EXPECT_EQ(beginning.beginning(), whole.beginning());
  EXPECT_EQ(beginning.all(), beginning.beginning());
  EXPECT_NE(beginning.all(), whole.all());
  EXPECT_TRUE(FileSum::decode(whole.encode()) == whole);
  EXPECT_EQ(FileSum::decode("another"), std::nullopt);
}

class WrittenFilesTest : public testing::Test {
 protected:
  WrittenFilesTest() {
    put_jobs(data(), 1, kShared, 0);
    fs::copy(data(), other());
    put_jobs(data(), kShared + 1, kAll, 0);
    put_jobs(other(), kShared + 1, kAll, 1'000);
  }

  std::string data() const { return directory_ / "data"; }
  std::string other() const { return directory_ / "other"; }
  std::string saved() const { return directory_ / "saved"; }

  static void put_jobs(const std::string& path, JobId first, JobId last, JobId seed) {
    DiskStore store(path, {});
    for (JobId id = first; id <= last; ++id) {
      const std::string body = body_of(id + seed, kBody);
      JobRecord record = job(id);
      record.body_bytes = kBody;
      store.append(
          {.jobs = {{{}, record, body}}, .tubes = {{1, "default", id, 0}}, .watermarks = {}});
    }
    store.close();
  }

  // Those that both directories have, and that differ, with this ending.
  std::vector<std::string> exchangeable(const std::string& ending) const {
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(data())) {
      const std::string name = file.path().filename();
      const fs::path others = other() + "/" + name;
      if (file.path().extension() != ending || !fs::exists(others)) continue;
      if (contents(file.path()) != contents(others)) names.push_back(name);
    }
    return names;
  }
  void exchange(const std::string& name) const {
    fs::copy_file(other() + "/" + name, data() + "/" + name, fs::copy_options::overwrite_existing);
  }
  // The file that has the bodies of the later jobs, or of the earlier ones.
  std::string bodies(bool later) const {
    std::set<std::string> names;
    for (const auto& file : fs::directory_iterator(data())) {
      if (file.path().extension() == ".blob") names.insert(file.path().filename());
    }
    EXPECT_EQ(names.size(), 2U);
    return later ? *names.rbegin() : *names.begin();
  }

  std::string refused() const {
    return complaint([this] { DiskStore(data(), {}); });
  }
  StoreReport check() const {
    return check_store(data(), [](std::uint64_t, std::uint64_t) { return true; });
  }
  // Returns the jobs that are listed; the others are there, whole.
  std::set<JobId> salvage() const {
    std::set<JobId> lost;
    const StoreReport report = salvage_store(
        data(), saved(), [](std::uint64_t, std::uint64_t) { return true; },
        [&](const LostJob& job) { lost.insert(job.id); });
    EXPECT_FALSE(report.damages.empty());
    const DiskStore store(saved(), {});
    for (JobId id = 1; id <= kAll; ++id) {
      EXPECT_NE(store.find(id).has_value(), lost.contains(id)) << id;
      if (lost.contains(id)) continue;
      EXPECT_TRUE(store.body(id) == body_of(id, kBody)) << id;
    }
    return lost;
  }
  static bool told(const StoreReport& report, const std::string& what) {
    return std::any_of(report.damages.begin(), report.damages.end(),
                       [&](const std::string& line) { return contains(line, what); });
  }
  static std::set<JobId> ids(JobId first, JobId last) {
    std::set<JobId> ids;
    for (JobId id = first; id <= last; ++id) ids.insert(id);
    return ids;
  }

  const TemporaryDirectory directory_;
};

TEST_F(WrittenFilesTest, BodiesOfACopyAreNotHandedOut) {
  const std::string name = bodies(true);
  const std::string ours = contents(data() + "/" + name);
  ASSERT_EQ(exchangeable(".blob"), (std::vector<std::string>{name}));
  ASSERT_EQ(fs::file_size(other() + "/" + name), ours.size());
  exchange(name);
  const std::string why = refused();
  EXPECT_TRUE(contains(why, "data directory " + data() + " has another file " + name +
                                ": it is whole, but not the file that was written"))
      << why;
  EXPECT_TRUE(contains(why, "carillon check --data " + data() + " --salvage NEW")) << why;
  EXPECT_TRUE(told(check(), data() + "/" + name + ": it is whole, but not the file"));
  EXPECT_EQ(salvage(), ids(kShared + 1, kAll));
  write(data() + "/" + name, ours);
  EXPECT_EQ(refused(), "");
  EXPECT_TRUE(check().damages.empty());
}

// The file of the copy has the same size and the same beginning.
TEST_F(WrittenFilesTest, ACheckReadsFilesToTheirEnd) {
  const std::string name = bodies(true);
  const std::string ours = contents(data() + "/" + name);
  exchange(name);
  std::string mixed = contents(data() + "/" + name);
  constexpr std::size_t kFirst = 30 + 32 + 8 + kBody;  // head, record
  const std::size_t end = std::max(kFirst, FileSum::kBeginning);
  mixed.replace(0, end, ours, 0, end);
  write(data() + "/" + name, mixed);
  EXPECT_EQ(refused(), "");
  EXPECT_FALSE(check().damages.empty());
}

TEST_F(WrittenFilesTest, TablesOfACopyAreRefusedAndTold) {
  const std::vector<std::string> names = exchangeable(".sst");
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names) {
    const std::string ours = contents(data() + "/" + name);
    exchange(name);
    EXPECT_NE(refused(), "") << name;
    EXPECT_FALSE(check().damages.empty()) << name;
    write(data() + "/" + name, ours);
  }
  EXPECT_EQ(refused(), "");
}

TEST_F(WrittenFilesTest, AFileOfBodiesThatIsGoneIsTold) {
  const std::string name = bodies(false);
  fs::remove(data() + "/" + name);
  EXPECT_TRUE(told(check(), data() + "/" + name + " is gone"));
  EXPECT_EQ(salvage(), ids(1, kShared));
  const DiskStore store(data(), {});
  ASSERT_EQ(store.dropped().size(), 1U);
  EXPECT_TRUE(contains(store.dropped()[0], "data directory " + data() + " lacks the file " + name))
      << store.dropped()[0];
  EXPECT_TRUE(store.body(kAll) == body_of(kAll, kBody));
}

// It holds up no other body, and is told before a client meets it.
TEST_F(WrittenFilesTest, AFileOfBodiesThatIsDamagedIsServed) {
  const std::string name = bodies(true);
  std::string bytes = contents(data() + "/" + name);
  bytes[100] = static_cast<char>(bytes[100] ^ 1);
  write(data() + "/" + name, bytes);
  const DiskStore store(data(), {});
  ASSERT_EQ(store.dropped().size(), 1U);
  EXPECT_TRUE(contains(store.dropped()[0], "has a damaged file " + name)) << store.dropped()[0];
  EXPECT_TRUE(store.body(kAll) == body_of(kAll, kBody));
}

}  // namespace
}  // namespace carillon::queue
