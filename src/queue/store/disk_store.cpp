// An append to the log and the state, when the state is flushed, and the reads.

#include "carillon/queue/disk_store.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <string_view>
#include <thread>
#include <utility>

#include "queue/store/body_reader.h"
#include "queue/store/change_codec.h"
#include "queue/store/checkpoint.h"
#include "queue/store/local_log.h"
#include "queue/store/lowest_places.h"
#include "queue/store/record_values.h"
#include "queue/store/rocks_state.h"

namespace carillon::queue {

namespace {

using rocksdb::Slice;

constexpr std::uint64_t kEnd = std::numeric_limits<std::uint64_t>::max();

std::string_view view(const Slice& bytes) {
  return {bytes.data(), bytes.size()};
}

StateOptions state_options_of(const DiskStoreOptions& options) {
  return {.read_cache = options.read_cache,
          .file_bytes = std::max<std::size_t>(options.recent / 2, 1 << 20),
          .large_body = options.large_body,
          .max_open_files = options.max_open_files};
}

LocalLogOptions log_options_of(const DiskStoreOptions& options) {
  return {.segment_bytes = options.log_segment_bytes,
          .most_bytes = 4 * options.log_bytes,
          .writes = options.durable_writes ? LogWrites::kDurable : LogWrites::kBuffered};
}

}  // namespace

struct DiskStore::Parts {
  const DiskStoreOptions options;
  RocksState state;
  LocalLog log;
  std::string bytes;       // of the change that is appended
  bool flushing = false;   // the state is being written to files
  JobId next_id = 0;       // the watermark that was appended last
  bool sync_next = false;  // and it is not durable yet
  mutable LowestPlaces lowest;
  mutable BodyReader bodies{state};
  const LogNumber number_at_open;
  std::optional<LogNumber> to_checkpoint;  // a checkpoint with the changes up to here is to be made
  std::unique_ptr<StateCheckpoint> checkpoint;

  Parts(const std::string& path, const DiskStoreOptions& with)
      : options(with),
        state(path, state_options_of(with)),
        log(path, state.identity(), state.number(), log_options_of(with)),
        number_at_open(replay()) {}

  LogNumber replay();
  std::string failure() const;
  void refuse_if_broken() const;
  void resume_if_stopped();
  void make_room();
  bool flush_up_to(LogNumber number);
  void end_flush();
  bool too_much() const;
  void require_durable();
  LogNumber append();
  std::vector<JobRecord> scan(const IndexKey& from, const IndexKey& end, std::size_t limit) const;
};

// Applies what the log has and the state has not. All of it is durable.
LogNumber DiskStore::Parts::replay() {
  log.read(state.number(), [this](LogNumber number, std::string_view change) {
    if (state.unflushed() > options.recent) state.flush();
    state.apply(change, number);
  });
  log.trim(state.flushed());
  return log.last();
}

DiskStore::DiskStore(const std::string& path, const DiskStoreOptions& options)
    : parts_(std::make_unique<Parts>(path, options)) {}

DiskStore::~DiskStore() {
  close();
}

void DiskStore::close() {
  try {
    sync();
    if (parts_->state.number() > parts_->state.flushed()) {
      parts_->require_durable();
      parts_->state.flush();
    }
  } catch (const std::exception&) {
    // If it was the sync or a broken disk, failure() tells; else all is in the log.
  }
}

std::string DiskStore::opening_warning() const {
  const std::size_t left_out = parts_->log.left_out();
  if (left_out == 0) return {};
  return parts_->state.message("has " + std::to_string(left_out) +
                               " bytes at the end of its log that a crash cut short; they were "
                               "never durable, and are left out");
}

// --- Writing.

Sequence DiskStore::append(const Changes& changes) {
  Parts& parts = *parts_;
  parts.refuse_if_broken();
  parts.make_room();
  encode_changes(changes, parts.bytes);
  const LogNumber number = parts.append();
  if (changes.watermarks && changes.watermarks->next_id != parts.next_id) {
    parts.next_id = changes.watermarks->next_id;
    parts.sync_next = true;
  }
  for (const JobChange& change : changes.jobs) {
    if (change.after) parts.lowest.entered(index_key_of(*change.after));
    parts.bodies.changed(change);
  }
  for (const TubeRecord& tube : changes.tubes) {
    if (tube.scheduled == 0 && tube.buried == 0) parts.lowest.forget(tube.number);
  }
  return number - parts.number_at_open;
}

// While compaction is far behind, changes wait here, without keeping syncs waiting.
LogNumber DiskStore::Parts::append() {
  constexpr std::size_t kKept = 4 << 20;  // a buffer that grew beyond this is given back
  while (true) {
    try {
      const LogNumber number =
          log.append(bytes, [this](LogNumber next) { state.apply(bytes, next); });
      if (bytes.capacity() > kKept) bytes = {};
      return number;
    } catch (const RocksState::Stalled&) {
      refuse_if_broken();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

Sequence DiskStore::sync() {
  parts_->refuse_if_broken();
  return parts_->log.sync() - parts_->number_at_open;
}

void DiskStore::write() {
  parts_->refuse_if_broken();
  if (parts_->sync_next) {
    parts_->log.sync();
  } else {
    parts_->log.write();
  }
  parts_->sync_next = false;
}

std::string DiskStore::failure() const {
  return parts_->failure();
}

// The log has no thread of its own.
void DiskStore::on_failure(const std::function<void()>& call) {
  parts_->state.on_failure(call);
}

std::string DiskStore::Parts::failure() const {
  if (std::string why = log.failure(); !why.empty()) return why;
  const auto why = state.broken();
  return why ? state.message("has failed: " + *why + "; it must be opened anew") : std::string();
}

void DiskStore::Parts::refuse_if_broken() const {
  if (const std::string why = failure(); !why.empty()) throw StoreError(why);
}

void DiskStore::Parts::resume_if_stopped() {
  if (!state.stopped()) return;
  while (checkpoint && checkpoint->making())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  require_durable();
  state.resume();
}

// Has the state flushed when enough has come together, so that the log can be trimmed.
void DiskStore::Parts::make_room() {
  resume_if_stopped();
  if (flushing && !state.flushing()) end_flush();
  const bool due = state.unflushed() > options.recent || log.bytes() > options.log_bytes;
  if (!flushing && state.unflushed() > 0 && due) {
    require_durable();
    state.begin_flush();
    flushing = true;
  }
  // The disk is slower than the changes come: they wait for it.
  while (flushing && too_much() && !state.stopped()) {
    refuse_if_broken();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!state.flushing()) end_flush();
  }
}

bool DiskStore::Parts::too_much() const {
  return state.in_memory() > 3 * options.recent || log.bytes() > 3 * options.log_bytes;
}

// Before each flush: no file of the state may be ahead of the log.
void DiskStore::Parts::require_durable() {
  if (log.sync() != state.number())
    throw StoreError(state.message("is not as its log: it must be opened anew"));
}

void DiskStore::Parts::end_flush() {
  flushing = false;
  log.trim(state.flushed());
}

// --- Checkpoints.

void DiskStore::begin_checkpoint() {
  parts_->to_checkpoint = parts_->state.number();
}

std::optional<Checkpoint> DiskStore::poll_checkpoint() {
  Parts& parts = *parts_;
  try {
    if (!parts.to_checkpoint) return parts.checkpoint->made();
    if (parts.checkpoint && !parts.checkpoint->gone()) return std::nullopt;  // the one before
    parts.checkpoint.reset();
    if (!parts.flush_up_to(*parts.to_checkpoint)) return std::nullopt;
    parts.checkpoint =
        std::make_unique<StateCheckpoint>(parts.state, new_checkpoint_path(parts.state.path()));
    parts.to_checkpoint.reset();
    return std::nullopt;
  } catch (const StoreError&) {
    release_checkpoint();
    throw;
  }
}

void DiskStore::release_checkpoint() {
  parts_->to_checkpoint.reset();
  if (parts_->checkpoint) parts_->checkpoint->remove();
}

// Returns true if the files have the changes up to `number`. Else a flush is under way.
bool DiskStore::Parts::flush_up_to(LogNumber number) {
  refuse_if_broken();
  resume_if_stopped();
  if (flushing && !state.flushing()) end_flush();
  if (state.flushed() >= number) return true;
  if (!flushing) {
    require_durable();
    state.begin_flush();
    flushing = true;
  }
  return false;
}

// --- Reading.

Recovered DiskStore::recover() const {
  RocksState& state = parts_->state;
  state.write_small_records();
  Recovered recovered;
  const Slice end(kTubeKeysEnd.data(), kTubeKeysEnd.size());
  const auto at = state.scan(kMeta, kTubeKeys, end);
  for (; at->Valid(); at->Next())
    recovered.tubes.push_back(read_tube_value(tube_of_key(view(at->key())), view(at->value())));
  state.check(*at);
  if (const auto watermarks = state.get(kMeta, kWatermarksKey))
    recovered.watermarks = read_watermarks_value(*watermarks);
  return recovered;
}

std::optional<JobRecord> DiskStore::find(JobId id) const {
  const RocksState& state = parts_->state;
  const auto pointer = state.get(kJobs, queue::view(job_key(id)));
  if (!pointer) return std::nullopt;
  const std::string_view key = decode_pointer(id, *pointer);
  const auto value = state.get(kIndex, key);
  if (!value)
    throw StoreDamage("job " + std::to_string(id) + " has no record where its pointer says");
  return read_job_value(key, *value);
}

std::string DiskStore::body(JobId id) const {
  parts_->refuse_if_broken();
  return parts_->bodies.read(id);
}

std::vector<JobRecord> DiskStore::scan_due(std::uint32_t tube, DueKey from,
                                           std::size_t limit) const {
  return parts_->scan(due_index_key(tube, from.due, from.id), due_index_key(tube, kEnd, kEnd),
                      limit);
}

std::vector<JobRecord> DiskStore::scan_buried(std::uint32_t tube, std::uint64_t from,
                                              std::size_t limit) const {
  return parts_->scan(burial_index_key(tube, from, 0), burial_index_key(tube, kEnd, kEnd), limit);
}

std::vector<JobRecord> DiskStore::Parts::scan(const IndexKey& from, const IndexKey& end,
                                              std::size_t limit) const {
  std::vector<JobRecord> found;
  if (limit == 0) return found;
  const IndexKey start = lowest.start(from);
  const Slice end_slice(end.data(), end.size());
  const auto at = state.scan(kIndex, queue::view(start), end_slice);
  for (; at->Valid() && found.size() < limit; at->Next())
    found.push_back(read_job_value(view(at->key()), view(at->value())));
  state.check(*at);
  lowest.scanned(from, found.empty() ? end : index_key_of(found.front()));
  return found;
}

}  // namespace carillon::queue
