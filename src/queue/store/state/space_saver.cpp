// Which options of RocksDB save space, and the thread that sets them (space_saver.h).

#include "queue/store/state/space_saver.h"

#include <rocksdb/metadata.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace carillon::queue {

namespace {

struct BodyBytes {
  std::uint64_t alive = 0;
  std::uint64_t dead = 0;

  void add(const rocksdb::BlobMetaData& file) {
    alive += file.total_blob_bytes - file.garbage_blob_bytes;
    dead += file.garbage_blob_bytes;
  }
  double dead_share() const {
    return alive + dead == 0 ? 0 : static_cast<double>(dead) / static_cast<double>(alive + dead);
  }
};

}  // namespace

SpaceSaver::SpaceSaver(rocksdb::DB& database, const Families& families, std::string directory)
    : database_(database), families_(families), directory_(std::move(directory)) {}

SpaceSaver::Options SpaceSaver::usual() {
  const std::string files =
      std::to_string(rocksdb::ColumnFamilyOptions().level0_file_num_compaction_trigger);
  return {files, std::to_string(kBodiesCopied), std::to_string(kBodiesDead)};
}

// RocksDB knows two options: which share of all files counts as old, and a threshold. It copies the
// living bodies out of an old file once the dead share of its oldest files reaches the threshold.
SpaceSaver::Options SpaceSaver::saving() const {
  rocksdb::ColumnFamilyMetaData bodies;
  database_.GetColumnFamilyMetaData(families_[kBodies], &bodies);
  std::vector<rocksdb::BlobMetaData>& files = bodies.blob_files;
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.blob_file_number < b.blob_file_number; });
  BodyBytes all;
  for (const rocksdb::BlobMetaData& file : files) all.add(file);
  std::error_code error;
  const std::uintmax_t free = std::filesystem::space(directory_, error).available;
  Options options{"1", "0", std::to_string(kBodiesDead)};
  if (error || all.dead == 0 || all.dead < all.alive) return options;
  BodyBytes oldest;
  double least_share = 1;
  std::size_t copied = 0;
  for (; copied < files.size(); ++copied) {
    oldest.add(files[copied]);
    if (oldest.alive > free / 2) break;
    least_share = std::min(least_share, oldest.dead_share());
  }
  if (copied == 0) return options;
  const double half_more = static_cast<double>(copied) + 0.5;  // it rounds down
  options.blob_garbage_collection_age_cutoff =
      std::to_string(std::min(half_more / static_cast<double>(files.size()), 1.0));
  options.blob_garbage_collection_force_threshold = std::to_string(least_share * 0.99);
  return options;
}

bool SpaceSaver::save(bool save) {
  if (changing_.valid()) {
    if (changing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
    set_ = changing_.get();
  }
  if (!save && set_ == usual()) return true;
  try {
    changing_ =
        std::async(std::launch::async, [this, save, from = set_] { return change(from, save); });
  } catch (const std::system_error&) {  // no more threads
  }
  return false;
}

// Returns what is set then; nothing if that failed.
std::optional<SpaceSaver::Options> SpaceSaver::change(std::optional<Options> from,
                                                      bool save) const {
  Options to = save ? saving() : usual();
  if (from == to) return to;
  const std::string& files = to.level0_file_num_compaction_trigger;
  for (const Family family : {kJobs, kIndex, kBodies, kKeys}) {
    if (family != kBodies && from && from->level0_file_num_compaction_trigger == files) continue;
    std::unordered_map<std::string, std::string> options{
        {"level0_file_num_compaction_trigger", files}};
    if (family == kBodies) {
      options.emplace("blob_garbage_collection_age_cutoff", to.blob_garbage_collection_age_cutoff);
      options.emplace("blob_garbage_collection_force_threshold",
                      to.blob_garbage_collection_force_threshold);
    }
    if (!database_.SetOptions(families_[family], options).ok()) return std::nullopt;
  }
  return to;
}

}  // namespace carillon::queue
