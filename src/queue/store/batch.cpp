// The entries of each kind of change.

#include "queue/store/batch.h"

#include <algorithm>

#include "queue/store/entries.h"
#include "queue/store/record_codec.h"

namespace carillon::queue {

namespace {

// A batch that has grown beyond so many bytes gives them back.
constexpr std::size_t kBytesToKeep = 1 << 20;

}  // namespace

void Batch::clear() {
  if (entries_.capacity() > kBytesToKeep) entries_ = {};
  entries_.clear();
  bodies_.clear();
  changes_ = 0;
}

void Batch::add(const Changes& changes) {
  ++changes_;
  for (const JobChange& change : changes.jobs) add(change);
  for (const TubeRecord& tube : changes.tubes) add(tube);
  if (changes.watermarks)
    append_put(entries_, kMeta, kWatermarksKey, view(encode_watermarks(*changes.watermarks)));
}

std::optional<std::string_view> Batch::body(JobId id) const {
  const auto at = std::find_if(bodies_.begin(), bodies_.end(),
                               [id](const Body& body) { return body.id == id; });
  if (at == bodies_.end()) return std::nullopt;
  return std::string_view(entries_).substr(at->begin, at->size);
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

void Batch::add(const JobChange& change) {
  if (change.before && change.after) {
    const IndexKey from = index_key_of(*change.before);
    const IndexKey to = index_key_of(*change.after);
    if (from != to) {
      append_erase(entries_, kIndex, view(from));
      append_put(entries_, kJobs, view(job_key(change.after->id)), view(encode_pointer(to)));
    }
    append_put(entries_, kIndex, view(to), view(encode_job(*change.after)));
  } else if (change.after) {
    const JobKey key = job_key(change.after->id);
    const IndexKey place = index_key_of(*change.after);
    append_put(entries_, kBodies, view(key), change.body);
    bodies_.push_back({change.after->id, entries_.size() - change.body.size(), change.body.size()});
    append_put(entries_, kJobs, view(key), view(encode_pointer(place)));
    append_put(entries_, kIndex, view(place), view(encode_job(*change.after)));
  } else if (change.before) {
    const JobKey key = job_key(change.before->id);
    append_erase(entries_, kIndex, view(index_key_of(*change.before)));
    append_erase(entries_, kJobs, view(key));
    append_erase(entries_, kBodies, view(key));
  }
}

void Batch::add(const TubeRecord& tube) {
  const TubeKey key = tube_key(tube.number);
  if (tube.scheduled == 0 && tube.buried == 0) {
    append_erase(entries_, kMeta, view(key));
  } else {
    append_put(entries_, kMeta, view(key), encode_tube(tube));
  }
}

}  // namespace carillon::queue
