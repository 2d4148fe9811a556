// An append to the log and the state, when the state is flushed, and the reads.

#include "carillon/queue/disk_store.h"

#include <rocksdb/perf_context.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "carillon/require.h"
#include "queue/store/log/change_codec.h"
#include "queue/store/log/local_log.h"
#include "queue/store/state/body_reader.h"
#include "queue/store/state/checkpoint.h"
#include "queue/store/state/due_index.h"
#include "queue/store/state/perf_counters.h"
#include "queue/store/state/record_values.h"
#include "queue/store/state/recover.h"
#include "queue/store/state/rocks_state.h"
#include "queue/store/state/tombstone_hints.h"

namespace carillon::queue {

namespace {

using namespace std::string_literals;
using rocksdb::Slice;

LocalLogs local_logs(const DiskStoreOptions& options) {
  return LocalLogs({.segment_bytes = options.log_segment_bytes,
                    .most_bytes = 4 * options.log_bytes,
                    .writes = options.durable_writes ? LogWrites::kDurable : LogWrites::kBuffered,
                    .boot = options.boot});
}

}  // namespace

struct DiskStore::Impl {
  const DiskStoreOptions options;
  RocksState state;
  const std::unique_ptr<Log> log;
  std::string bytes;  // the change that is appended
  bool closed = false;
  // The log was unavailable: the thread that appends asks it for nothing before this.
  std::atomic<std::chrono::steady_clock::time_point> ask_log_at{};
  // A sync is under way, and takes too long from then on.
  static constexpr auto kNever = std::chrono::steady_clock::time_point::max();
  std::atomic<std::chrono::steady_clock::time_point> sync_hangs_at = kNever;
  JobId next_id = 0;       // the watermark that was appended last
  bool sync_next = false;  // and it is not durable yet
  mutable TombstoneHints tombstone_hints;
  mutable BodyReader bodies{state};
  const LogNumber number_at_open;
  std::atomic<std::chrono::steady_clock::time_point> next_look_at_path{};
  std::chrono::steady_clock::time_point
      next_save{};                         // before this, no flush begins only to save space
  LogNumber trimmed = 0;                   // the log was trimmed up to here
  std::optional<LogNumber> to_checkpoint;  // a checkpoint must be made with the changes up to here
  std::unique_ptr<StateCheckpoint> checkpoint;
  mutable std::size_t told_damages = 0;  // on_damage has heard of the first ones
  std::function<void(const std::string& line)> on_damage;
  std::vector<std::string> dropped;

  Impl(const std::string& path, const DiskStoreOptions& with, const LogSource& logs)
      : options(with),
        state(path, with, logs),
        log(logs.open(state.files(), state.identity())),
        number_at_open(replay()),
        dropped(state.notes()) {
    dropped.insert(dropped.end(), log->dropped().begin(), log->dropped().end());
  }

  LogNumber replay();
  LogNumber sync();
  bool log_rests() const;
  void refuse_if_log_rests() const;
  std::string name_of_tube(std::uint32_t number) const;
  std::string failure() const;
  void refuse_if_broken() const;
  void resume_if_stopped();
  void await_checkpoint() const;
  void make_room();
  bool flush_up_to(LogNumber number);
  bool checkpoint_first() const;
  void go_on_flushing();
  bool is_making_checkpoint() const;
  void trim();
  void save_space();
  bool too_much() const;
  bool nearly_too_much() const;
  void begin_flush();
  void require_durable();
  std::string mark() const;
  void tell_damage() const;
  std::vector<JobRecord> scan(const IndexKey& from, const IndexKey& end, std::size_t limit) const;
};

// Applies the changes that the log has and the state has not. All of them are durable. If they are
// many, another thread begins to write the state to files: if the process dies soon, the next start
// has less to apply.
LogNumber DiskStore::Impl::replay() {
  log->read(state.flushed_position(), [this](LogNumber number, std::string_view change) {
    state.apply(change, number);
    if (state.unflushed() <= options.recent) return;
    const auto mark = log->mark();
    if (!mark) return;
    state.flush(*mark);
    // It may be read for as long as another server owns it.
    if (log->is_shared()) log->trim(state.flushed_position());
  });
  log->trim(state.flushed_position());
  if (state.unflushed() > options.recent / 8) begin_flush();
  return log->last();
}

DiskStore::DiskStore(const std::string& path, const DiskStoreOptions& options)
    : DiskStore(path, options, local_logs(options)) {}

DiskStore::DiskStore(const std::string& path, const DiskStoreOptions& options,
                     const LogSource& logs)
    : impl_(std::make_unique<Impl>(path, options, logs)) {}

DiskStore::~DiskStore() {
  close();
}

void DiskStore::close() {
  if (impl_->closed) return;
  impl_->await_checkpoint();
  try {
    sync();
    impl_->log->leave();
    if (impl_->state.number() > impl_->state.flushed()) {
      impl_->require_durable();
      impl_->state.flush(impl_->mark());
    }
  } catch (const std::exception&) {
    // If the sync failed or the disk is broken, failure() says so. Otherwise a log of its own has
    // everything, and a shared log has what was acknowledged.
  }
  impl_->closed = true;
}

// --- Writing.

Sequence DiskStore::append(const Changes& changes) {
  Impl& impl = *impl_;
  CARILLON_REQUIRE(!impl.closed);
  impl.refuse_if_broken();
  impl.make_room();
  encode_changes(changes, impl.bytes);
  const LogNumber number =
      impl.log->append(impl.bytes, [&impl](LogNumber next) { impl.state.apply(impl.bytes, next); });
  constexpr std::size_t kKept = 4 << 20;  // a buffer that grew beyond this is given back
  if (impl.bytes.capacity() > kKept) impl.bytes = {};
  if (changes.watermarks && changes.watermarks->next_id != impl.next_id) {
    impl.next_id = changes.watermarks->next_id;
    impl.sync_next = true;
  }
  for (const JobChange& change : changes.jobs) {
    if (change.after) impl.tombstone_hints.entered(index_key_of(*change.after));
    if (change.has_new_body()) impl.bodies.put(change.after->body_id());
  }
  for (const TubeRecord& tube : changes.tubes) {
    if (tube.empty()) impl.tombstone_hints.forget(tube.number);
  }
  return number - impl.number_at_open;
}

// While nobody appends, nobody else begins the next flush.
bool DiskStore::has_room() {
  Impl& impl = *impl_;
  if (!impl.log->has_room()) return false;
  if (!impl.nearly_too_much() || impl.state.stopped()) return true;
  try {
    impl.refuse_if_broken();
    impl.go_on_flushing();
  } catch (const StoreError&) {
    return true;
  }
  return !impl.nearly_too_much() || impl.state.in_memory() == 0;
}

bool DiskStore::save_space(bool save) {
  const bool is_done = impl_->state.save_space(save);
  try {
    if (save) impl_->save_space();
  } catch (const StoreError&) {
    // The next append meets the error, too, or failure() reports it.
  }
  return is_done;
}

Sequence DiskStore::sync() {
  impl_->refuse_if_broken();
  return impl_->sync() - impl_->number_at_open;
}

bool DiskStore::is_shared() const {
  return impl_->log->is_shared();
}

LogNumber DiskStore::Impl::sync() {
  constexpr std::chrono::seconds kRest{1};
  // If it takes longer, no flush of the thread that appends waits for it.
  if (log->is_shared()) sync_hangs_at = std::chrono::steady_clock::now() + kRest;
  try {
    const LogNumber durable = log->sync();
    sync_hangs_at = kNever;
    ask_log_at = std::chrono::steady_clock::time_point();
    return durable;
  } catch (const LogUnavailable&) {
    sync_hangs_at = kNever;
    ask_log_at = std::chrono::steady_clock::now() + kRest;
    throw;
  }
}

bool DiskStore::Impl::log_rests() const {
  const auto now = std::chrono::steady_clock::now();
  return now < ask_log_at.load() || now >= sync_hangs_at.load();
}

void DiskStore::write() {
  impl_->refuse_if_broken();
  if (impl_->sync_next) {
    impl_->log->sync();
  } else {
    impl_->log->write();
  }
  impl_->sync_next = false;
}

const std::vector<std::string>& DiskStore::dropped() const {
  return impl_->dropped;
}

// The owner asks often. Whether the directory has moved is checked only now and then: even then, no
// file is written elsewhere.
std::string DiskStore::failure() const {
  const auto now = std::chrono::steady_clock::now();
  if (now >= impl_->next_look_at_path.load()) {
    impl_->next_look_at_path.store(now + std::chrono::seconds(1));
    impl_->state.look_at_path();
  }
  return impl_->failure();
}

// The log has no thread of its own.
void DiskStore::on_failure(const std::function<void()>& call) {
  impl_->state.on_failure(call);
}

std::string DiskStore::Impl::failure() const {
  if (std::string why = log->failure(); !why.empty()) return why;
  const auto why = state.broken();
  return why ? state.message("has failed: " + *why + "; it must be opened anew") : std::string();
}

void DiskStore::Impl::refuse_if_broken() const {
  if (const std::string why = failure(); !why.empty()) throw StoreError(why);
}

void DiskStore::Impl::refuse_if_log_rests() const {
  if (log_rests())
    throw LogUnavailable("the log is unavailable, so the state cannot be written to files");
}

void DiskStore::Impl::resume_if_stopped() {
  if (!state.stopped()) return;
  await_checkpoint();
  require_durable();
  state.resume(mark());
}

// There is no flush while files are linked for a checkpoint.
void DiskStore::Impl::await_checkpoint() const {
  while (is_making_checkpoint()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Begins a flush of the state when there is enough to flush, so that the log can be trimmed.
void DiskStore::Impl::make_room() {
  resume_if_stopped();
  go_on_flushing();
  // Changes outrun the disk: block until a flush ends.
  while (too_much() && state.in_memory() > 0 && !state.stopped()) {
    refuse_if_broken();
    refuse_if_log_rests();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    go_on_flushing();
  }
}

void DiskStore::Impl::go_on_flushing() {
  if (state.flushing()) return;
  trim();
  const bool due = state.unflushed() > options.recent || log->bytes() > options.log_bytes;
  if (!due || state.unflushed() == 0 || log_rests()) return;
  if (!checkpoint_first() && !state.behind()) begin_flush();
}

void DiskStore::Impl::trim() {
  if (std::exchange(trimmed, state.flushed()) != state.flushed())
    log->trim(state.flushed_position());
}

bool DiskStore::Impl::is_making_checkpoint() const {
  return checkpoint && checkpoint->making();
}

// A flush makes files, which must be compacted then. So it begins at most one flush in kBetween,
// and only if something has changed.
void DiskStore::Impl::save_space() {
  constexpr std::chrono::seconds kBetween{5};
  refuse_if_broken();
  if (is_making_checkpoint()) return;
  resume_if_stopped();  // if all jobs are gone, no append does it
  if (state.flushing()) return;
  trim();
  log->give_back();
  const auto now = std::chrono::steady_clock::now();
  if (state.unflushed() == 0 || now < next_save || checkpoint_first() || state.behind()) return;
  next_save = now + kBetween;
  begin_flush();
}

// Checkpoints and flushes exclude each other. A checkpoint is made when the files have the changes
// that it must have; no flush begins meanwhile. It is put off while an append waits for a flush.
bool DiskStore::Impl::checkpoint_first() const {
  return is_making_checkpoint() ||
         (to_checkpoint && state.flushed() >= *to_checkpoint && !too_much());
}

bool DiskStore::Impl::too_much() const {
  return state.in_memory() > 3 * options.recent || log->bytes() > 3 * options.log_bytes;
}

bool DiskStore::Impl::nearly_too_much() const {
  return state.in_memory() > options.recent / 2 * 5 || log->bytes() > options.log_bytes / 2 * 5;
}

// Before each flush: no file of the state may be ahead of the log.
void DiskStore::Impl::require_durable() {
  refuse_if_log_rests();
  if (sync() != state.number())
    throw StoreError(state.message("is not as its log: it must be opened anew"));
}

// REQUIRES: everything that was applied is durable in the log.
std::string DiskStore::Impl::mark() const {
  const std::optional<std::string> mark = log->mark();
  CARILLON_REQUIRE(mark.has_value());
  return *mark;
}

void DiskStore::Impl::begin_flush() {
  require_durable();
  state.begin_flush(mark());
}

// --- Checkpoints.

void DiskStore::begin_checkpoint() {
  CARILLON_REQUIRE(!impl_->to_checkpoint &&
                   (impl_->checkpoint == nullptr || impl_->checkpoint->is_given_up()));
  impl_->to_checkpoint = impl_->state.number();
}

std::optional<Checkpoint> DiskStore::poll_checkpoint() {
  Impl& impl = *impl_;
  CARILLON_REQUIRE(impl.to_checkpoint || impl.checkpoint != nullptr);
  try {
    if (!impl.to_checkpoint) return impl.checkpoint->made();
    if (impl.checkpoint && !impl.checkpoint->gone()) return std::nullopt;  // the one before
    impl.checkpoint.reset();
    if (!impl.flush_up_to(*impl.to_checkpoint)) return std::nullopt;
    impl.checkpoint = std::make_unique<StateCheckpoint>(impl.state);
    impl.to_checkpoint.reset();
    return std::nullopt;
  } catch (const StoreError&) {
    release_checkpoint();
    throw;
  } catch (const std::system_error& why) {  // no more threads, or no path to the directory
    release_checkpoint();
    throw StoreError(impl.state.message("cannot have a checkpoint: "s + why.what()));
  }
}

void DiskStore::release_checkpoint() {
  impl_->to_checkpoint.reset();
  if (impl_->checkpoint) impl_->checkpoint->remove();
}

// Returns true if the files have the changes up to `number`. Otherwise a flush is under way, or
// RocksDB will soon go on after a shortage.
bool DiskStore::Impl::flush_up_to(LogNumber number) {
  refuse_if_broken();
  try {
    resume_if_stopped();
  } catch (const StoreError&) {
    if (state.resuming()) return false;
    throw;
  }
  if (state.flushing()) return false;
  if (state.flushed() < number) begin_flush();
  return state.flushed() >= number;
}

// --- Reading.

Recovered DiskStore::recover() const {
  return queue::recover(impl_->state);
}

std::optional<JobRecord> DiskStore::find(JobId id) const {
  const RocksState& state = impl_->state;
  const auto pointer = state.get(kJobs, queue::view(job_key(id)));
  if (!pointer) return std::nullopt;
  const std::string_view key = decode_pointer(id, *pointer);
  const auto value = state.get(kIndex, key);
  if (!value)
    throw StoreDamage("job " + std::to_string(id) + " has no record where its pointer says");
  return read_job_value(key, *value);
}

std::string DiskStore::body(JobId id, std::uint32_t piece) const {
  impl_->refuse_if_broken();
  return impl_->bodies.read(id, piece);
}

std::optional<std::string> DiskStore::body_at_hand(JobId id, std::uint32_t piece) const {
  impl_->refuse_if_broken();
  return impl_->bodies.at_hand(id, piece);
}

std::vector<JobRecord> DiskStore::scan_due(std::uint32_t tube, DueKey from,
                                           std::size_t limit) const {
  return impl_->scan(due_index_key(tube, from.due, from.id), due_index_key(tube, kLast, kLast),
                     limit);
}

std::vector<JobRecord> DiskStore::scan_due_of_each(const std::vector<std::uint32_t>& tubes,
                                                   UtcMs end, std::size_t limit) const {
  return queue::scan_due_of_each(impl_->state, tubes, end, limit);
}

std::vector<JobRecord> DiskStore::scan_buried(std::uint32_t tube, std::uint64_t from,
                                              std::size_t limit) const {
  return impl_->scan(burial_index_key(tube, from, 0), burial_index_key(tube, kLast, kLast), limit);
}

std::uint64_t DiskStore::scans_around_damage() const {
  return impl_->state.damages().passed();
}

std::vector<double> DiskStore::estimate_due(std::uint32_t tube,
                                            std::span<const UtcMs> bounds) const {
  return queue::estimate_due(impl_->state, tube, bounds);
}

DueEstimates::InMemory DiskStore::scan_due_in_memory(std::uint32_t tube, DueKey from,
                                                     std::size_t limit) const {
  return queue::scan_due_in_memory(impl_->state, tube, from, limit);
}

std::optional<KeyRecord> DiskStore::find_key(std::uint32_t tube, std::string_view key) const {
  const auto value = impl_->state.get(kKeys, key_key(tube, key));
  if (!value) return std::nullopt;
  return read_key_value(tube, key, *value);
}

std::vector<Attempt> DiskStore::story(JobId id) const {
  const auto value = impl_->state.get(kKeys, queue::view(story_key(id)));
  return value ? read_story_value(id, *value) : std::vector<Attempt>();
}

std::vector<KeyRecord> DiskStore::scan_ended_keys(UtcMs from, std::size_t limit) const {
  std::vector<KeyRecord> found;
  if (limit == 0) return found;
  const RocksState& state = impl_->state;
  const Slice end(kEndedKeysEnd.data(), kEndedKeysEnd.size());
  const auto at = state.scan_around(kKeys, ended_key_key({.key = {}, .until = from}), end);
  for (; at->Valid(); at->Next()) {
    const KeyRecord ended = key_of_ended_key(view(at->key()));
    found.push_back(read_key_value(ended.tube, ended.key, view(at->value())));
    if (found.size() == limit) break;  // behind it there may be many erased entries
  }
  state.check(*at);
  impl_->tell_damage();
  return found;
}

void DiskStore::on_damage(std::function<void(const std::string& line)> call) {
  impl_->on_damage = std::move(call);
}

void DiskStore::Impl::tell_damage() const {
  if (state.damages().count() == told_damages) return;
  const std::vector<Damage> all = state.damages().all();
  for (; told_damages < all.size(); ++told_damages) {
    if (!on_damage) continue;
    const auto name_of = [this](std::uint32_t tube) { return name_of_tube(tube); };
    on_damage(state.message("is damaged: " + describe(all[told_damages], name_of) +
                            "; it is gone around from now on; carillon check --data " +
                            state.files().path() + " names the jobs when the server is stopped"));
  }
}

// Returns nothing if the tube's record cannot be read.
std::string DiskStore::Impl::name_of_tube(std::uint32_t number) const {
  try {
    const auto value = state.get(kMeta, queue::view(tube_key(number)));
    if (!value) return {};
    const TubeRecord tube = read_tube_value(number, *value);
    if (tube.head == 0) return tube.name;
    const std::string head = name_of_tube(tube.head);
    return head.empty() ? head : head + ", group " + tube.name;
  } catch (const StoreError&) {
    return {};
  }
}

std::vector<JobRecord> DiskStore::Impl::scan(const IndexKey& from, const IndexKey& end,
                                             std::size_t limit) const {
  std::vector<JobRecord> found;
  if (limit == 0) return found;
  const IndexKey start = tombstone_hints.start(from);
  state.note_left_out(kIndex, queue::view(from), queue::view(start));
  const Slice end_slice(end.data(), end.size());
  const std::uint64_t& passed = rocksdb::get_perf_context()->internal_delete_skipped_count;
  const std::uint64_t passed_before = passed;
  std::optional<Counting> counting(rocksdb::kEnableCount);
  const auto at = state.scan_around(kIndex, queue::view(start), end_slice);
  counting.emplace(rocksdb::kDisable);
  // In a scan beneath damage each entry that is gone is passed one by one, so its place is worth
  // knowing, too.
  const std::uint64_t passed_first =
      state.damages().count() > 0 ? TombstoneHints::kWorthKnowing : passed - passed_before;
  for (; at->Valid(); at->Next()) {
    found.push_back(read_job_value(view(at->key()), view(at->value())));
    if (found.size() == limit) break;  // behind it there may be many erased entries
  }
  state.check(*at);
  tell_damage();
  tombstone_hints.scanned(from, found.empty() ? end : index_key_of(found.front()), passed_first);
  return found;
}

}  // namespace carillon::queue
