// The Store on RocksDB: each append is one write batch, each verb that reads a look-up or a short scan.

#include "carillon/queue/rocks_store.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "queue/lowest_places.h"
#include "queue/record_codec.h"
#include "queue/rocks_database.h"

namespace carillon::queue {

namespace {

using rocksdb::Slice;
using rocksdb::WriteBatch;

constexpr std::uint64_t kEnd = std::numeric_limits<std::uint64_t>::max();

// A batch that has grown beyond so many bytes gives them back.
constexpr std::size_t kBatchToKeep = 1 << 20;

template <std::size_t size>
Slice slice(const Bytes<size>& bytes) {
  return {bytes.data(), size};
}

std::string_view view(const Slice& bytes) {
  return {bytes.data(), bytes.size()};
}

}  // namespace

struct RocksStore::State {
  RocksDatabase database;
  WriteBatch batch;  // of the append that is under way
  mutable LowestPlaces lowest_places;

  State(const std::string& path, const RocksStoreOptions& options) : database(path, options) {}

  // These fail for values of more than 4 GiB alone, which no record has.
  void put(Family family, const Slice& key, const Slice& value) {
    batch.Put(database.family(family), key, value).PermitUncheckedError();
  }
  void erase(Family family, const Slice& key) { batch.Delete(database.family(family), key).PermitUncheckedError(); }

  void fill(const Changes& changes);
  void fill(const JobChange& change);
  void fill(const TubeRecord& tube);
  void remember_places(const Changes& changes);
  std::vector<JobRecord> scan(const Place& from, const Place& end, std::size_t limit) const;
};

RocksStore::RocksStore(const std::string& path, const RocksStoreOptions& options)
    : state_(std::make_unique<State>(path, options)) {}

RocksStore::~RocksStore() = default;

Sequence RocksStore::append(const Changes& changes) {
  State& state = *state_;
  if (state.batch.GetDataSize() > kBatchToKeep) state.batch = WriteBatch();
  state.batch.Clear();
  state.database.begin(state.batch);
  state.fill(changes);
  const Sequence sequence = state.database.write(state.batch);
  state.remember_places(changes);
  return sequence;
}

void RocksStore::State::fill(const Changes& changes) {
  for (const JobChange& change : changes.jobs) fill(change);
  for (const TubeRecord& tube : changes.tubes) fill(tube);
  if (changes.watermarks) put(kMeta, slice(kWatermarksKey), slice(encode_watermarks(*changes.watermarks)));
}

void RocksStore::State::fill(const JobChange& change) {
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
    put(kJobs, slice(key), slice(encode_where(place)));
    put(kIndex, slice(place), slice(encode_job(*change.after)));
  } else if (change.before) {
    const JobKey key = job_key(change.before->id);
    erase(kIndex, slice(place_of(*change.before)));
    erase(kJobs, slice(key));
    erase(kBodies, slice(key));
  }
}

void RocksStore::State::fill(const TubeRecord& tube) {
  const TubeKey key = tube_key(tube.number);
  if (tube.scheduled == 0 && tube.buried == 0) {
    erase(kMeta, slice(key));
  } else {
    put(kMeta, slice(key), slice(encode_tube(tube)));
  }
}

void RocksStore::State::remember_places(const Changes& changes) {
  for (const JobChange& change : changes.jobs) {
    if (change.after) lowest_places.entered(place_of(*change.after));
  }
  for (const TubeRecord& tube : changes.tubes) {
    if (tube.scheduled == 0 && tube.buried == 0) lowest_places.forget(tube.number);
  }
}

Sequence RocksStore::sync() {
  return state_->database.sync();
}

Recovered RocksStore::recover() const {
  const RocksDatabase& database = state_->database;
  Recovered recovered;
  const Slice end = slice(kTubeKeysEnd);
  const auto at = database.scan(kMeta, kTubeKeys, end);
  for (; at->Valid(); at->Next()) recovered.tubes.push_back(decode_tube(view(at->key()), view(at->value())));
  database.check(*at);
  if (const auto watermarks = database.get(kMeta, kWatermarksKey)) {
    recovered.watermarks = decode_watermarks(*watermarks);
  }
  return recovered;
}

std::optional<JobRecord> RocksStore::find(JobId id) const {
  const auto where = state_->database.get(kJobs, view(job_key(id)));
  if (!where) return std::nullopt;
  const std::string_view place = decode_where(id, *where);
  const auto record = state_->database.get(kIndex, place);
  if (!record) throw StoreError("job " + std::to_string(id) + " has no record where its place says");
  return decode_job(place, *record);
}

std::string RocksStore::body(JobId id) const {
  auto body = state_->database.get(kBodies, view(job_key(id)));
  if (!body) throw StoreError("job " + std::to_string(id) + " has no body");
  return std::move(*body);
}

std::vector<JobRecord> RocksStore::scan_due(std::uint32_t tube, DueKey from, std::size_t limit) const {
  return state_->scan(due_place(tube, from.due, from.id), due_place(tube, kEnd, kEnd), limit);
}

std::vector<JobRecord> RocksStore::scan_buried(std::uint32_t tube, std::uint64_t from, std::size_t limit) const {
  return state_->scan(burial_place(tube, from, 0), burial_place(tube, kEnd, kEnd), limit);
}

std::vector<JobRecord> RocksStore::State::scan(const Place& from, const Place& end, std::size_t limit) const {
  std::vector<JobRecord> found;
  if (limit == 0) return found;
  const Slice end_slice = slice(end);
  const auto at = database.scan(kIndex, view(lowest_places.start(from)), end_slice);
  for (; at->Valid() && found.size() < limit; at->Next()) {
    found.push_back(decode_job(view(at->key()), view(at->value())));
  }
  database.check(*at);
  lowest_places.scanned(from, found.empty() ? end : place_of(found.front()));
  return found;
}

const std::string& RocksStore::opening_note() const {
  return state_->database.opening_note();
}

}  // namespace carillon::queue
