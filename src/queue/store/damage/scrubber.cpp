// The thread that reads all files slowly (carillon/queue/scrubber.h).

#include "carillon/queue/scrubber.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "carillon/queue/store.h"
#include "carillon/require.h"
#include "queue/store/damage/file_checks.h"
#include "queue/store/damage/offline_state.h"
#include "queue/store/state/no_wait_files.h"

namespace carillon::queue {

namespace fs = std::filesystem;

namespace {

// The thread gets the processor only when nobody else wants it, and so the disk, if its scheduler
// knows priorities. Where the system refuses that, the thread goes on as it is.
void take_lowest_priority() {
  const sched_param none{};
  ::pthread_setschedparam(::pthread_self(), SCHED_IDLE, &none);
  constexpr int kThread = 1;           // IOPRIO_WHO_PROCESS
  constexpr int kIdleClass = 3 << 13;  // IOPRIO_CLASS_IDLE
  ::syscall(SYS_ioprio_set, kThread, 0, kIdleClass);
}

}  // namespace

Scrubber::Scrubber(std::string path, const ScrubberOptions& options, OnDamage on_damage)
    : path_(std::move(path)), options_(options), on_damage_(std::move(on_damage)) {
  CARILLON_REQUIRE(options.bytes_per_second > 0);
  thread_ = std::thread([this] { run(); });
}

Scrubber::~Scrubber() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

Scrubber::Health Scrubber::health() const {
  const std::lock_guard lock(mutex_);
  return {.damaged_files = damaged_.size(),
          .bytes = bytes_.load(std::memory_order_relaxed),
          .rounds = rounds_.load(std::memory_order_relaxed)};
}

void Scrubber::note_damage(std::string_view text) {
  const std::size_t dot = std::min(text.find(".sst"), text.find(".blob"));
  if (dot == std::string_view::npos) return;
  const std::size_t before = text.substr(0, dot).find_last_not_of("0123456789");
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  if (begin == dot) return;
  const std::string_view name = text.substr(begin);
  const std::size_t end = name.find_first_not_of("0123456789.sstblo");
  const std::lock_guard lock(mutex_);
  damaged_.emplace(name.substr(0, end));
}

void Scrubber::run() {
  take_lowest_priority();
  do {
    run_round();
  } while (rest(options_.between_rounds));
}

// A directory that cannot be listed is tried again in the next round; the server will say why.
void Scrubber::run_round() {
  try {
    for (const StateFile& file : files_in(path_)) {
      if (told_.count(file.path) == 0 && is_settled(file.path)) scrub(file.path, file.has_blobs);
      if (!rest(std::chrono::microseconds(0))) return;
    }
    rounds_.fetch_add(1, std::memory_order_relaxed);
  } catch (const std::exception&) {
  }
}

// A file that is still being written, by a disk that stalls, is complete or gone a while later. One
// that cannot be read now is read again in the next round.
void Scrubber::scrub(const std::string& path, bool has_blobs) {
  if (verify(path, has_blobs).empty() || !rest(options_.until_last_read)) return;
  const std::string why = verify(path, has_blobs);
  std::error_code ignored;
  if (why.empty() || !is_settled(path) || !fs::exists(path, ignored)) return;
  told_.insert(path);
  note_damage(path);
  on_damage_("the file " + path + " is damaged: " + why +
             "; see \"Damaged files\" in docs/operations.md");
}

std::string Scrubber::verify(const std::string& path, bool has_blobs) {
  const PacedRead paced([this](std::size_t size) {
    bytes_.fetch_add(size, std::memory_order_relaxed);
    return rest(std::chrono::microseconds(size * 1'000'000 / options_.bytes_per_second));
  });
  const FileVerdict verdict = verdict_on({.path = path, .bytes = 0, .has_blobs = has_blobs});
  return verdict.unreadable ? std::string() : verdict.fault;
}

bool Scrubber::is_settled(const std::string& path) const {
  std::error_code error;
  const auto written = fs::last_write_time(path, error);
  return !error && fs::file_time_type::clock::now() - written >= options_.settled;
}

// Returns false if the thread must end.
bool Scrubber::rest(std::chrono::microseconds time) {
  std::unique_lock lock(mutex_);
  return !stop_.wait_for(lock, time, [this] { return stopping_; });
}

}  // namespace carillon::queue
