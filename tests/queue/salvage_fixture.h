// The base of the tests of checks and salvages: a data directory, a copy of it to damage, and what
// is saved of that.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "carillon/queue/store_check.h"
#include "queue/file_bytes.h"
#include "queue/numbered_jobs.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {

class SalvageTest : public testing::Test {
 protected:
  std::string data() const { return directory_ / "data"; }
  std::string copy() const { return directory_ / "copy"; }
  std::string saved() const { return directory_ / "saved"; }

  void make_copy(const std::string& of) const {
    std::filesystem::remove_all(copy());
    std::filesystem::copy(of, copy());
  }

  static StoreReport check(const std::string& path) {
    return check_store(path, [](std::uint64_t, std::uint64_t) { return true; });
  }
  StoreReport salvage() { return salvage(copy()); }
  StoreReport salvage(const std::string& path) {
    lost_.clear();
    std::filesystem::remove_all(saved());
    return salvage_store(
        path, saved(), [](std::uint64_t, std::uint64_t) { return true; },
        [this](const LostJob& job) { lost_.insert(job.id); });
  }
  static bool tells(const std::vector<std::string>& lines, const std::string& part) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return contains(line, part); });
  }

  const TemporaryDirectory directory_;
  std::set<JobId> lost_;  // says the last salvage
};

}  // namespace carillon::queue
