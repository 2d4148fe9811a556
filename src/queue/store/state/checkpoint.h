// StateCheckpoint: the files of a state at one moment, as a directory that opens as a store.
//
//   StateCheckpoint checkpoint(state);           // begins; another thread makes it
//   ...
//   if (const auto made = checkpoint.made()) copy_elsewhere(made->path);
//   checkpoint.remove();                         // begins; the same thread does it
//   ...
//   if (checkpoint.gone()) ...
//
// The directory has hard links to the state's tables and blobs, copies of RocksDB's small files,
// and a log without changes that goes on where the state ends. RocksDB writes a table once and
// never changes it, so what the store does later changes nothing in the directory. The price: a
// table that the store deletes keeps its space until the directory is removed.
//
// Linking 2 000 files takes 35 ms, so it is done by a thread of its own. RocksDB must not flush for
// it: only changes that are durable in the log may reach a file (rocks_state.h). So the directory
// has what the state's files have: the changes up to state.flushed().
//
// The directory is not durable, and need not be. It belongs to the process that made it: the next
// one that opens the store removes it.
#pragma once

#include <atomic>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>

#include "carillon/queue/disk_store.h"
#include "carillon/queue/log.h"
#include "carillon/require.h"
#include "queue/store/state/rocks_state.h"

namespace carillon::queue {

// Thread safety: none; one thread calls the methods.
class StateCheckpoint {
 public:
  // Begins to make a directory in that of `state`, which must outlive the checkpoint, and may be
  // used meanwhile; but neither flushed nor resumed while the checkpoint is being made. The path is
  // unique for all machines and times: at that path there is this checkpoint, or nothing. Throws
  // std::system_error if there can be no more threads, or no path to the directory.
  explicit StateCheckpoint(const RocksState& state);
  // Waits until the directory is removed.
  ~StateCheckpoint();
  StateCheckpoint(const StateCheckpoint&) = delete;
  StateCheckpoint& operator=(const StateCheckpoint&) = delete;

  bool making() const { return phase_.load() == Phase::kMaking; }
  // Returns the checkpoint once it is made. Throws StoreError if it could not be made.
  std::optional<Checkpoint> made() const;
  // Begins to remove the directory, as soon as it is made. A second call does nothing.
  void remove();
  // Returns true when there is no directory any more. REQUIRES: remove() was called.
  bool gone() const {
    CARILLON_REQUIRE(removing_);
    return phase_.load() == Phase::kGone;
  }
  // Returns true after remove().
  bool is_given_up() const { return removing_; }

 private:
  enum class Phase { kMaking, kMade, kFailed, kGone };

  void run();
  void make();

  const RocksState& state_;
  const std::string made_at_;  // by the open directory; others use checkpoint_.path
  // The thread writes them before it sets the phase.
  Checkpoint checkpoint_;
  const LogPosition position_;  // the last change that the checkpoint has
  std::string failure_;
  std::atomic<Phase> phase_ = Phase::kMaking;

  bool removing_ = false;
  std::binary_semaphore remove_{0};
  std::thread thread_;
};

// Removes the checkpoints that a process has left in `directory` when it died. REQUIRES: no process
// has the store open.
void remove_left_checkpoints(const std::string& directory);

}  // namespace carillon::queue
