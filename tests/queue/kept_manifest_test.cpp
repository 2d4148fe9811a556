// keep_manifest(): RocksDB deletes no MANIFEST that CURRENT names.

#include "queue/store/state/kept_manifest.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "queue/store/state/state_options.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {

namespace {

class KeptManifestTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    std::ofstream(path(name)) << text;
  }
  bool has(const std::string& name) const { return std::filesystem::exists(path(name)); }
  void erase(const std::string& name) {
    EXPECT_TRUE(files_->DeleteFile(path(name), {}, nullptr).ok()) << name;
  }
  std::string path(const std::string& name) const { return directory_ / name; }

  TemporaryDirectory directory_;
  const std::shared_ptr<rocksdb::FileSystem> files_ = keep_manifest(rocksdb::FileSystem::Default());
};

TEST_F(KeptManifestTest, KeepsTheOneThatCurrentNamesAndDeletesAllElse) {
  write("CURRENT", "MANIFEST-000024\n");
  for (const char* name : {"MANIFEST-000005", "MANIFEST-000024", "MANIFEST-0000241", "000024.sst"})
    write(name, "x");
  for (const char* name : {"MANIFEST-000005", "MANIFEST-000024", "MANIFEST-0000241", "000024.sst"})
    erase(name);
  EXPECT_TRUE(has("MANIFEST-000024"));
  EXPECT_FALSE(has("MANIFEST-000005"));
  EXPECT_FALSE(has("MANIFEST-0000241"));
  EXPECT_FALSE(has("000024.sst"));

  write("CURRENT", "MANIFEST-000025\n");
  erase("MANIFEST-000024");
  EXPECT_FALSE(has("MANIFEST-000024"));
}

TEST_F(KeptManifestTest, IsWhatTheStateUses) {
  write("CURRENT", "MANIFEST-000024\n");
  write("MANIFEST-000024", "x");
  EXPECT_TRUE(state_options({}).env->DeleteFile(path("MANIFEST-000024")).ok());
  EXPECT_TRUE(has("MANIFEST-000024"));
}

TEST_F(KeptManifestTest, KeepsEachWhileCurrentCannotBeRead) {
  write("MANIFEST-000024", "x");
  erase("MANIFEST-000024");
  EXPECT_TRUE(has("MANIFEST-000024"));
}

}  // namespace

}  // namespace carillon::queue
