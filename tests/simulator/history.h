// HistoryStore: a store that writes down everything that is appended to another one, and checks
// what that one returns.
//
//   HistoryStore history;                              // lives as long as the data
//   history.open(disk_store);                          // after each start: checks what is there
//   Engine engine(history, {}, now);                   // all calls go on to the disk store
//   ...
//   history.told(number);                              // a client knows of this append now
//   ... the power fails ...
//   history.open(next_store);                          // throws Violation if anything is missing
//
// What it checks
// - After a start, the store holds exactly what it held after some append: after the last one that
//   was told to a client, or durable, or a later one. So changes are lost from the end alone, and
//   none by halves.
// - A record or a body that is read is as it was appended, and a scan has all records of its range,
//   in their order.
// - The counts in each record of a tube are right: of jobs, buried ones, and keys that still count.
// - A job with a key has the record of the key, and no other job has that key. When the job is
//   gone, its key has a window, or no record; and none is forgotten before its window is over.
// - A job that says so has a story, and no other one has.
// - A job with a large body (queue::kBodyPiece) has all pieces of it. After a start, nothing is
//   left of keys that were forgotten, nor of stories whose jobs are gone, nor of bodies that were
//   deleted, replaced or given up, if they are large or of jobs with keys.
//
// Each call takes simulated time (clock.h), about as much as it takes on a machine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/queue/now.h"
#include "carillon/queue/store.h"
#include "simulator/store_model.h"

namespace carillon::simulator {

// Something that must not be, in words.
class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Returns true if the records differ at most in when the job is due: the engine stores a job anew
// after the wall clock was set.
bool same_but_due_time(const queue::JobRecord& one, const queue::JobRecord& other);

// The time passes that a store takes for look-ups and records, and to copy and check bytes.
void work(std::uint64_t units);
void work_on_bytes(std::size_t bytes);

class HistoryStore final : public queue::Store {
 public:
  HistoryStore();

  // Goes on with `store`, which was just opened, and must outlive the use. Throws Violation.
  void open(queue::Store& store);

  // Throws Violation if `store` has not what this one had after the append `from`, or after a later
  // one.
  void expect_state_since(std::uint64_t from, const queue::Store& store) const;

  // Counts all appends that are in the store, over all starts.
  std::uint64_t last() const { return last_; }
  // The last one that the last start has found.
  std::uint64_t opened_at() const { return opened_at_; }
  // The append that changed the job last, or deleted it; 0 if it is long ago or was never there.
  std::uint64_t changed_at(queue::JobId id) const;
  // The same for the holder of the key; for a token, if `tube` is empty.
  std::uint64_t key_changed_at(std::string_view tube, std::string_view key) const;
  // Returns true if the last start found the job without its last change, or does not find it.
  bool has_lost_change_of(queue::JobId id) const { return lost_.contains(id); }
  // A client knows this append: no death of the process may undo it. Throws Violation if no sync()
  // has covered it yet; if `written_is_enough`, no sync() or write().
  void told(std::uint64_t number, bool written_is_enough);
  // What was told is lost by a power loss, as the mode has it; what was synced is not.
  void lose_power_unless_synced() { told_ = durable_; }
  // All that was appended must be there at the next start.
  void closed() { told_ = last_; }

  const queue::StoreModel& state() const { return state_; }
  // The record of a tube, or of a group of it; nullptr if it has no record.
  const queue::TubeRecord* find_tube(std::string_view tube, std::string_view group = {}) const;
  // Jobs whose records were changed since the last forget_changed(), in more than their due times.
  const std::set<queue::JobId>& changed() const { return changed_; }
  // Jobs of which only the due times were changed since then.
  const std::set<queue::JobId>& due_changed() const { return due_changed_; }
  // The record of a job before its last change since then; none if it was not changed.
  std::optional<queue::JobRecord> before(queue::JobId id) const;
  // The same for a key, or as it is now if it was not changed; none if nobody had it. For a token,
  // if `tube` is empty.
  std::optional<queue::KeyRecord> key_before(std::string_view tube, std::string_view key) const;
  // When the first key ends of those whose jobs are gone; none if all keys have jobs.
  std::optional<queue::UtcMs> first_end_of_keys() const;
  // Steady time (docs/queue.md#time) at a moment, in ns. The machine never boots.
  std::uint64_t steady_ns(queue::Now now) const {
    const std::int64_t ahead = state_.watermarks.steady_ns;
    return ahead == queue::kNoLead ? now.utc_ns : now.mono_ns + static_cast<std::uint64_t>(ahead);
  }
  // What appends have changed of schedules since then, in their order.
  struct ScheduleStep {
    std::uint64_t append = 0;
    std::string name;
    std::optional<queue::ScheduleRecord> after;
    queue::JobId put = 0;  // by the same append; 0: none
    // That job as it was put. A later append may have changed or deleted it already.
    queue::JobRecord job = {};
    std::string body = {};
    // Before it, the job that the schedule had put last was there, and not buried.
    bool had_last_job = false;
  };
  const std::vector<ScheduleStep>& schedule_steps() const { return schedule_steps_; }
  // The append that changed the schedule last; 0 if it was not changed since the start.
  std::uint64_t schedule_changed_at(const std::string& name) const;
  // The job whose large body was begun since then.
  std::optional<queue::JobId> begun() const { return begun_; }
  void forget_changed() {
    changed_.clear();
    due_changed_.clear();
    before_.clear();
    keys_before_.clear();
    schedule_steps_.clear();
    begun_.reset();
  }
  std::uint64_t starts_after_loss() const { return starts_after_loss_; }

  queue::Sequence append(const queue::Changes& changes) override;
  bool has_room() override;
  // When it had no room last; ns, monotonic.
  std::uint64_t full_at() const { return full_at_; }
  queue::Sequence sync() override;
  void write() override;
  std::string failure() const override { return store_->failure(); }
  void on_failure(const std::function<void()>& call) override { store_->on_failure(call); }
  void close() override { store_->close(); }
  queue::Recovered recover() const override { return store_->recover(); }
  std::optional<queue::JobRecord> find(queue::JobId id) const override;
  std::string body(queue::JobId id, std::uint32_t piece = 0) const override;
  // One body in eight is not at hand.
  std::optional<std::string> body_at_hand(queue::JobId id, std::uint32_t piece = 0) const override;
  std::vector<queue::JobRecord> scan_due(std::uint32_t tube, queue::DueKey from,
                                         std::size_t limit) const override;
  std::vector<queue::JobRecord> scan_buried(std::uint32_t tube, std::uint64_t from,
                                            std::size_t limit) const override;
  std::optional<queue::KeyRecord> find_key(std::uint32_t tube, std::string_view key) const override;
  std::vector<queue::KeyRecord> scan_ended_keys(queue::UtcMs from,
                                                std::size_t limit) const override;
  std::vector<queue::Attempt> story(queue::JobId id) const override;

 private:
  // The name of a tube, and a key.
  using Name = std::pair<std::string, std::string>;
  // As in TubeRecord.
  struct Counts {
    std::uint64_t scheduled = 0;
    std::uint64_t buried = 0;
    std::uint64_t ended_keys = 0;
  };
  struct KeyChanged {
    std::uint32_t tube = 0;  // its number
    std::uint64_t append = 0;
  };

  void note(const queue::Changes& changes);
  void note_jobs(const queue::Changes& changes);
  void note_keys(const queue::Changes& changes);
  void note_schedules(const queue::Changes& changes);
  void check_keys(const queue::Changes& changes) const;
  void check_stories(const queue::Changes& changes);
  void expect_owner(const queue::KeyRecord& key) const;
  const std::string& name_of(std::uint32_t tube, const queue::Changes& changes) const;
  // The number of the tube that has the keys of this one, or of this lane.
  std::uint32_t tube_with_keys(std::uint32_t tube, const queue::Changes& changes) const;
  void note_pieces(const queue::Changes& changes);
  std::uint64_t hash_of_records(const queue::Changes& changes) const;
  void note_body(const queue::JobRecord& put, std::string_view body);
  void check_nothing_is_left(const queue::StoreModel& found, const queue::Store& store);
  void check_no_key_is_left(const queue::StoreModel& found, const queue::Store& store) const;
  void check_no_story_is_left(const queue::StoreModel& found, const queue::Store& store);
  void compare(queue::JobId id, std::uint32_t piece, std::string_view bytes) const;
  void check_counts(const queue::Changes& changes);
  void count(const queue::JobRecord& job, std::uint64_t by);
  void count_all();
  void forget_old_changes();
  void check_count(const queue::TubeRecord& tube) const;
  static queue::StoreModel read_all(const queue::Store& store);
  [[noreturn]] void tell_difference(const queue::StoreModel& found) const;

  queue::Store* store_ = nullptr;
  queue::StoreModel state_;
  std::uint64_t hash_ = 0;            // the hash of state_
  std::deque<std::uint64_t> hashes_;  // after each append from floor_ on
  std::uint64_t floor_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t opened_at_ = 0;  // the store's own numbers begin here
  std::uint64_t told_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t durable_ = 0;
  std::map<queue::JobId, std::uint64_t> changed_at_;
  std::size_t many_changes_ = 0;               // when those that are durable are forgotten
  std::map<Name, KeyChanged> key_changed_at_;  // since the last start
  std::set<queue::JobId> stories_changed_;     // since the last start
  std::set<queue::JobId> lost_;
  std::map<std::uint32_t, Counts> counts_;  // by tube
  std::set<queue::JobId> changed_;
  std::set<queue::JobId> due_changed_;
  std::map<queue::JobId, queue::JobRecord> before_;
  std::map<Name, std::optional<queue::KeyRecord>> keys_before_;
  std::vector<ScheduleStep> schedule_steps_;
  std::map<std::string, std::uint64_t> schedule_changed_at_;  // since the last start
  std::optional<queue::JobId> begun_;
  // Bodies that were put lately and of which nothing may be left one day: how many bytes.
  std::map<queue::JobId, std::uint32_t> bodies_;
  std::uint64_t starts_after_loss_ = 0;
  std::uint64_t full_at_ = 0;
};

}  // namespace carillon::simulator
