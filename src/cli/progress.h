// How far a command is: numbers of bytes for people, and the line that shows the progress. A
// terminal shows it again and again in the same place; elsewhere nothing is shown.
//
//   ProgressLine line;
//   for (...) line.show(done, total);         // bytes; the destructor clears the line
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cli/wait.h"

namespace carillon::cli {

// Returns "0 bytes", "1 byte", "1023 bytes", "1.0 KiB", "2.7 GiB".
std::string size_text(std::uint64_t bytes);

// Returns "45 %, 1.2 GiB of 2.7 GiB, 310.0 MiB/s, 4s left", from the average speed so far. Speed
// and time are left out in the first half second.
std::string progress_text(std::uint64_t done, std::uint64_t total,
                          std::chrono::milliseconds elapsed);

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

  // Shows how many bytes of all are done, with the speed since begin() or the beginning.
  void show(std::uint64_t done, std::uint64_t total);

  // Another thing begins; `what` stands before its bytes.
  void begin(std::string what);

  // Returns what a long work calls (queue::StoreProgress): it shows the bytes, and returns false
  // once a signal has come. The line and the signals must outlive it.
  std::function<bool(std::uint64_t done, std::uint64_t total)> until(const StopSignals& signals);

  // Makes the line empty, so that something else can be printed there.
  void clear();

 private:
  const bool on_terminal_;
  std::string what_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::optional<std::chrono::steady_clock::time_point> shown_;
};

}  // namespace carillon::cli
