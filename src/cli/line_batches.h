// The lines of standard input, cut into batches: how `carillon put --batch` reads its jobs.
//
//   LineBatches batches;
//   for (auto lines = batches.next(); !lines.empty(); lines = batches.next()) ...
//
// A batch has 1 000 lines or `most`, or as many as one command takes; the last one has the rest.
// Empty lines are left out. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/output.h"
#include "server/beanstalk/command.h"

namespace carillon::cli {

class LineBatches {
 public:
  // `read` returns what comes next of the input, and nothing at its end.
  explicit LineBatches(std::function<std::string()> read = read_some_input,
                       std::size_t most = server::kMaxBatch)
      : read_(std::move(read)), most_(most) {}

  // Returns the next batch, without the ends of lines; none at the end of the input. Throws Failure
  // if a line is longer than a batch may be.
  std::vector<std::string> next();

  // The number of the batch that was returned last, and the numbers of its lines, all from 1.
  std::uint64_t number() const { return number_; }
  std::uint64_t first_line() const { return first_; }
  std::uint64_t last_line() const { return kept_.empty() ? line_ : line_ - 1; }

 private:
  // Returns false at the end of the input.
  bool take_line(std::string& line);

  std::function<std::string()> read_;
  std::size_t most_;
  std::string rest_;  // read, and returned from `at_` on
  std::size_t at_ = 0;
  bool ended_ = false;
  std::string kept_;  // a line that belongs to the next batch
  std::uint64_t number_ = 0;
  std::uint64_t first_ = 0;
  std::uint64_t line_ = 0;
};

}  // namespace carillon::cli
