// The entries of each kind of change.

#include "queue/batch.h"

#include <algorithm>

#include "queue/record_codec.h"

namespace carillon::queue {

namespace {

using rocksdb::Slice;

// A batch that has grown beyond so many bytes gives them back.
constexpr std::size_t kBytesToKeep = 1 << 20;

}  // namespace

void Batch::begin() {
  if (bytes() > kBytesToKeep) entries_ = rocksdb::WriteBatch();
  entries_.Clear();
  bodies_.clear();
  changes_ = 0;
  database_->begin(entries_);
}

void Batch::add(const Changes& changes) {
  ++changes_;
  for (const JobChange& change : changes.jobs) add(change);
  for (const TubeRecord& tube : changes.tubes) add(tube);
  if (changes.watermarks) put(kMeta, slice(kWatermarksKey), slice(encode_watermarks(*changes.watermarks)));
}

std::optional<std::string_view> Batch::body(JobId id) const {
  const auto at = std::find_if(bodies_.begin(), bodies_.end(), [id](const Body& body) { return body.id == id; });
  if (at == bodies_.end()) return std::nullopt;
  return std::string_view(entries_.Data()).substr(at->begin, at->size);
}

std::size_t Batch::bytes_at_most(const Changes& changes) {
  constexpr std::size_t kJob = 256;
  constexpr std::size_t kTube = 64;
  constexpr std::size_t kWatermarks = 64;
  std::size_t bytes = changes.watermarks ? kWatermarks : 0;
  for (const JobChange& change : changes.jobs) bytes += kJob + change.body.size();
  for (const TubeRecord& tube : changes.tubes) bytes += kTube + tube.name.size();
  return bytes;
}

// These fail for values of more than 4 GiB alone, which no record has.
void Batch::put(Family family, const Slice& key, const Slice& value) {
  entries_.Put(database_->family(family), key, value).PermitUncheckedError();
}

void Batch::erase(Family family, const Slice& key) {
  entries_.Delete(database_->family(family), key).PermitUncheckedError();
}

void Batch::add(const JobChange& change) {
  if (change.before && change.after) {
    const Place from = place_of(*change.before);
    const Place to = place_of(*change.after);
    if (from != to) {
      erase(kIndex, slice(from));
      put(kJobs, slice(job_key(change.after->id)), slice(encode_where(to)));
    }
    put(kIndex, slice(to), slice(encode_job(*change.after)));
  } else if (change.after) {
    const JobKey key = job_key(change.after->id);
    const Place place = place_of(*change.after);
    put(kBodies, slice(key), slice(change.body));
    bodies_.push_back({change.after->id, bytes() - change.body.size(), change.body.size()});
    put(kJobs, slice(key), slice(encode_where(place)));
    put(kIndex, slice(place), slice(encode_job(*change.after)));
  } else if (change.before) {
    const JobKey key = job_key(change.before->id);
    erase(kIndex, slice(place_of(*change.before)));
    erase(kJobs, slice(key));
    erase(kBodies, slice(key));
  }
}

void Batch::add(const TubeRecord& tube) {
  const TubeKey key = tube_key(tube.number);
  if (tube.scheduled == 0 && tube.buried == 0) {
    erase(kMeta, slice(key));
  } else {
    put(kMeta, slice(key), slice(encode_tube(tube)));
  }
}

}  // namespace carillon::queue
