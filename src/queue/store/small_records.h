// SmallRecords: what has changed in the records of tubes and in the watermarks since the last
// flush.
//
//   small.forget_prepared();
//   small.prepare(key, value);     // may throw; nothing has changed then
//   ...                            // what else belongs to the change is written, or fails
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
#include <string_view>
#include <utility>

namespace carillon::queue {

class SmallRecords {
 public:
  // Values by key; an empty one erases.
  using Changed = std::map<std::string, std::string>;

  void forget_prepared() { prepared_.clear(); }
  void prepare(std::string_view key, std::string_view value) {
    prepared_.insert_or_assign(std::string(key), std::string(value));
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
