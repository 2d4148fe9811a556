#include "cluster/cluster_log.h"

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

#include "carillon/queue/store.h"
#include "carillon/require.h"
#include "cluster/entry_codec.h"
#include "cluster/mark_codec.h"

namespace carillon::cluster {

using queue::LogNumber;

namespace {

// A follower that has read all asks again after this.
constexpr std::chrono::milliseconds kPoll{100};
constexpr std::chrono::milliseconds kNoTime{0};
// While this many bytes wait for the log, appends should wait.
constexpr std::size_t kMostOpen = 64 << 20;
// A window has at most this many bytes, or one change: it must arrive within SharedLog::kPatience.
constexpr std::size_t kMostWindow = 4 << 20;

Owner random_owner() {
  std::random_device random;
  const auto draw = [&random] { return std::uint64_t{random()} << 32 | random(); };
  return {.high = draw(), .low = draw()};
}

// A copy of the directory at another address is another node.
std::uint64_t node_id(std::uint64_t identity, const std::string& address) {
  return identity ^ chain_after({}, address)[0];
}

UtcMs utc_now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<UtcMs>(std::chrono::duration_cast<std::chrono::milliseconds>(since).count());
}

}  // namespace

std::string ClusterLogs::make(const base::Directory&, std::uint64_t) const {
  return encode_mark({});
}

std::unique_ptr<queue::Log> ClusterLogs::open(const base::Directory&,
                                              std::uint64_t identity) const {
  return std::make_unique<ClusterLog>(options_, identity);
}

// Each opening is a new owner: so no claim of an earlier one is taken for its own.
ClusterLog::ClusterLog(const ClusterOptions& options, std::uint64_t identity)
    : options_(options),
      me_(random_owner()),
      log_(options.connect()),
      reporter_(options.connect,
                {.id = node_id(identity, options.address),
                 .owner = me_,
                 .address = options.address,
                 .http = options.http},
                options.say, options.hear) {}

// --- Following.

void ClusterLog::read(const queue::LogPosition& after, const Each& each) {
  const Lock lock(role_mutex_);
  CARILLON_REQUIRE(!role_);
  const std::optional<Mark> mark = decode_mark(after.mark);
  if (!mark) {
    throw queue::StoreError(
        "the data directory is not of a node of this cluster: a node begins with an empty "
        "directory, and jobs come in by `carillon export` and `carillon import`");
  }
  if (mark->next != after.number + 1)
    throw queue::StoreError("the state is damaged: it has other changes than its mark says");
  while (!reporter_.skew()) {
    if (!options_.wait(kPoll)) throw FollowingEnded();
  }
  is_following_ = true;
  role_.emplace(Role::Seat{.me = me_, .before_me = reporter_.before_me()}, *mark);
  between_windows_ = *mark;
  last_ = after.number;
  cursor_ = flushed_ = mark->position;
  last_tick_ = options_.now();
  while (!role_->owns()) {
    const bool has_more = follow(each);
    if (!failure_.empty()) throw queue::StoreError(failure_);
    if (!role_->owns() && !options_.wait(has_more ? kNoTime : kPoll)) throw FollowingEnded();
  }
  confirmed_ = role_->mark().position;
  await_utc();
  report_progress();
  is_following_ = false;
}

// Returns true if there is more to read now. If the log is unavailable, the next call tries again,
// and the owner does not count as silent meanwhile.
bool ClusterLog::follow(const Each& each) {
  std::vector<SharedLog::Stored> entries;
  try {
    if (!placed_) find_place();
    entries = log_->read(cursor_);
    note_trouble("");
  } catch (const queue::LogUnavailable& error) {
    placed_ = false;
    note_trouble(error.what());
    last_tick_ = options_.now();
    return false;
  }
  for (const SharedLog::Stored& stored : entries) {
    take(stored, each);
    if (role_->owns() || !failure_.empty()) return true;
  }
  // While there is more to read, the owner was not silent.
  if (!entries.empty()) last_tick_ = options_.now();
  tick();
  const bool sends = to_send_.has_value();
  if (sends) send();
  report_progress();
  return !entries.empty() || sends;
}

void ClusterLog::find_place() {
  const LogId id = log_->id();
  const Place place = log_->place_of(role_->mark());
  placed_ = true;
  obey(role_->found(id, place));
}

void ClusterLog::take(const SharedLog::Stored& stored, const Each& each) {
  cursor_ = stored.position;
  bytes_ += stored.bytes.size();
  const std::optional<Decoded> decoded = decode_entry(stored.bytes);
  Entry entry = decoded ? decoded->entry : Entry{};
  const bool is_window = entry.kind == Entry::Kind::kWindow;
  entry.intact = decoded && !(is_window && chain_after(entry.before, stored.bytes) != stored.chain);
  entry.position = stored.position;
  entry.after = chain_after(role_->mark().chain, stored.bytes);
  const Actions actions = role_->read(entry);
  if (actions.apply) apply(decoded->changes, entry.first, each);
  obey(actions);
}

// The state is flushed from within `each`, but only when it has whole windows: if the log loses its
// end, the state must not have a part of another history that no rule can see.
void ClusterLog::apply(const std::vector<std::string_view>& changes, LogNumber first,
                       const Each& each) {
  for (std::size_t n = 0; n < changes.size(); ++n) {
    between_windows_.reset();
    if (n + 1 == changes.size()) between_windows_ = role_->mark();
    last_ = first + n;
    each(last_, changes[n]);
  }
}

// The clocks of the owners differ a little, and time must not run back.
void ClusterLog::await_utc() const {
  const UtcMs now = utc_now();
  const UtcMs behind = role_->mark().utc - std::min(role_->mark().utc, now);
  std::this_thread::sleep_for(std::chrono::milliseconds(std::min(behind, 2 * Role::kMostSkew)));
}

// --- Owning.

LogNumber ClusterLog::append(std::string_view change, const Apply& apply) {
  const Lock lock(mutex_);
  const std::size_t size = open_.size();
  add_change(open_, change);
  try {
    apply(last_ + 1);
  } catch (...) {
    open_.resize(size);
    throw;
  }
  ++open_changes_;
  return ++last_;
}

LogNumber ClusterLog::sync() {
  const Lock lock(role_mutex_);
  refuse_if_over();
  try {
    end_doubt();
    for (const LogNumber wanted = last(); collect(wanted) || !is_confirmed();) {
      tick();
      const bool may_send = role_->phase() == Role::Phase::kOwning && !to_send_;
      if (may_send) obey(uncommitted_changes_ > 0 ? role_->ran() : role_->claim_again());
      refuse_if_over();
      if (!to_send_) throw queue::LogUnavailable(trouble_);
      send();
      end_doubt();
    }
  } catch (const queue::LogUnavailable& error) {
    placed_ = false;
    trouble_ = error.what();
    throw;
  }
  refuse_if_over();
  report_progress();
  return role_->mark().next - 1;
}

// A window in doubt may be in the log. So nothing is added to its changes before that is known: if
// it is there, all of them count.
void ClusterLog::end_doubt() {
  while (role_->phase() == Role::Phase::kDoubting) {
    if (!to_send_) catch_up();
    refuse_if_over();
    tick();
    refuse_if_over();
    if (role_->phase() != Role::Phase::kDoubting) return;
    if (!to_send_) throw queue::LogUnavailable(trouble_);
    send();
    refuse_if_over();
  }
}

// A window that was only read back is in the log, but perhaps not on as many machines as the engine
// promises: that shows when an append behind it is answered.
bool ClusterLog::is_confirmed() const {
  return role_->mark().position <= confirmed_;
}

// Makes the next window, unless one does not count yet. Returns false if all changes up to `wanted`
// count.
bool ClusterLog::collect(LogNumber wanted) {
  if (uncommitted_changes_ > 0) return true;
  if (role_->mark().next > wanted) return false;
  const Lock lock(mutex_);
  if (open_.size() <= kMostWindow) {
    uncommitted_.swap(open_);
    uncommitted_changes_ = std::exchange(open_changes_, 0);
    return true;
  }
  const Front front = first_changes(open_, kMostWindow);
  uncommitted_.assign(open_, 0, front.bytes);
  uncommitted_changes_ = front.changes;
  open_.erase(0, front.bytes);
  open_changes_ -= front.changes;
  return true;
}

// An owner that does not know whether its window counts reads the log.
void ClusterLog::catch_up() {
  if (!placed_) find_place();
  std::vector<SharedLog::Stored> entries;
  do {
    entries = log_->read(cursor_);
    for (const SharedLog::Stored& stored : entries) {
      refuse_if_over();
      take(stored, {});
    }
  } while (!entries.empty() && role_->phase() == Role::Phase::kDoubting);
}

void ClusterLog::tick() {
  const auto now = options_.now();
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(now - last_tick_);
  last_tick_ += passed;
  obey(role_->passed(static_cast<Millis>(passed.count())));
  if (role_->phase() == Role::Phase::kDropping) return;
  if (const auto skew = reporter_.skew()) obey(role_->measured(*skew));
}

void ClusterLog::send() {
  Entry entry = *std::exchange(to_send_, std::nullopt);
  const bool is_window = entry.kind == Entry::Kind::kWindow;
  entry.end = entry.first;
  if (is_window) {
    CARILLON_REQUIRE(uncommitted_changes_ > 0);
    entry.end += uncommitted_changes_;
    entry.utc = utc_now();
  }
  const std::string bytes = encode_entry(entry, is_window ? uncommitted_ : std::string_view());
  if (is_window) entry.after = chain_after(role_->mark().chain, bytes);
  const SharedLog::Answer answer = log_->append(entry, bytes);
  if (!answer.failure) confirmed_ = answer.position;
  if (answer.failure == Failure::kRefused && role_->owns()) return refused(answer.why);
  if (answer.failure) {
    // To a follower a refusal says only that another node was the first.
    if (answer.failure != Failure::kRefused) {
      placed_ = false;
      note_trouble(answer.why);
    }
    return obey(role_->failed(*answer.failure));
  }
  bytes_ += bytes.size();
  entry.position = answer.position;
  entry.after = answer.chain;
  if (is_window) cursor_ = answer.position;
  obey(role_->committed(entry));
}

// Another node may own the shard, or the log has lost what this node has read. Only this process
// may know that, since not all of it is in the files: so it is found out before that is dropped.
void ClusterLog::refused(const std::string& why) {
  note_trouble(why);
  try {
    find_place();
  } catch (const queue::LogUnavailable&) {
    placed_ = false;
    return obey(role_->failed(Failure::kUnavailable));
  }
  if (role_->phase() == Role::Phase::kStopped) return;
  // In doubt, an earlier claim of this node may be what refused this one: the log says it.
  const bool doubts = role_->phase() == Role::Phase::kDoubting;
  obey(role_->failed(doubts ? Failure::kUnavailable : Failure::kRefused));
}

// The changes of a window that counts are all that was not committed: what came later is open.
void ClusterLog::obey(const Actions& actions) {
  if (actions.release > 0) {
    uncommitted_.clear();
    uncommitted_changes_ = 0;
  }
  if (actions.append) to_send_ = actions.append;
  if (actions.stop || actions.drop) to_send_.reset();
  if (actions.drop) deposed_ = actions.line;
  if (actions.stop) {
    const Lock lock(mutex_);
    failure_ = actions.line;
  }
  if (!actions.line.empty() && !actions.stop && !actions.drop) options_.say(actions.line);
}

void ClusterLog::refuse_if_over() const {
  if (!deposed_.empty()) throw queue::Deposed(deposed_);
  if (std::string why = failure(); !why.empty()) throw queue::StoreError(why);
}

// Says what the log has not done, once until it has done it or fails in another way.
void ClusterLog::note_trouble(const std::string& why) {
  if (why == trouble_) return;
  if (!role_->owns())
    options_.say(why.empty() ? "the shared log is available again"
                             : "the shared log is unavailable: " + why);
  trouble_ = why;
}

void ClusterLog::report_progress() {
  reporter_.set({.read = role_->mark().position,
                 .flushed = flushed_,
                 .owner = role_->mark().owner,
                 .owns = role_->owns()});
}

// If the claim does not arrive, a follower claims after a while.
void ClusterLog::leave() {
  const Lock lock(role_mutex_);
  if (!role_->owns() || role_->calls() || uncommitted_changes_ > 0 || !deposed_.empty()) return;
  obey(role_->resign());
  send();
}

// --- For the store.

std::string ClusterLog::failure() const {
  const Lock lock(mutex_);
  return failure_;
}

// While it follows, the caller is `each`, and this thread has the lock.
std::optional<std::string> ClusterLog::mark() const {
  if (is_following_) {
    if (!between_windows_) return std::nullopt;
    return encode_mark(*between_windows_);
  }
  const Lock lock(role_mutex_);
  return encode_mark(role_->mark());
}

LogNumber ClusterLog::last() const {
  const Lock lock(mutex_);
  return last_;
}

bool ClusterLog::has_room() const {
  const Lock lock(mutex_);
  return open_.size() < kMostOpen;
}

// The store calls it from `each`, which runs under the lock, or from the thread that appends.
void ClusterLog::trim(const queue::LogPosition& flushed) {
  const std::optional<Mark> mark = decode_mark(flushed.mark);
  CARILLON_REQUIRE(mark.has_value());
  flushed_ = mark->position;
  bytes_ = 0;
}

}  // namespace carillon::cluster
