// DiskStore: the Store on disk. It has a log that is durable, and a state that is a checkpoint of
// the log.
//
//   DiskStore store("carillon-data", {});        // made if it is not there
//   Engine engine(store, {}, now);
//
// An append goes to the open window of the log and to the memory of the state: it is visible.
// sync() writes the window to the disk: it is durable. From time to time the state is written to
// files, and the log is trimmed up to there.
//
// It adds to the contract of Store:
// - A crash of the machine loses nothing that was synced. Changes that were not synced may be lost,
//   but only from the end on, and never a part of a change. A crash of the process loses nothing
//   that write() has handed to the operating system.
// - A full disk fails the append at once, with nothing changed, and appends work again a second or
//   two after there is room. Reads go on meanwhile.
// - After a failed write that leaves unknown what the disk holds, every append and sync throws
//   until the store is opened anew.
// - Damage is found by checksums and reported. Scans go around a block that fails twice: they
//   return all jobs except those whose records lie there, and call what on_damage() has set.
//
// Thread safety: as for every Store. A directory is open once at a time, on one machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "carillon/queue/due_counts.h"
#include "carillon/queue/store.h"

namespace carillon::queue {

class LogSource;

struct DiskStoreOptions {
  // Bytes of recent changes in memory, which a start after a crash applies again. There may be up
  // to three times as many while the disk is slow; then appends wait. has_room() is false from two
  // and a half times as many on.
  std::size_t recent = 64 << 20;
  std::size_t read_cache = 64 << 20;  // bytes of blocks read from files
  std::size_t large_body = 4 << 10;   // bodies of this many bytes or more are kept apart
  // When the log has this many bytes, the state is written to files, and the log is trimmed.
  // Appends wait, and has_room() is false, as with `recent`. From four times as many on, appends
  // are refused.
  std::size_t log_bytes = 128 << 20;
  std::size_t log_segment_bytes = 1 << 20;
  // How many files of the state are kept open, at least 32. Others are opened when they are read.
  // The store needs up to kOtherFiles more descriptors.
  std::size_t max_open_files = 512;
  static constexpr std::size_t kOtherFiles = 80;
  // If true, each sync() is one durable write. If not, write() is one write to the page cache, and
  // sync() makes durable what was written there.
  bool durable_writes = true;
  // A number for this boot of the machine; 0: unknown. As long as it is the same, all written bytes
  // must be there, synced or not: a gap is damage.
  std::uint64_t boot = 0;
};

// All files of a store at one moment: a directory that opens as a store of its own.
struct Checkpoint {
  std::string path;          // absolute, within the store's directory
  std::uint64_t number = 0;  // number of the last change in it; changes are numbered from 1
};

class DiskStore final : public Store, public DueEstimates {
 public:
  // Opens the store in the directory at `path`, and makes both if they are not there. Throws
  // StoreError, with one line that names the directory.
  explicit DiskStore(const std::string& path, const DiskStoreOptions& options = {});
  // The same with a log from elsewhere (include/carillon/queue/log.h) instead of files in the
  // directory; the options of those files are not used.
  DiskStore(const std::string& path, const DiskStoreOptions& options, const LogSource& logs);
  // Calls close(), and ignores errors: to see them, call close() before.
  ~DiskStore() override;

  // A line for each thing that was missing when the store was opened: a crash had cut it short
  // before it was durable, or a file of large bodies is gone or damaged.
  const std::vector<std::string>& dropped() const;
  // From now on, `call` gets one line for each damaged place that scans go around, once, in the
  // thread that scans. It must not throw. Call on_damage() before the first scan.
  void on_damage(std::function<void(const std::string& line)> call);

  Sequence append(const Changes& changes) override;
  bool has_room() override;
  Sequence sync() override;
  bool is_shared() const override;
  void write() override;
  std::string failure() const override;
  void on_failure(const std::function<void()>& call) override;
  void close() override;

  Recovered recover() const override;
  std::optional<JobRecord> find(JobId id) const override;
  std::string body(JobId id, std::uint32_t piece = 0) const override;
  std::optional<std::string> body_at_hand(JobId id, std::uint32_t piece = 0) const override;
  std::vector<JobRecord> scan_due(std::uint32_t tube, DueKey from,
                                  std::size_t limit) const override;
  std::vector<JobRecord> scan_due_of_each(const std::vector<std::uint32_t>& tubes, UtcMs end,
                                          std::size_t limit) const override;
  std::vector<JobRecord> scan_buried(std::uint32_t tube, std::uint64_t from,
                                     std::size_t limit) const override;
  std::uint64_t scans_around_damage() const override;
  std::vector<double> estimate_due(std::uint32_t tube,
                                   std::span<const UtcMs> bounds) const override;
  InMemory scan_due_in_memory(std::uint32_t tube, DueKey from, std::size_t limit) const override;
  std::optional<KeyRecord> find_key(std::uint32_t tube, std::string_view key) const override;
  std::vector<KeyRecord> scan_ended_keys(UtcMs from, std::size_t limit) const override;
  std::vector<Attempt> story(JobId id) const override;

  // Call it about once a second with true while the disk is nearly full, and then with false until
  // it returns true. Meanwhile deleted jobs leave the log and the files soon, and not only when
  // enough have come together. Other threads do it. Takes no longer than an append() may. Throws
  // nothing: failure() and the next append report errors.
  bool save_space(bool save);

  // Begins to make a checkpoint, from which the store can be backed up while it is used: it has
  // everything that was appended before this call. Another thread does the work. REQUIRES: there is
  // no checkpoint, and no checkpoint is being made.
  void begin_checkpoint();
  // Returns the checkpoint once it is there. Call it every few milliseconds until then; it takes no
  // longer than an append() may. If the checkpoint cannot be made, throws StoreError, and gives up.
  // REQUIRES: begin_checkpoint().
  std::optional<Checkpoint> poll_checkpoint();
  // Removes the checkpoint, or gives up making it; returns at once. The destructor and the next
  // opening of the store remove it, too. While a checkpoint is there, files that the store deletes
  // keep their space. Does nothing if there is no checkpoint.
  void release_checkpoint();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace carillon::queue
