// Salvage: copies what is whole in a damaged state into a new state.
//
// All entries that can be read are copied, and the changes of the log applied. Then the families
// are compared with each other:
// - A record at a key that is not doubtful (offline_state.h) is a job: its pointer is made anew if
//   that was lost. At a doubtful key it is a job if its pointer is sure and names this key. If the
//   pointer names another key, or is surely gone, the job was erased or has moved. If nobody knows,
//   the job is listed.
// - A pointer without a record, and a record without its body, is a lost job. So is a body without
//   both, where both are damaged.
// - The keys of jobs that are not there are free. The counts of tubes are made anew.
// - Doubtful schedules, doubtful endpoints, and doubtful keys of jobs that are gone are not copied.
//   Only their names are reported, if they are known: an old schedule would fire again, an old
//   endpoint would push to where nobody wants it.
// - A tube whose record is lost is `salvaged-N` by its number. The report says which name a
//   schedule has for it, and that its settings are gone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/log.h"
#include "carillon/queue/store_check.h"
#include "queue/store/damage/offline_state.h"
#include "queue/store/log/change_codec.h"
#include "queue/store/state/record_keys.h"
#include "queue/store/state/rocks_state.h"

namespace carillon::queue {

// Whether a record under `index_key`, which says `job`, is of a job that is still there.
enum class Standing : std::uint8_t { kThere, kGone, kUnknown };
Standing standing_of(const OfflineState& state, const IndexKey& key, const JobRecord& job);

class Salvage {
 public:
  // Makes a state in the directory `to`. `beneath`: the same state without the damaged tables; null
  // if no table is damaged. Both must outlive this. Throws StoreError.
  Salvage(const OfflineState& from, const OfflineState* beneath, const std::string& to);

  // In this order. `go_on` is called often; if it returns false, StoreError is thrown.
  void copy(const std::function<bool()>& go_on);
  void apply(std::string_view change);  // a change of the log
  void compare(const std::function<void(const LostJob&)>& lost);
  void finish();

  std::uint64_t jobs() const { return jobs_; }
  // A line for each thing that is lost and is no job; it says what a user should do.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  struct Counts {
    std::uint64_t scheduled = 0;
    std::uint64_t buried = 0;
    std::uint64_t ended_keys = 0;
    std::uint32_t lanes = 0;
  };

  void put(Family family, std::string_view key, std::string_view value);
  void erase(Family family, std::string_view key);
  void note(const Entry& entry);
  void write();
  void copy(rocksdb::Iterator& at, Family family, const std::function<bool()>& go_on);
  void copy_entry(Family family, std::string_view key, std::string_view value);
  void copy_doubtful(Family family, std::string_view key, std::string_view value);
  void copy_doubtful_record(std::string_view key, std::string_view value);
  void copy_doubtful_key(std::string_view key, std::string_view value);
  void compare_record(std::string_view key, std::string_view value,
                      const std::function<void(const LostJob&)>& lost);
  void lose(const JobRecord& job, const std::string& why,
            const std::function<void(const LostJob&)>& lost);
  void compare_pointers(const std::function<void(const LostJob&)>& lost);
  void compare_bodies(const std::function<void(const LostJob&)>& lost);
  void compare_keys();
  void count_tubes();
  std::map<std::uint32_t, TubeRecord> tubes();
  void name_lost_tubes(std::map<std::uint32_t, TubeRecord>& tubes);
  void note_nameless();
  void raise_watermarks();
  std::optional<std::string> piece_of(std::string_view key, bool keep);
  std::optional<std::string> body_of(JobId id, std::optional<std::uint32_t> bytes);
  std::string name_of(std::uint32_t tube) const;
  void each(Family family, const std::function<void(std::string_view, std::string_view)>& call);

  const OfflineState& from_;
  const OfflineState* const beneath_;
  RocksState to_;
  std::string bytes_;  // a change of entries that are not applied yet
  std::map<std::uint32_t, Counts> counts_;
  std::uint64_t jobs_ = 0;
  JobId last_id_ = 0;
  std::uint64_t last_burial_ = 0;
  std::set<JobId> bodies_;             // the ids of bodies that differ from the ids of their jobs
  std::vector<JobId> old_jobs_;        // jobs that are saved, but may lack their latest change
  std::set<std::uint32_t> old_tubes_;  // tubes whose records may be old
  std::vector<std::string> left_out_;
};

}  // namespace carillon::queue
