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
#include "queue/salvage_fixture.h"

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

class WrittenFilesTest : public SalvageTest {
 protected:
  WrittenFilesTest() {
    put_jobs(data(), 1, kShared, 0);
    fs::copy(data(), other());
    put_jobs(data(), kShared + 1, kAll, 0);
    put_jobs(other(), kShared + 1, kAll, 1'000);
  }

  std::string other() const { return directory_ / "other"; }

  static void put_jobs(const std::string& path, JobId first, JobId last, JobId seed) {
    DiskStore store(path, {});
    for (JobId id = first; id <= last; ++id) {
      const std::string body = body_of(id + seed, kBody);
      store.append({.jobs = {{{}, job(id, kBody), body}},
                    .tubes = {{1, "default", id, 0}},
                    .watermarks = {}});
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
  bool told(const std::string& what) const { return tells(check(data()).damages, what); }
  // The jobs that are listed are lost; the others are there, whole.
  void expect_lost(const std::set<JobId>& lost) {
    EXPECT_FALSE(salvage(data()).damages.empty());
    EXPECT_EQ(lost_, lost);
    const DiskStore store(saved(), {});
    for (JobId id = 1; id <= kAll; ++id) {
      EXPECT_NE(store.find(id).has_value(), lost.contains(id)) << id;
      if (lost.contains(id)) continue;
      EXPECT_TRUE(store.body(id) == body_of(id, kBody)) << id;
    }
  }
  static std::set<JobId> ids(JobId first, JobId last) {
    std::set<JobId> ids;
    for (JobId id = first; id <= last; ++id) ids.insert(id);
    return ids;
  }
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
  EXPECT_TRUE(told(data() + "/" + name + ": it is whole, but not the file"));
  expect_lost(ids(kShared + 1, kAll));
  write(data() + "/" + name, ours);
  EXPECT_EQ(refused(), "");
  EXPECT_TRUE(check(data()).damages.empty());
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
  EXPECT_FALSE(check(data()).damages.empty());
}

TEST_F(WrittenFilesTest, TablesOfACopyAreRefusedAndTold) {
  const std::vector<std::string> names = exchangeable(".sst");
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names) {
    const std::string ours = contents(data() + "/" + name);
    exchange(name);
    EXPECT_NE(refused(), "") << name;
    EXPECT_FALSE(check(data()).damages.empty()) << name;
    write(data() + "/" + name, ours);
  }
  EXPECT_EQ(refused(), "");
}

TEST_F(WrittenFilesTest, AFileOfBodiesThatIsGoneIsTold) {
  const std::string name = bodies(false);
  fs::remove(data() + "/" + name);
  EXPECT_TRUE(told(data() + "/" + name + " is gone"));
  expect_lost(ids(1, kShared));
  const DiskStore store(data(), {});
  ASSERT_EQ(store.dropped().size(), 1U);
  EXPECT_TRUE(contains(store.dropped()[0], "data directory " + data() + " lacks the file " + name))
      << store.dropped()[0];
  EXPECT_TRUE(store.body(kAll) == body_of(kAll, kBody));
}

// It holds up no other body, and is told before a client meets it.
TEST_F(WrittenFilesTest, AFileOfBodiesThatIsDamagedIsServed) {
  const std::string name = bodies(true);
  flip(data() + "/" + name, 100);
  const DiskStore store(data(), {});
  ASSERT_EQ(store.dropped().size(), 1U);
  EXPECT_TRUE(contains(store.dropped()[0], "has a damaged file " + name)) << store.dropped()[0];
  EXPECT_TRUE(store.body(kAll) == body_of(kAll, kBody));
}

}  // namespace
}  // namespace carillon::queue
