// Links the files of a state, adds an empty log, and removes it all again.

#include "queue/store/state/checkpoint.h"

#include <rocksdb/utilities/checkpoint.h>

#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <limits>
#include <memory>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "base/directory.h"
#include "queue/store/log/local_log.h"

namespace carillon::queue {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kCheckpointPrefix = "checkpoint-";
constexpr std::size_t kDigits = 16;

// Returns true for the names that new_name() gives, and for what RocksDB calls them
// while it makes them. Nothing else in a data directory may be deleted.
bool is_checkpoint(std::string_view name) {
  if (name.ends_with(".tmp")) name.remove_suffix(4);
  if (!name.starts_with(kCheckpointPrefix)) return false;
  name.remove_prefix(kCheckpointPrefix.size());
  return name.size() == kDigits &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string new_name() {
  std::random_device random;
  std::array<char, kDigits + 1> name{};
  std::snprintf(name.data(), name.size(), "%08x%08x", random(), random());
  return std::string(kCheckpointPrefix) + name.data();
}

}  // namespace

// A checkpoint that cannot be removed takes space, but does no other harm.
void remove_left_checkpoints(const std::string& directory) {
  std::vector<fs::path> left;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    if (is_checkpoint(at->path().filename().string())) left.push_back(at->path());
  }
  for (const fs::path& path : left) fs::remove_all(path, error);
}

// --- What RocksDB does for it.

void RocksState::link_files(const std::string& path) const {
  rocksdb::Checkpoint* made = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(&database(), &made);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  constexpr std::uint64_t kNeverFlush = std::numeric_limits<std::uint64_t>::max();
  if (status.ok()) status = checkpoint->CreateCheckpoint(path, kNeverFlush);
  if (status.ok()) return;
  std::error_code ignored;
  fs::remove_all(path + ".tmp", ignored);  // RocksDB may leave its MANIFEST (kept_manifest.h)
  throw error("cannot be linked into a checkpoint", status);
}

// --- The thread.

StateCheckpoint::StateCheckpoint(const RocksState& state)
    : state_(state),
      made_at_(state.files().held_path() + "/" + new_name()),
      checkpoint_{.path = fs::absolute(state.files().with_path(made_at_)).string(),
                  .number = state.flushed()},
      position_(state.flushed_position()) {
  thread_ = std::thread([this] { run(); });
}

StateCheckpoint::~StateCheckpoint() {
  remove();
  thread_.join();
}

void StateCheckpoint::run() {
  try {
    make();
    phase_.store(Phase::kMade);
  } catch (const std::exception& why) {
    failure_ = state_.files().with_path(why.what());
    phase_.store(Phase::kFailed);
  }
  remove_.acquire();
  std::error_code ignored;  // the next start tries again
  fs::remove_all(made_at_, ignored);
  phase_.store(Phase::kGone);
}

// A state that has changes and no log is refused when it is opened: it could be damage. The log of
// a checkpoint has only a header, which says that every change up to the state's is durable. If the
// log lies elsewhere, the checkpoint goes on from there.
void StateCheckpoint::make() {
  state_.link_files(made_at_);
  const base::Directory directory(made_at_);
  if (directory.error() != 0)
    throw StoreError("the checkpoint " + made_at_ +
                     " cannot be opened: " + std::generic_category().message(directory.error()));
  if (is_of_files(position_.mark)) LocalLog::make(directory, state_.identity(), position_);
}

std::optional<Checkpoint> StateCheckpoint::made() const {
  switch (phase_.load()) {
    case Phase::kMade:
      return checkpoint_;
    case Phase::kFailed:
      throw StoreError(failure_);
    case Phase::kMaking:
    case Phase::kGone:
      break;
  }
  return std::nullopt;
}

void StateCheckpoint::remove() {
  if (!std::exchange(removing_, true)) remove_.release();
}

}  // namespace carillon::queue
