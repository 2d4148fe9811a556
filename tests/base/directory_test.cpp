#include "base/directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/file_descriptor.h"
#include "queue/temporary_directory.h"

namespace carillon::base {
namespace {

namespace fs = std::filesystem;

TEST(Directory, IsReachedByItsHeldPathWhereverItGoes) {
  const queue::TemporaryDirectory around;
  const fs::path at = around / "data";
  fs::create_directory(at);
  const Directory directory(at);
  EXPECT_EQ(directory.error(), 0);
  EXPECT_EQ(directory.path(), at);
  EXPECT_NE(directory.held_path(), directory.path());
  std::ofstream(directory.held_path() + "/a") << "a";
  EXPECT_TRUE(fs::exists(at / "a"));
  fs::rename(at, around / "moved");
  fs::create_directory(at);
  std::ofstream(directory.held_path() + "/b") << "b";
  EXPECT_TRUE(fs::exists(fs::path(around / "moved") / "b"));
  EXPECT_TRUE(fs::is_empty(at));
}

TEST(Directory, TellsWhereItsPathLeadsNow) {
  const queue::TemporaryDirectory around;
  const fs::path at = around / "data";
  const fs::path moved = around / "moved";
  fs::create_directory(at);
  const Directory directory(at);
  EXPECT_EQ(directory.moved(), std::nullopt);
  fs::rename(at, moved);
  EXPECT_NE(directory.moved().value_or("").find("its path leads to nothing now"),
            std::string::npos);
  EXPECT_NE(directory.moved().value_or("").find(", which is " + moved.string()), std::string::npos);
  fs::create_directory(at);
  EXPECT_NE(directory.moved().value_or("").find("its path leads to inode "), std::string::npos);
  fs::remove(at);
  fs::rename(moved, at);
  EXPECT_EQ(directory.moved(), std::nullopt);
  fs::rename(at, moved);
  fs::create_symlink(moved, at);
  EXPECT_EQ(directory.moved(), std::nullopt) << "it is the same directory";
}

TEST(Directory, PutsItsPathIntoATextForPeople) {
  const Directory directory("/tmp");
  const std::string held = directory.held_path();
  EXPECT_EQ(directory.with_path("While open " + held + "/1.sst, in " + held),
            "While open /tmp/1.sst, in /tmp");
  EXPECT_EQ(directory.with_path(held + "0/1.sst"), held + "0/1.sst") << "another descriptor";
  EXPECT_EQ(directory.with_path(""), "");
}

}  // namespace
}  // namespace carillon::base
