// SpaceSaver: makes RocksDB give back the space of erased entries while the disk is nearly full.
//
//   SpaceSaver saver(database, families, directory);
//   saver.save(true);                   // about once a second, while space must be saved
//   while (!saver.save(false)) wait();  // as usual again
//
// Usually RocksDB compacts when some files have come together, and copies what lives in the older
// half of the files of large bodies. That may copy half of all bodies because of one that was
// erased, and fill the disk. While space is saved, RocksDB compacts after each flush. It copies the
// living bodies of the oldest files, as many as fit into half of the free space, and only if as
// many bytes of all bodies are dead as alive. Files without a dead body may be copied, too: RocksDB
// copies from the oldest file on.
//
// RocksDB writes files to change an option, and the disk may be slow. So another thread does it.
//
// Thread safety: none; save() takes no time.
#pragma once

#include <rocksdb/db.h>

#include <array>
#include <future>
#include <optional>
#include <string>

#include "queue/store/state/state_options.h"

namespace carillon::queue {

class SpaceSaver {
 public:
  using Families = std::array<rocksdb::ColumnFamilyHandle*, kFamilies>;

  // The database and the families must outlive it. `directory` is where the files are.
  SpaceSaver(rocksdb::DB& database, const Families& families, std::string directory);
  SpaceSaver(const SpaceSaver&) = delete;
  SpaceSaver& operator=(const SpaceSaver&) = delete;

  // Returns true if nothing is left to do for it. What fails is tried again by the next call.
  bool save(bool save);

 private:
  // RocksDB's options, in its words.
  struct Options {
    std::string level0_file_num_compaction_trigger;
    std::string blob_garbage_collection_age_cutoff;
    std::string blob_garbage_collection_force_threshold;
    bool operator==(const Options&) const = default;
  };

  static Options usual();
  Options saving() const;
  std::optional<Options> change(std::optional<Options> from, bool save) const;

  rocksdb::DB& database_;
  const Families families_;
  const std::string directory_;
  std::optional<Options> set_ = usual();  // nothing: it is not known
  std::future<std::optional<Options>> changing_;
};

}  // namespace carillon::queue
