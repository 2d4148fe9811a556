// OfflineState: the state in a directory that no process has open, read around all damage.
//
//   OfflineState state("carillon-data", "/tmp/work");
//   const auto at = state.scan(kJobs);
//   for (; at->Valid(); at->Next()) ...
//   for (const std::string& line : state.damages()) ...
//
// Nothing in the directory is changed. RocksDB opens `work`, which has links to the tables and the
// large bodies, and copies of the small files. In it,
// - CURRENT is made anew if it does not name a MANIFEST;
// - a table that cannot be opened, because its index or its end is damaged or cut off, is mended
//   (table_mender.h), and so is the head, the foot and the size of a file of large bodies;
// - a file of large bodies that is gone, or must be left out, is replaced by zeros: each body in it
//   is damaged;
// - a table that is gone, or without any block that can be found, is replaced by an empty one. So
//   is each table in `without`: then what it hides in other tables can be seen.
//
// *Doubtful* keys are those of a damaged block, and those that a mended or replaced table has lost.
// A value at a doubtful key may be old: an erasure or a later value may be lost. A reader must
// compare the families with each other (salvage.cpp).
//
// A damaged MANIFEST cannot be mended: nothing else says which tables count.
//
// Thread safety: none.
#pragma once

#include <rocksdb/db.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "queue/store/damage/around_damage.h"
#include "queue/store/damage/file_checks.h"
#include "queue/store/damage/table_mender.h"
#include "queue/store/state/state_options.h"
#include "queue/store/state/written_files.h"

namespace carillon::queue {

// The tables and files of large bodies in a directory, by name.
std::vector<StateFile> files_in(const std::string& directory);

class OfflineState {
 public:
  struct Value {
    std::optional<std::string> bytes = {};  // nothing: the key has no value, or it cannot be read
    bool is_sure = false;
  };

  // `work` is made, and removed at the end. `without`: names of files to leave out. Throws
  // StoreError.
  OfflineState(const std::string& path, std::string work,
               const std::vector<std::string>& without = {});
  ~OfflineState();
  OfflineState(const OfflineState&) = delete;
  OfflineState& operator=(const OfflineState&) = delete;

  // What the MANIFEST in `path` says about the files; they are not read. `work` as above.
  static WrittenFiles written_in(const std::string& path, std::string work);

  // All entries of the family that can be read; from `from` on, and before `to`. Check the
  // iterator's status at its end.
  std::unique_ptr<rocksdb::Iterator> scan(Family family) const;
  std::unique_ptr<rocksdb::Iterator> scan(Family family, const std::string& from,
                                          const rocksdb::Slice& to) const;
  Value get(Family family, std::string_view key) const;

  // Each of these knows only what scans have met so far: scan the families first.
  bool is_doubtful(Family family, std::string_view key) const;
  bool has_damage(Family family) const;
  std::vector<Damage> blocks() const { return damages_.ranges(); }
  std::vector<std::string> damages() const;  // a line each

 private:
  // Keys of a table that are lost: from `first` on, and before `end`.
  struct Replaced {
    Family family;
    std::string first;
    std::string end;
  };

  explicit OfflineState(std::string work) : work_(std::move(work)) {}
  void make_work(const std::string& path);
  void name_manifest();
  void open();
  void close();
  void mend_table_of(const std::string& path, std::uint64_t written, bool is_left_out);
  void mend_bodies_of(const std::string& path, std::uint64_t written, bool is_left_out);
  void replace_table(const std::string& name, std::uint64_t written);
  void note_replaced();
  void note_lost(const rocksdb::LiveFileMetaData& table, const MendedTable& mended);
  bool is_replaced(Family family, std::string_view key) const;
  std::unique_ptr<rocksdb::Iterator> scan_to(Family family, const rocksdb::Slice* to) const;

  const std::string work_;
  std::vector<std::string> lines_;
  std::map<std::string, MendedTable> mended_;  // and replaced tables, by name
  std::vector<Replaced> replaced_;
  mutable DamageList damages_;
  std::array<rocksdb::ColumnFamilyHandle*, kFamilies> families_{};
  std::unique_ptr<rocksdb::DB> database_;
};

}  // namespace carillon::queue
