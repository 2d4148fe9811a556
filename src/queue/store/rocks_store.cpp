// The Store on RocksDB. Each append is one write; with a journal it joins a batch that is written
// later. Each read is a look-up or a short scan.

#include "carillon/queue/rocks_store.h"

#include <limits>
#include <string_view>
#include <utility>

#include "queue/store/batch.h"
#include "queue/store/lowest_places.h"
#include "queue/store/record_codec.h"
#include "queue/store/rocks_database.h"
#include "queue/store/write_behind.h"

namespace carillon::queue {

namespace {

using rocksdb::Slice;

constexpr std::uint64_t kEnd = std::numeric_limits<std::uint64_t>::max();

std::string_view view(const Slice& bytes) {
  return {bytes.data(), bytes.size()};
}

}  // namespace

struct RocksStore::State {
  RocksDatabase database;
  std::unique_ptr<WriteBehind> behind;  // nullptr without a journal
  Batch batch;                          // without a journal: the changes of the running append
  mutable LowestPlaces lowest_places;

  State(const std::string& path, const RocksStoreOptions& options)
      : database(path, options), behind(WriteBehind::open(database, path, options.journal_bytes)) {}

  Sequence append(const Changes& changes);
  void remember_places(const Changes& changes);
  // Brings all appends into the database, and returns nullptr; or, if the database refuses them,
  // returns an overlay that has them.
  Overlay* settle() const { return behind ? behind->settle() : nullptr; }
  std::vector<JobRecord> scan(const IndexKey& from, const IndexKey& end, std::size_t limit) const;
};

RocksStore::RocksStore(const std::string& path, const RocksStoreOptions& options)
    : state_(std::make_unique<State>(path, options)) {}

RocksStore::~RocksStore() = default;

Sequence RocksStore::append(const Changes& changes) {
  const Sequence sequence = state_->append(changes);
  state_->remember_places(changes);
  return sequence;
}

Sequence RocksStore::State::append(const Changes& changes) {
  if (behind) return behind->append(changes);
  batch.clear();
  batch.add(changes);
  rocksdb::WriteBatch all = database.batch(batch.entries());
  return database.write(all);
}

void RocksStore::State::remember_places(const Changes& changes) {
  for (const JobChange& change : changes.jobs) {
    if (change.after) lowest_places.entered(index_key_of(*change.after));
  }
  for (const TubeRecord& tube : changes.tubes) {
    if (tube.scheduled == 0 && tube.buried == 0) lowest_places.forget(tube.number);
  }
}

Sequence RocksStore::sync() {
  return state_->behind ? state_->behind->sync() : state_->database.sync();
}

Recovered RocksStore::recover() const {
  Overlay* const over = state_->settle();
  const RocksDatabase& database = state_->database;
  Recovered recovered;
  const Slice end = slice(kTubeKeysEnd);
  const auto at = database.scan(kMeta, kTubeKeys, end, over);
  for (; at->Valid(); at->Next())
    recovered.tubes.push_back(decode_tube(view(at->key()), view(at->value())));
  database.check(*at);
  if (const auto watermarks = database.get(kMeta, kWatermarksKey, over)) {
    recovered.watermarks = decode_watermarks(*watermarks);
  }
  return recovered;
}

std::optional<JobRecord> RocksStore::find(JobId id) const {
  Overlay* const over = state_->settle();
  const RocksDatabase& database = state_->database;
  const auto pointer = database.get(kJobs, view(job_key(id)), over);
  if (!pointer) return std::nullopt;
  const std::string_view key = decode_pointer(id, *pointer);
  const auto record = database.get(kIndex, key, over);
  if (!record)
    throw StoreError("job " + std::to_string(id) + " has no record where its pointer says");
  return decode_job(key, *record);
}

std::string RocksStore::body(JobId id) const {
  if (state_->behind) {
    if (auto body = state_->behind->body(id)) return std::move(*body);
  }
  auto body = state_->database.get(kBodies, view(job_key(id)));
  if (!body) throw StoreError("job " + std::to_string(id) + " has no body");
  return std::move(*body);
}

std::vector<JobRecord> RocksStore::scan_due(std::uint32_t tube, DueKey from,
                                            std::size_t limit) const {
  return state_->scan(due_index_key(tube, from.due, from.id), due_index_key(tube, kEnd, kEnd),
                      limit);
}

std::vector<JobRecord> RocksStore::scan_buried(std::uint32_t tube, std::uint64_t from,
                                               std::size_t limit) const {
  return state_->scan(burial_index_key(tube, from, 0), burial_index_key(tube, kEnd, kEnd), limit);
}

std::vector<JobRecord> RocksStore::State::scan(const IndexKey& from, const IndexKey& end,
                                               std::size_t limit) const {
  std::vector<JobRecord> found;
  if (limit == 0) return found;
  const Slice end_slice = slice(end);
  const auto at = database.scan(kIndex, view(lowest_places.start(from)), end_slice, settle());
  for (; at->Valid() && found.size() < limit; at->Next()) {
    found.push_back(decode_job(view(at->key()), view(at->value())));
  }
  database.check(*at);
  lowest_places.scanned(from, found.empty() ? end : index_key_of(found.front()));
  return found;
}

const std::string& RocksStore::opening_warning() const {
  return state_->database.opening_warning();
}

}  // namespace carillon::queue
