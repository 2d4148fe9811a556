// Scrubber: reads the files of a store slowly, again and again, and reports damaged files before a
// reader meets the damage.
//
//   Scrubber scrubber("carillon-data", {.bytes_per_second = 1 << 20},
//                     [](const std::string& line) { log(line); });
//   ...
//   if (scrubber.health().damaged_files > 0) ...
//
// A thread of the lowest priority reads all tables and large bodies from the disk, at a bounded
// rate, and verifies every checksum. It knows only the directory of the store, and takes no lock of
// the store. Files that were written lately are left for the next round: they may not be complete.
// A file that fails is read three times, the last time a while later. Each damaged file is reported
// once; a file that cannot be read is tried again in the next round. The files of the log are left
// out: they are short-lived, and each start reads them.
//
// Thread safety: any thread may call health().
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>

namespace carillon::queue {

struct ScrubberOptions {
  std::size_t bytes_per_second = 1 << 20;  // REQUIRES: > 0
  // A file counts as complete when nobody has written to it for this long.
  std::chrono::milliseconds settled{60'000};
  std::chrono::milliseconds between_rounds{60'000};
  std::chrono::milliseconds until_last_read{5'000};  // after a file has failed
};

class Scrubber {
 public:
  // Called by the thread with one line for each damaged file. It must not throw.
  using OnDamage = std::function<void(const std::string& line)>;

  struct Health {
    std::uint64_t damaged_files = 0;
    std::uint64_t bytes = 0;   // bytes that were read
    std::uint64_t rounds = 0;  // how often all files were read
  };

  Scrubber(std::string path, const ScrubberOptions& options, OnDamage on_damage);
  // Waits for at most one read.
  ~Scrubber();
  Scrubber(const Scrubber&) = delete;
  Scrubber& operator=(const Scrubber&) = delete;

  Health health() const;
  // A reader that has met damage calls it: counts the file that the text names (123456.sst,
  // 123456.blob) among Health::damaged_files. Each file counts once, no matter who found it. Any
  // thread may call it.
  void note_damage(std::string_view text);

 private:
  void run();
  void run_round();
  void scrub(const std::string& path, bool has_blobs);
  std::string verify(const std::string& path, bool has_blobs);
  bool is_settled(const std::string& path) const;
  bool rest(std::chrono::microseconds time);

  const std::string path_;
  const ScrubberOptions options_;
  const OnDamage on_damage_;

  mutable std::mutex mutex_;
  std::condition_variable stop_;
  // Protected by mutex_:
  bool stopping_ = false;
  std::set<std::string, std::less<>> damaged_;  // names of files

  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<std::uint64_t> rounds_ = 0;

  std::set<std::string> told_;  // used only by the thread
  std::thread thread_;
};

}  // namespace carillon::queue
