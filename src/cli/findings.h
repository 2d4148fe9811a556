// What `carillon check` has found: for each thing looked at how it is, and what to do about it.
//
//   Findings findings;
//   findings.warn("clock", "is not synchronised", "start chrony or systemd-timesyncd");
//   write_out(findings.text());        // at most 80 columns
//   return findings.exit_code();       // 0: all well, 1: warnings, 2: something fails
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace carillon::cli {

enum class Level : std::uint8_t {
  kOk,
  kWarn,  // it works, but worse than it could, or not for ever
  kFail,  // it does not work, or jobs are in danger
};

struct Finding {
  Level level = Level::kOk;
  std::string subject;  // one word: "clock"
  std::string found;
  std::string advice;  // what to do; empty if nothing is to be done
};

class Findings {
 public:
  void ok(std::string subject, std::string found);
  void warn(std::string subject, std::string found, std::string advice);
  void fail(std::string subject, std::string found, std::string advice);

  // A line for each finding, wrapped at 80 columns; advice follows on lines of its own.
  std::string text() const;
  // {"result":...,"findings":[{"level":...,"subject":...,"found":...,"advice":...}]} on one line.
  std::string json() const;
  // The worst level, as a number.
  int exit_code() const;

  const std::vector<Finding>& all() const { return findings_; }

 private:
  Level worst() const;

  std::vector<Finding> findings_;
};

}  // namespace carillon::cli
