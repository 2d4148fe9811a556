// The line on which a command shows how far it is: written over and over on a terminal, and nothing
// if standard error is none.
//
//   ProgressLine line;
//   for (...) line.show(progress_text(done, total, elapsed));   // the destructor clears it
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace carillon::cli {

// Not thread-safe.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Shows the text instead of the one before, at most five times a second: further calls do
  // nothing.
  void show(const std::string& text);

  // Makes the line empty, so that something else can be printed there.
  void clear();

 private:
  const bool on_terminal_;
  std::optional<std::chrono::steady_clock::time_point> shown_;
};

}  // namespace carillon::cli
