// Which run a read belongs to, and when several bodies are read at once.

#include "queue/store/body_reader.h"

#include <algorithm>

#include "queue/store/record_keys.h"

namespace carillon::queue {

namespace {

// An id continues a run if it is at most so far behind the last one. To step over three bodies of
// other tubes is still faster than to look one up.
constexpr JobId kNear = 4;

// To read fewer than the first at once is not worth it, and more than the second gains nothing.
constexpr std::size_t kLeastAhead = 16;
constexpr std::size_t kMostAhead = 64;
// When so many bytes were read, no more bodies are. A larger body is not kept.
constexpr std::size_t kBytesAhead = 64 << 10;
// What comes after a body of more bytes is not read ahead.
constexpr std::size_t kLargeBody = 16 << 10;

JobId id_of(const rocksdb::Slice& key) {
  JobId id = 0;
  for (std::size_t i = 0; i < key.size(); ++i) id = (id << 8) | static_cast<std::uint8_t>(key[i]);
  return id;
}

}  // namespace

std::string BodyReader::read(JobId id) {
  Run& run = run_of(id);
  run.last = id;
  run.used = ++reads_;
  while (!run.ahead.empty() && run.ahead.front().first < id) run.ahead.pop_front();
  if (run.ahead.empty()) read_ahead(run, id);
  if (!run.ahead.empty() && run.ahead.front().first == id) {
    std::string body = std::move(run.ahead.front().second);
    run.ahead.pop_front();
    return body;
  }
  auto body = state_.get(kBodies, view(job_key(id)));
  if (!body) throw StoreDamage("job " + std::to_string(id) + " has no body");
  if (body->size() > kLargeBody) run.reach = 1;
  return std::move(*body);
}

void BodyReader::changed(const JobChange& change) {
  if (!change.before && change.after) newest_ = change.after->id;
  if (!change.before || change.after) return;
  for (Run& run : runs_) {
    std::erase_if(run.ahead,
                  [&change](const auto& body) { return body.first == change.before->id; });
  }
}

// The run that `id` continues; else a new one, in the place of the one that was used longest ago.
BodyReader::Run& BodyReader::run_of(JobId id) {
  Run* oldest = runs_.data();
  for (Run& run : runs_) {
    const bool near = id >= run.last && id - run.last <= kNear;
    const bool was_read = !run.ahead.empty() && id > run.last && id <= run.ahead.back().first;
    if (near || was_read) {
      run.reach = std::min(2 * run.reach, kMostAhead);
      return run;
    }
    if (run.used < oldest->used) oldest = &run;
  }
  *oldest = Run();
  return *oldest;
}

// Reads the bodies from job `from` on, if there should be enough of them. An error is left to the
// read of the body itself.
void BodyReader::read_ahead(Run& run, JobId from) {
  std::size_t most = run.reach;
  if (newest_ != 0) most = std::min<JobId>(most, newest_ - std::min(newest_, from));
  if (most < kLeastAhead) return;
  const JobKey end = job_key(from + kNear * most);
  const rocksdb::Slice end_slice(end.data(), end.size());
  std::size_t bytes = 0;
  const auto at = state_.scan(kBodies, view(job_key(from)), end_slice);
  while (at->Valid() && at->value().size() <= kBytesAhead) {
    run.ahead.emplace_back(id_of(at->key()), at->value().ToString());
    bytes += at->value().size();
    if (run.ahead.size() == most || bytes >= kBytesAhead) return;
    at->Next();
  }
  if (!at->status().ok()) run.reach = 1;
}

}  // namespace carillon::queue
