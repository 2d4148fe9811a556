// The model of schedules: which occurrences there are, which have fired, and for each change of a
// schedule's record the question whether it is allowed now (model.h).
//
//   ScheduleModel schedules(history);
//   schedules.judge_own_step(step, first, last);   // the engine has decided on an occurrence
//   schedules.has_old_occurrence(now);             // nobody has decided on one that came long ago
//
// What must hold: no occurrence fires before its time, and none fires twice, over crashes and steps
// of the wall clock. One that does not fire was missed, or overlaps, or its schedule is paused, or
// the clocks of its zone skip it; and is skipped for no other reason.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "carillon/queue/now.h"
#include "carillon/queue/schedule.h"
#include "simulator/history.h"

namespace carillon::simulator {

class ScheduleModel {
 public:
  using Step = HistoryStore::ScheduleStep;

  explicit ScheduleModel(const HistoryStore& history) : history_(history) {}

  // The server has started: it has what the history has.
  void restart(queue::Now now);
  void clock_was_set(queue::Now now);

  // The engine has changed the record, by itself. All throw Violation. `first` and `last`: as in
  // Model::Times.
  void judge_own_step(const Step& step, queue::Now first, queue::Now last);
  // A client has asked for it. `asked`: as it was sent.
  void judge_set(const Step& step, const queue::Schedule& asked, bool pauses, queue::Now first,
                 queue::Now last);
  void judge_delete(const Step& step);
  void judge_pause(const Step& step);
  void judge_resume(const Step& step, queue::Now first, queue::Now last);
  void judge_trigger(const Step& step);

  bool exists(const std::string& name) const { return entries_.contains(name); }
  bool is_paused(const std::string& name) const { return entries_.at(name).record.paused; }
  const queue::ScheduleRecord& record(const std::string& name) const {
    return entries_.at(name).record;
  }
  std::size_t size() const { return entries_.size(); }
  // How many names come after this one.
  std::size_t names_after(const std::string& name) const;
  // Where they put their jobs: tubes; and groups, with their tubes.
  std::set<std::string_view> tubes() const;
  std::set<std::pair<std::string, std::string>> groups() const;
  // Returns true if an occurrence has come 2 s ago or earlier, and nothing is stored of it.
  bool has_old_occurrence(queue::Now now) const;

 private:
  struct Entry {
    queue::ScheduleRecord record;  // as it is stored
    queue::Timetable timetable;
    queue::UtcMs decided = 0;                     // as the engine has it: see ScheduleRecord
    std::uint64_t set_at = 0;                     // or resumed; ns, monotonic
    std::map<queue::UtcMs, std::uint64_t> fired;  // and waiting ones; with their appends
  };

  Entry& entry_of(const Step& step);
  static void read_times(Entry& entry);
  static bool has_fired(const Entry& entry, queue::UtcMs at);
  // The first one after `after` that has not fired.
  static std::optional<queue::Occurrence> next(const Entry& entry, queue::UtcMs after);
  static std::optional<queue::UtcMs> last_by(const Entry& entry, queue::UtcMs until);
  static bool is_in_gap(const Entry& entry, const queue::Occurrence& occurrence);
  bool is_there(queue::JobId id) const;
  void judge_firing(const Entry& entry, const Step& step, queue::UtcMs at, queue::UtcMs now) const;
  void judge_skips(const Entry& entry, const Step& step, queue::UtcMs handled,
                   queue::UtcMs now) const;
  void expect_same_but_times(const Entry& entry, const Step& step) const;

  const HistoryStore& history_;
  std::map<std::string, Entry> entries_;
  std::uint64_t clock_steps_ = 0;
  std::int64_t was_wrong_ns_ = 0;  // the wall clock, before it was set
  // Since when it has been ahead, by the right clock, and what it has shown then.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> wrong_from_;
};

}  // namespace carillon::simulator
