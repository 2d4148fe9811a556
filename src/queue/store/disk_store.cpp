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

#include "queue/store/body_reader.h"
#include "queue/store/change_codec.h"
#include "queue/store/checkpoint.h"
#include "queue/store/counting.h"
#include "queue/store/due_index.h"
#include "queue/store/empty_places.h"
#include "queue/store/local_log.h"
#include "queue/store/record_values.h"
#include "queue/store/recover.h"
#include "queue/store/rocks_state.h"

namespace carillon::queue {

namespace {

using namespace std::string_literals;
using rocksdb::Slice;

LocalLogOptions log_options_of(const DiskStoreOptions& options) {
  return {.segment_bytes = options.log_segment_bytes,
          .most_bytes = 4 * options.log_bytes,
          .writes = options.durable_writes ? LogWrites::kDurable : LogWrites::kBuffered,
          .boot = options.boot};
}

}  // namespace

struct DiskStore::Parts {
  const DiskStoreOptions options;
  RocksState state;
  LocalLog log;
  std::string bytes;       // of the change that is appended
  JobId next_id = 0;       // the watermark that was appended last
  bool sync_next = false;  // and it is not durable yet
  mutable EmptyPlaces empty_places;
  mutable BodyReader bodies{state};
  const LogNumber number_at_open;
  std::atomic<std::chrono::steady_clock::time_point> next_look_at_path{};
  std::chrono::steady_clock::time_point next_save{};  // no flush that is to save space before this
  LogNumber trimmed = 0;                              // the log, up to here
  std::optional<LogNumber> to_checkpoint;  // a checkpoint with the changes up to here is to be made
  std::unique_ptr<StateCheckpoint> checkpoint;
  mutable std::size_t told_damages = 0;  // on_damage has heard of the first ones
  std::function<void(const std::string& line)> on_damage;
  std::vector<std::string> dropped;

  Parts(const std::string& path, const DiskStoreOptions& with)
      : options(with),
        state(path, with),
        log(state.files(), state.identity(), log_options_of(with)),
        number_at_open(replay()),
        dropped(state.notes()) {
    dropped.insert(dropped.end(), log.dropped().begin(), log.dropped().end());
  }

  LogNumber replay();
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
  void tell_damage() const;
  std::vector<JobRecord> scan(const IndexKey& from, const IndexKey& end, std::size_t limit) const;
};

// Applies what the log has and the state has not. All of it is durable. If it was much, another
// thread writes the state to files from now on: should the process die soon, the next start has
// less to apply.
LogNumber DiskStore::Parts::replay() {
  log.read(state.flushed_position(), [this](LogNumber number, std::string_view change) {
    state.apply(change, number);
    if (state.unflushed() > options.recent) state.flush(log.chain());
  });
  log.trim(state.flushed());
  if (state.unflushed() > options.recent / 8) begin_flush();
  return log.last();
}

DiskStore::DiskStore(const std::string& path, const DiskStoreOptions& options)
    : parts_(std::make_unique<Parts>(path, options)) {}

DiskStore::~DiskStore() {
  close();
}

void DiskStore::close() {
  parts_->await_checkpoint();
  try {
    sync();
    if (parts_->state.number() > parts_->state.flushed()) {
      parts_->require_durable();
      parts_->state.flush(parts_->log.chain());
    }
  } catch (const std::exception&) {
    // If it was the sync or a broken disk, failure() tells; else all is in the log.
  }
}

// --- Writing.

Sequence DiskStore::append(const Changes& changes) {
  Parts& parts = *parts_;
  parts.refuse_if_broken();
  parts.make_room();
  encode_changes(changes, parts.bytes);
  const LogNumber number = parts.log.append(
      parts.bytes, [&parts](LogNumber next) { parts.state.apply(parts.bytes, next); });
  constexpr std::size_t kKept = 4 << 20;  // a buffer that grew beyond this is given back
  if (parts.bytes.capacity() > kKept) parts.bytes = {};
  if (changes.watermarks && changes.watermarks->next_id != parts.next_id) {
    parts.next_id = changes.watermarks->next_id;
    parts.sync_next = true;
  }
  for (const JobChange& change : changes.jobs) {
    if (change.after) parts.empty_places.entered(index_key_of(*change.after));
    if (change.has_new_body()) parts.bodies.put(change.after->body_id());
  }
  for (const TubeRecord& tube : changes.tubes) {
    if (tube.empty()) parts.empty_places.forget(tube.number);
  }
  return number - parts.number_at_open;
}

// While nobody appends, nobody else begins the next flush.
bool DiskStore::has_room() {
  Parts& parts = *parts_;
  if (!parts.log.has_room()) return false;
  if (!parts.nearly_too_much() || parts.state.stopped()) return true;
  try {
    parts.refuse_if_broken();
    parts.go_on_flushing();
  } catch (const StoreError&) {
    return true;
  }
  return !parts.nearly_too_much() || parts.state.in_memory() == 0;
}

bool DiskStore::save_space(bool save) {
  const bool is_done = parts_->state.save_space(save);
  try {
    if (save) parts_->save_space();
  } catch (const StoreError&) {
    // The next append meets it, too, or failure() tells.
  }
  return is_done;
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

const std::vector<std::string>& DiskStore::dropped() const {
  return parts_->dropped;
}

// The owner asks often. That the directory has moved is found out now and then: no file is written
// elsewhere because of it.
std::string DiskStore::failure() const {
  const auto now = std::chrono::steady_clock::now();
  if (now >= parts_->next_look_at_path.load()) {
    parts_->next_look_at_path.store(now + std::chrono::seconds(1));
    parts_->state.look_at_path();
  }
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
  await_checkpoint();
  require_durable();
  state.resume(log.chain());
}

// There is no flush while files are linked for a checkpoint.
void DiskStore::Parts::await_checkpoint() const {
  while (is_making_checkpoint()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Has the state flushed when enough has come together, so that the log can be trimmed.
void DiskStore::Parts::make_room() {
  resume_if_stopped();
  go_on_flushing();
  // The disk is slower than the changes come: they wait for it.
  while (too_much() && state.in_memory() > 0 && !state.stopped()) {
    refuse_if_broken();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    go_on_flushing();
  }
}

void DiskStore::Parts::go_on_flushing() {
  if (state.flushing()) return;
  trim();
  const bool due = state.unflushed() > options.recent || log.bytes() > options.log_bytes;
  if (due && state.unflushed() > 0 && !checkpoint_first() && !state.behind()) begin_flush();
}

void DiskStore::Parts::trim() {
  if (state.flushed() != trimmed) log.trim(trimmed = state.flushed());
}

bool DiskStore::Parts::is_making_checkpoint() const {
  return checkpoint && checkpoint->making();
}

// A flush makes files, which are compacted then. So there is one in some seconds at most, and none
// if nothing has changed.
void DiskStore::Parts::save_space() {
  constexpr std::chrono::seconds kBetween{5};
  refuse_if_broken();
  if (is_making_checkpoint()) return;
  resume_if_stopped();  // if all jobs are gone, no append does it
  if (state.flushing()) return;
  trim();
  log.give_back();
  const auto now = std::chrono::steady_clock::now();
  if (state.unflushed() == 0 || now < next_save || checkpoint_first() || state.behind()) return;
  next_save = now + kBetween;
  begin_flush();
}

// A checkpoint is made while there is no flush, of files that have the changes that it is to have.
// One that is to be made waits if an append waits for a flush: the same thread would make it.
bool DiskStore::Parts::checkpoint_first() const {
  return is_making_checkpoint() ||
         (to_checkpoint && state.flushed() >= *to_checkpoint && !too_much());
}

bool DiskStore::Parts::too_much() const {
  return state.in_memory() > 3 * options.recent || log.bytes() > 3 * options.log_bytes;
}

bool DiskStore::Parts::nearly_too_much() const {
  return state.in_memory() > options.recent / 2 * 5 || log.bytes() > options.log_bytes / 2 * 5;
}

// Before each flush: no file of the state may be ahead of the log.
void DiskStore::Parts::require_durable() {
  if (log.sync() != state.number())
    throw StoreError(state.message("is not as its log: it must be opened anew"));
}

void DiskStore::Parts::begin_flush() {
  require_durable();
  state.begin_flush(log.chain());
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
    parts.checkpoint = std::make_unique<StateCheckpoint>(parts.state);
    parts.to_checkpoint.reset();
    return std::nullopt;
  } catch (const StoreError&) {
    release_checkpoint();
    throw;
  } catch (const std::system_error& why) {  // no more threads, or no path to the directory
    release_checkpoint();
    throw StoreError(parts.state.message("cannot have a checkpoint: "s + why.what()));
  }
}

void DiskStore::release_checkpoint() {
  parts_->to_checkpoint.reset();
  if (parts_->checkpoint) parts_->checkpoint->remove();
}

// Returns true if the files have the changes up to `number`. Else a flush is under way, or RocksDB
// is about to go on after a shortage.
bool DiskStore::Parts::flush_up_to(LogNumber number) {
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
  return queue::recover(parts_->state);
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

std::string DiskStore::body(JobId id, std::uint32_t piece) const {
  parts_->refuse_if_broken();
  return parts_->bodies.read(id, piece);
}

std::optional<std::string> DiskStore::body_at_hand(JobId id, std::uint32_t piece) const {
  parts_->refuse_if_broken();
  return parts_->bodies.at_hand(id, piece);
}

std::vector<JobRecord> DiskStore::scan_due(std::uint32_t tube, DueKey from,
                                           std::size_t limit) const {
  return parts_->scan(due_index_key(tube, from.due, from.id), due_index_key(tube, kLast, kLast),
                      limit);
}

std::vector<JobRecord> DiskStore::scan_due_of_each(const std::vector<std::uint32_t>& tubes,
                                                   UtcMs end, std::size_t limit) const {
  return queue::scan_due_of_each(parts_->state, tubes, end, limit);
}

std::vector<JobRecord> DiskStore::scan_buried(std::uint32_t tube, std::uint64_t from,
                                              std::size_t limit) const {
  return parts_->scan(burial_index_key(tube, from, 0), burial_index_key(tube, kLast, kLast), limit);
}

std::uint64_t DiskStore::scans_around_damage() const {
  return parts_->state.damages().passed();
}

std::vector<double> DiskStore::estimate_due(std::uint32_t tube,
                                            std::span<const UtcMs> bounds) const {
  return queue::estimate_due(parts_->state, tube, bounds);
}

DueEstimates::InMemory DiskStore::scan_due_in_memory(std::uint32_t tube, DueKey from,
                                                     std::size_t limit) const {
  return queue::scan_due_in_memory(parts_->state, tube, from, limit);
}

std::optional<KeyRecord> DiskStore::find_key(std::uint32_t tube, std::string_view key) const {
  const auto value = parts_->state.get(kKeys, key_key(tube, key));
  if (!value) return std::nullopt;
  return read_key_value(tube, key, *value);
}

std::vector<Attempt> DiskStore::story(JobId id) const {
  const auto value = parts_->state.get(kKeys, queue::view(story_key(id)));
  return value ? read_story_value(id, *value) : std::vector<Attempt>();
}

std::vector<KeyRecord> DiskStore::scan_ended_keys(UtcMs from, std::size_t limit) const {
  std::vector<KeyRecord> found;
  if (limit == 0) return found;
  const RocksState& state = parts_->state;
  const Slice end(kEndedKeysEnd.data(), kEndedKeysEnd.size());
  const auto at = state.scan_around(kKeys, ended_key_key({.key = {}, .until = from}), end);
  for (; at->Valid(); at->Next()) {
    const KeyRecord ended = key_of_ended_key(view(at->key()));
    found.push_back(read_key_value(ended.tube, ended.key, view(at->value())));
    if (found.size() == limit) break;  // behind it there may be many erased entries
  }
  state.check(*at);
  parts_->tell_damage();
  return found;
}

void DiskStore::on_damage(std::function<void(const std::string& line)> call) {
  parts_->on_damage = std::move(call);
}

void DiskStore::Parts::tell_damage() const {
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
std::string DiskStore::Parts::name_of_tube(std::uint32_t number) const {
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

std::vector<JobRecord> DiskStore::Parts::scan(const IndexKey& from, const IndexKey& end,
                                              std::size_t limit) const {
  std::vector<JobRecord> found;
  if (limit == 0) return found;
  const IndexKey start = empty_places.start(from);
  state.note_left_out(kIndex, queue::view(from), queue::view(start));
  const Slice end_slice(end.data(), end.size());
  const std::uint64_t& passed = rocksdb::get_perf_context()->internal_delete_skipped_count;
  const std::uint64_t passed_before = passed;
  std::optional<Counting> counting(rocksdb::kEnableCount);
  const auto at = state.scan_around(kIndex, queue::view(start), end_slice);
  counting.emplace(rocksdb::kDisable);
  // Beneath damage, what is gone is passed one by one: also worth knowing.
  const std::uint64_t passed_first =
      state.damages().count() > 0 ? EmptyPlaces::kWorthKnowing : passed - passed_before;
  for (; at->Valid(); at->Next()) {
    found.push_back(read_job_value(view(at->key()), view(at->value())));
    if (found.size() == limit) break;  // behind it there may be many erased entries
  }
  state.check(*at);
  tell_damage();
  empty_places.scanned(from, found.empty() ? end : index_key_of(found.front()), passed_first);
  return found;
}

}  // namespace carillon::queue
