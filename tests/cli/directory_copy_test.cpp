// A copy of a directory: its order, its name, and what is left of one that fails.

#include "cli/directory_copy.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "cli/scripted_server.h"

namespace carillon::cli {
namespace {

namespace fs = std::filesystem;

class DirectoryCopyTest : public testing::Test {
 protected:
  DirectoryCopyTest() {
    std::string name = testing::TempDir() + "carillon-copy-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no directory");
    root_ = name;
    fs::create_directory(root_ / "from");
    for (const char* file : {"000007.sst", "CURRENT", "MANIFEST-000005", "jobs-1.data"})
      write(file, file);
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& file, const std::string& bytes) {
    std::ofstream(root_ / "from" / file, std::ios::binary) << bytes;
  }
  std::string bytes_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string from() { return root_ / "from"; }
  std::string to() { return root_ / "to"; }

  fs::path root_;
};

TEST_F(DirectoryCopyTest, IsWholeWhenItHasItsName) {
  std::string large;
  large.resize(40'000'000, 'x');
  write("000008.blob", large);
  write("empty", "");
  std::vector<std::uint64_t> steps;
  DirectoryCopy copy(to() + "//");
  copy.begin(from());
  copy.run([&](std::uint64_t done) { steps.push_back(done); });
  EXPECT_FALSE(fs::exists(to()));
  copy.finish();
  EXPECT_FALSE(fs::exists(to() + ".partial"));
  EXPECT_EQ(copy.files(), 6U);
  EXPECT_EQ(copy.bytes(), 40'000'000U + 10 + 7 + 15 + 11);
  EXPECT_EQ(bytes_of(to() + "/000008.blob"), large);
  for (const char* file : {"000007.sst", "CURRENT", "MANIFEST-000005", "jobs-1.data"})
    EXPECT_EQ(bytes_of(to() + "/" + file), file);
  EXPECT_TRUE(fs::is_empty(to() + "/empty"));
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
  EXPECT_EQ(steps.size(), 15U);  // the large file in ten steps
  EXPECT_EQ(steps.back(), copy.bytes());
  struct stat status {};
  ASSERT_EQ(::stat(to().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

TEST_F(DirectoryCopyTest, HasTheLogFirstAndCurrentLast) {
  std::vector<std::string> order;
  DirectoryCopy copy(to());
  copy.begin(from());
  copy.run([&](std::uint64_t) {
    for (const auto& entry : fs::directory_iterator(to() + ".partial")) {
      const std::string name = entry.path().filename();
      if (std::find(order.begin(), order.end(), name) == order.end()) order.push_back(name);
    }
  });
  EXPECT_EQ(order,
            (std::vector<std::string>{"jobs-1.data", "000007.sst", "MANIFEST-000005", "CURRENT"}));
}

TEST_F(DirectoryCopyTest, LeavesNothingIfItIsGivenUp) {
  {
    DirectoryCopy copy(to());
    copy.begin(from());
    EXPECT_THROW(copy.run([](std::uint64_t) { throw std::runtime_error("enough"); }),
                 std::runtime_error);
    EXPECT_TRUE(fs::exists(to() + ".partial/jobs-1.data"));
  }
  EXPECT_FALSE(fs::exists(to() + ".partial"));
  {
    DirectoryCopy copy(to());
    copy.begin(from());
    copy.run([](std::uint64_t) {});
  }
  EXPECT_FALSE(fs::exists(to()));
  EXPECT_FALSE(fs::exists(to() + ".partial"));
}

TEST_F(DirectoryCopyTest, TwoToOneNameDoNotMix) {
  DirectoryCopy first(to());
  {
    DirectoryCopy second(to());
    first.begin(from());
    EXPECT_EQ(failure_of([&] { second.begin(from()); }),
              to() + ".partial exists: another backup to this name is running, or was killed; if " +
                  "it was killed, remove the directory first");
  }
  EXPECT_TRUE(fs::exists(to() + ".partial"));
  first.run([](std::uint64_t) {});
  first.finish();
  EXPECT_EQ(failure_of([&] { const DirectoryCopy third(to()); }),
            to() + " exists; name a directory that does not exist");
}

TEST_F(DirectoryCopyTest, AFileThatHasGoneIsAFailure) {
  DirectoryCopy copy(to());
  copy.begin(from());
  fs::remove(root_ / "from/000007.sst");
  EXPECT_EQ(failure_of([&] { copy.run([](std::uint64_t) {}); }),
            "cannot read " + from() + "/000007.sst: no such file or directory");
}

TEST_F(DirectoryCopyTest, AFileThatBecomesShorterIsAFailure) {
  DirectoryCopy copy(to());
  copy.begin(from());
  fs::resize_file(root_ / "from/000007.sst", 3);
  EXPECT_EQ(failure_of([&] { copy.run([](std::uint64_t) {}); }),
            from() + "/000007.sst has become shorter meanwhile");
}

TEST_F(DirectoryCopyTest, ACopyThatCannotFitIsNotBegun) {
  write("large", "");
  fs::resize_file(root_ / "from/large", std::uintmax_t{1} << 42);  // a hole
  DirectoryCopy copy(to());
  const std::string failure = failure_of([&] { copy.begin(from()); });
  EXPECT_TRUE(failure.starts_with("the backup needs 4.0 TiB, and the disk of ")) << failure;
  EXPECT_FALSE(fs::exists(to() + ".partial"));
}

}  // namespace
}  // namespace carillon::cli
