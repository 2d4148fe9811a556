// SmallRecords: what has changed in the records of tubes and in the watermarks since the last
// flush.
//
//   small.prepare(changes);        // may throw; nothing has changed then
//   ...                            // the other changes are written, or fail
//   small.take();                  // now what was prepared counts
//   ...
//   for (const auto& [key, value] : small.changed()) ...      // at a flush
//   small.clear();
//
// Almost every change has the counts of its tube. In a memtable each of them would be an entry of
// its own, and to insert it costs as much as to insert the job. Here one is kept for each key.
//
// Memory: one entry for each tube that has changed. Thread safety: none.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "carillon/queue/store.h"
#include "queue/store/record_keys.h"
#include "queue/store/record_values.h"

namespace carillon::queue {

class SmallRecords {
 public:
  // Values by key; an empty one erases.
  using Changed = std::map<std::string, std::string>;

  void prepare(const Changes& changes) {
    prepared_.clear();
    for (const TubeRecord& tube : changes.tubes) {
      std::string& value = prepared_[std::string(view(tube_key(tube.number)))];
      value.clear();
      if (tube.scheduled != 0 || tube.buried != 0) append_tube_value(value, tube);
    }
    if (!changes.watermarks) return;
    append_watermarks_value(prepared_[std::string(kWatermarksKey)], *changes.watermarks);
  }

  void take() noexcept {
    while (!prepared_.empty()) {
      auto node = prepared_.extract(prepared_.begin());
      const auto known = changed_.find(node.key());
      if (known == changed_.end()) {
        changed_.insert(std::move(node));
      } else {
        known->second.swap(node.mapped());
      }
    }
  }

  const Changed& changed() const { return changed_; }
  void clear() { changed_.clear(); }

 private:
  Changed prepared_;
  Changed changed_;
};

}  // namespace carillon::queue
