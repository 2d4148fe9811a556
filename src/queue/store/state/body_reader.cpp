// Which run a read belongs to, and when several bodies are read at once.

#include "queue/store/state/body_reader.h"

#include <algorithm>
#include <utility>

#include "queue/store/state/no_wait_files.h"
#include "queue/store/state/record_keys.h"

namespace carillon::queue {

namespace {

// An id continues a run if it is at most this far after the last one. Stepping over three bodies of
// other tubes is still faster than a look-up.
constexpr JobId kNear = 4;

// Reading fewer than the first at once is not worth it, and more than the second gains nothing.
constexpr std::size_t kLeastAhead = 16;
constexpr std::size_t kMostAhead = 64;
// After this many bytes, no more bodies are read. A larger body is not kept.
constexpr std::size_t kBytesAhead = 64 << 10;
// What comes after a body of more bytes is not read ahead.
constexpr std::size_t kLargeBody = 16 << 10;

JobId id_of(const rocksdb::Slice& key) {
  JobId id = 0;
  for (std::size_t i = 0; i < key.size(); ++i) id = (id << 8) | static_cast<std::uint8_t>(key[i]);
  return id;
}

StoreDamage no_body(JobId id, std::uint32_t piece) {
  const std::string what = piece == 0 ? "" : "piece " + std::to_string(piece) + " of ";
  return StoreDamage(what + "the body " + std::to_string(id) + " is missing");
}

}  // namespace

std::string BodyReader::read(JobId id, std::uint32_t piece) {
  if (piece > 0) {
    auto bytes = state_.get(kBodies, view(piece_key(id, piece)));
    if (!bytes) throw no_body(id, piece);
    return std::move(*bytes);
  }
  std::unique_lock lock(mutex_);
  Run& run = move_on(continued_by(id), id);
  if (auto body = take(run, id)) return std::move(*body);
  struct Reading {  // keeps the run in its place while others may take the lock
    Run& run;
    std::unique_lock<std::mutex>& lock;
    Reading(Run& of, std::unique_lock<std::mutex>& held) : run(of), lock(held) {
      run.reading = true;
      lock.unlock();
    }
    ~Reading() {
      lock.lock();
      run.reading = false;
    }
  };
  if (const std::size_t most = run.ahead.empty() ? worth_reading(run, id) : 0; most > 0) {
    Bodies bodies;
    {
      const Reading reading(run, lock);
      bodies = read_on(id, most);
    }
    run.ahead = std::move(bodies);
    if (auto body = take(run, id)) return std::move(*body);
    run.reach = 1;
  }
  std::optional<std::string> body;
  {
    const Reading reading(run, lock);
    body = state_.get(kBodies, view(job_key(id)));
  }
  if (!body) throw no_body(id, 0);
  if (body->size() > kLargeBody) run.reach = 1;
  return std::move(*body);
}

// Moves a run on only if that brings the body. Otherwise read() will.
std::optional<std::string> BodyReader::at_hand(JobId id, std::uint32_t piece) {
  if (piece > 0) return look_up(id, piece);
  const std::lock_guard lock(mutex_);
  Run* const run = continued_by(id);
  if (run != nullptr && run->reading) return std::nullopt;
  if (run != nullptr) {
    if (auto body = take(*run, id)) {
      move_on(run, id);
      return body;
    }
    const std::size_t most = run->ahead.empty() ? worth_reading(*run, id) : 0;
    if (most > 0) {
      const NoWait no_wait;
      run->ahead = read_on(id, most);
      if (auto body = take(*run, id)) {
        move_on(run, id);
        return body;
      }
    }
  }
  auto body = look_up(id, 0);
  if (!body) return std::nullopt;
  Run& moved = move_on(run, id);
  if (body->size() > kLargeBody) moved.reach = 1;
  return body;
}

// Returns none if it would have to wait for the disk.
std::optional<std::string> BodyReader::look_up(JobId id, std::uint32_t piece) const {
  std::string bytes;
  const PieceKey key = piece_key(id, piece);
  switch (state_.get_at_hand(kBodies, piece == 0 ? view(job_key(id)) : view(key), bytes)) {
    case RocksState::AtHand::kOnDisk:
      return std::nullopt;
    case RocksState::AtHand::kNone:
      throw no_body(id, piece);
    case RocksState::AtHand::kFound:
      break;
  }
  return bytes;
}

// Returns the run that `id` continues, or nullptr.
BodyReader::Run* BodyReader::continued_by(JobId id) {
  for (Run& run : runs_) {
    if (id < run.last) continue;
    const bool near = id - run.last <= (run.reading ? kMostAhead : kNear);
    if (near || (!run.ahead.empty() && id <= run.ahead.back().first)) return &run;
  }
  return nullptr;
}

BodyReader::Run& BodyReader::oldest() {
  Run* oldest = nullptr;
  for (Run& run : runs_) {
    if (!run.reading && (oldest == nullptr || run.used < oldest->used)) oldest = &run;
  }
  return *oldest;
}

// `id` is read. If it continues no run, a new run begins in place of the oldest.
BodyReader::Run& BodyReader::move_on(Run* run, JobId id) {
  if (run == nullptr) {
    run = &oldest();
    *run = Run();
  } else {
    run->reach = std::min(2 * run->reach, kMostAhead);
  }
  run->last = id;
  run->used = ++reads_;
  return *run;
}

std::optional<std::string> BodyReader::take(Run& run, JobId id) {
  while (!run.ahead.empty() && run.ahead.front().first < id) run.ahead.pop_front();
  if (run.ahead.empty() || run.ahead.front().first != id) return std::nullopt;
  std::string body = std::move(run.ahead.front().second);
  run.ahead.pop_front();
  return body;
}

// Returns how many bodies from job `from` on should be read at once; 0 if it is not worth it.
std::size_t BodyReader::worth_reading(const Run& run, JobId from) const {
  const JobId newest = newest_.load(std::memory_order_relaxed);
  std::size_t most = run.reach;
  if (newest != 0) most = std::min<JobId>(most, newest - std::min(newest, from));
  return most < kLeastAhead ? 0 : most;
}

// Reads up to `most` bodies from job `from` on. Ignores errors: the read of the body itself will
// meet them.
BodyReader::Bodies BodyReader::read_on(JobId from, std::size_t most) const {
  Bodies read;
  const JobKey end = job_key(from + kNear * most);
  const rocksdb::Slice end_slice(end.data(), end.size());
  std::size_t bytes = 0;
  const auto at = state_.scan(kBodies, view(job_key(from)), end_slice);
  // A body in pieces ends the read, with its first piece.
  while (at->Valid() && at->value().size() <= kBytesAhead) {
    read.emplace_back(id_of(at->key()), at->value().ToString());
    bytes += at->value().size();
    if (read.size() == most || bytes >= kBytesAhead) break;
    at->Next();
  }
  return read;
}

}  // namespace carillon::queue
