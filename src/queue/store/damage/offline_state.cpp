// A directory of links in which RocksDB can open what it would refuse.

#include "queue/store/damage/offline_state.h"

#include <rocksdb/filter_policy.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "carillon/queue/store.h"
#include "queue/store/state/blob_format.h"
#include "queue/store/state/stored_bytes.h"

namespace carillon::queue {

namespace fs = std::filesystem;

namespace {

using rocksdb::Slice;
using rocksdb::Status;

constexpr std::array<const char*, kFamilies> kNames = {
    "tubes and watermarks", "the look-up of jobs by id",
    "records of jobs",      "bodies",
    "keys and stories",     "schedules"};

constexpr const char* kOnlyABackup =
    "the state cannot be opened, and nothing else says which files count, so only a backup helps: ";

// Index and filters are read when they are needed, not when a table is opened; filters never.
rocksdb::BlockBasedTableOptions table_options() {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(8 << 20);
  return table;
}

class NoLog final : public rocksdb::Logger {
  using Logger::Logv;
  void Logv(const char*, va_list) override {}
};

rocksdb::Options plain_options() {
  rocksdb::Options options;
  options.env = state_environment();
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table_options()));
  return options;
}

bool is_manifest(const std::string& name) {
  constexpr std::string_view kManifest = "MANIFEST-";
  return name.starts_with(kManifest) && name.size() > kManifest.size() &&
         name.find_first_not_of("0123456789", kManifest.size()) == std::string::npos;
}

// RocksDB reads no body of a file whose head or foot is damaged. A file that cannot be read is left
// to RocksDB.
bool has_whole_ends(const fs::path& path, std::uint64_t written) {
  if (fs::file_size(path) != written) return false;
  std::string head(kBlobHead, '\0');
  std::string foot(kBlobFoot, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), kBlobHead)
      .seekg(static_cast<std::streamoff>(written - kBlobFoot))
      .read(foot.data(), kBlobFoot);
  return !file || (head == blob_head() && is_blob_foot(foot));
}

}  // namespace

std::vector<StateFile> files_in(const std::string& directory) {
  std::vector<StateFile> files;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    const std::string ending = at->path().extension();
    if (ending != ".sst" && ending != ".blob") continue;
    const std::uint64_t bytes = at->file_size(error);
    files.push_back({at->path().string(), bytes, ending == ".blob"});
  }
  if (error)
    throw StoreError("data directory " + directory + " cannot be read: " + error.message());
  std::sort(files.begin(), files.end(),
            [](const StateFile& left, const StateFile& right) { return left.path < right.path; });
  return files;
}

// The MANIFEST says how many bytes each file had. RocksDB uses that to find the end of a table.
OfflineState::OfflineState(const std::string& path, std::string work,
                           const std::vector<std::string>& without)
    : OfflineState(std::move(work)) {
  try {
    make_work(path);
    open();
    const WrittenFiles files = written_files(*database_);
    close();
    for (const auto& [name, file] : files) {
      const std::string its_path = std::string(path).append("/").append(name);
      const bool is_left_out = std::find(without.begin(), without.end(), name) != without.end();
      name.ends_with(".blob") ? mend_bodies_of(its_path, file.bytes, is_left_out)
                              : mend_table_of(its_path, file.bytes, is_left_out);
    }
    open();
    note_replaced();
  } catch (const std::exception& why) {
    throw StoreError(why.what());
  }
}

WrittenFiles OfflineState::written_in(const std::string& path, std::string work) {
  OfflineState state(std::move(work));
  state.make_work(path);
  state.open();
  return written_files(*state.database_);
}

OfflineState::~OfflineState() {
  close();
  std::error_code ignored;
  fs::remove_all(work_, ignored);
}

void OfflineState::close() {
  if (database_) {
    for (rocksdb::ColumnFamilyHandle* family : families_)
      database_->DestroyColumnFamilyHandle(family).PermitUncheckedError();
  }
  database_.reset();
}

void OfflineState::mend_table_of(const std::string& path, std::uint64_t written, bool is_left_out) {
  const std::string name = fs::path(path).filename();
  const std::string to = work_ + "/" + name;
  if (is_left_out || !fs::exists(path)) return replace_table(name, written);
  const Status status = rocksdb::SstFileReader(plain_options()).Open(path);
  const std::uint64_t size = fs::file_size(path);
  if (status.ok() && size == written) return;
  lines_.push_back(path + (status.ok() ? " has " + std::to_string(size) + " bytes, and not the " +
                                             std::to_string(written) + " that were written"
                                       : " cannot be opened: " + status.ToString()));
  std::string bytes;
  try {
    bytes = file_bytes(path);
  } catch (const StoreError&) {
    return replace_table(name, written);
  }
  fs::remove(to);
  auto mended = mend_table(std::move(bytes), written, to);
  if (!mended || !rocksdb::SstFileReader(plain_options()).Open(to).ok())
    return replace_table(name, written);
  mended_[name] = std::move(*mended);
}

// RocksDB opens such a file when it needs a body in it.
void OfflineState::mend_bodies_of(const std::string& path, std::uint64_t written,
                                  bool is_left_out) {
  const std::string to = work_ + "/" + fs::path(path).filename().string();
  const bool is_taken = !is_left_out && fs::exists(path);
  if (is_taken && has_whole_ends(path, written)) return;
  fs::remove(to);
  if (is_taken) {
    fs::copy_file(path, to);
    fs::permissions(to, fs::perms::owner_write, fs::perm_options::add);
  } else {
    write_file(to, "");
  }
  fs::resize_file(to, written);
  std::fstream copy(to, std::ios::binary | std::ios::in | std::ios::out);
  copy << blob_head();
  copy.seekp(static_cast<std::streamoff>(written - kBlobFoot)) << blob_foot();
  if (!copy.flush()) throw StoreError("cannot write " + to);
}

void OfflineState::make_work(const std::string& path) {
  fs::create_directory(work_);
  fs::permissions(work_, fs::perms::owner_all);
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename();
    const std::string ending = entry.path().extension();
    if (ending == ".sst" || ending == ".blob") {
      fs::create_symlink(fs::absolute(entry.path()), work_ + "/" + name);
    } else if (is_manifest(name) || name == "CURRENT" || name == "IDENTITY") {
      fs::copy_file(entry.path(), work_ + "/" + name);
    }
  }
  name_manifest();
}

// If there are several MANIFESTs, the one with the highest number is the latest.
void OfflineState::name_manifest() {
  const std::string path = work_ + "/CURRENT";
  const std::string current = fs::exists(path) ? file_bytes(path) : "";
  std::string latest;
  for (const auto& entry : fs::directory_iterator(work_)) {
    const std::string name = entry.path().filename();
    if (!is_manifest(name)) continue;
    if (current == name + "\n") return;
    if (name.size() > latest.size() || (name.size() == latest.size() && name > latest))
      latest = name;
  }
  if (latest.empty()) throw StoreError(std::string(kOnlyABackup) + "there is no MANIFEST");
  lines_.push_back("the file CURRENT does not name a MANIFEST; " + latest + " is the latest");
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << latest << "\n" << std::flush;
  if (!file) throw StoreError("cannot write " + path);
}

// RocksDB searches for the end of a file at the size that the MANIFEST says. So the empty table has
// zeros before its end. It contains one erased range, which counts as no entry and which no reader
// reads.
void OfflineState::replace_table(const std::string& name, std::uint64_t written) {
  constexpr std::size_t kFoot = 53;
  const std::string empty = work_ + "/empty";
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), plain_options());
  Status status = writer.Open(empty);
  if (status.ok()) status = writer.DeleteRange("a", "b");
  if (status.ok()) status = writer.Finish();
  if (!status.ok()) throw StoreError("an empty table cannot be written: " + status.ToString());
  const std::string bytes = file_bytes(empty);
  fs::remove(empty);
  if (bytes.size() > written)
    throw StoreError(name + " was written with " + std::to_string(written) +
                     " bytes, and an empty table has " + std::to_string(bytes.size()));
  const std::string path = work_ + "/" + name;
  fs::remove(path);
  std::ofstream file(path, std::ios::binary);
  file << bytes.substr(0, bytes.size() - kFoot);
  file.seekp(
      static_cast<std::streamoff>(written - kFoot));  // a sparse file: the zeros take no space
  file << bytes.substr(bytes.size() - kFoot) << std::flush;
  if (!file) throw StoreError("cannot write " + path);
  mended_[name] = {};
}

void OfflineState::open() {
  rocksdb::DBOptions options;
  options.env = state_environment();
  options.info_log = std::make_shared<NoLog>();
  options.max_open_files = 256;
  options.verify_sst_unique_id_in_manifest = false;
  options.skip_checking_sst_file_sizes_on_db_open = true;  // mended ones are longer
  options.paranoid_checks = false;  // it opens without the tables that are damaged or gone
  std::vector<rocksdb::ColumnFamilyDescriptor> families = state_families({});
  const auto table =
      std::shared_ptr<rocksdb::TableFactory>(rocksdb::NewBlockBasedTableFactory(table_options()));
  for (rocksdb::ColumnFamilyDescriptor& family : families) family.options.table_factory = table;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  const Status status = rocksdb::DB::OpenForReadOnly(options, work_, families, &handles, &opened);
  if (!status.ok()) throw StoreError(kOnlyABackup + status.ToString());
  database_.reset(opened);
  std::copy(handles.begin(), handles.end(), families_.begin());
}

void OfflineState::note_replaced() {
  std::vector<rocksdb::LiveFileMetaData> live;
  database_->GetLiveFilesMetaData(&live);
  for (const rocksdb::LiveFileMetaData& file : live) {
    const std::string name = fs::path(file.name).filename();
    if (const auto mended = mended_.find(name); mended != mended_.end())
      note_lost(file, mended->second);
  }
}

void OfflineState::note_lost(const rocksdb::LiveFileMetaData& table, const MendedTable& mended) {
  for (const Family family : {kMeta, kJobs, kIndex, kBodies, kKeys, kSchedules}) {
    if (families_[family]->GetName() != table.column_family_name) continue;
    const auto add = [&](std::string first, std::string end) {
      if (first >= end) return;
      lines_.push_back(fs::path(table.name).filename().string() + " has " + kNames[family] +
                       ", which are left out, from " + describe_key(family, first) + " to " +
                       describe_key(family, end));
      replaced_.push_back({family, std::move(first), std::move(end)});
    };
    const std::string end = table.largestkey + '\0';
    if (mended.last.empty()) return add(table.smallestkey, end);
    add(table.smallestkey, mended.first);
    for (const auto& [after, before] : mended.gaps) add(after + '\0', before);
    add(mended.last + '\0', end);
  }
}

std::unique_ptr<rocksdb::Iterator> OfflineState::scan_to(Family family, const Slice* to) const {
  const auto make = [this, family, to] {
    rocksdb::ReadOptions options;
    options.ignore_range_deletions = true;  // as RocksState::scan
    options.fill_cache = false;
    options.iterate_upper_bound = to;
    return std::unique_ptr<rocksdb::Iterator>(database_->NewIterator(options, families_[family]));
  };
  return std::make_unique<AroundDamage>(family, make, damages_);
}

std::unique_ptr<rocksdb::Iterator> OfflineState::scan(Family family) const {
  auto at = scan_to(family, nullptr);
  at->SeekToFirst();
  return at;
}

std::unique_ptr<rocksdb::Iterator> OfflineState::scan(Family family, const std::string& from,
                                                      const Slice& to) const {
  auto at = scan_to(family, &to);
  at->Seek(from);
  return at;
}

bool OfflineState::is_replaced(Family family, std::string_view key) const {
  return std::any_of(replaced_.begin(), replaced_.end(), [&](const Replaced& table) {
    return table.family == family && table.first <= key && key < table.end;
  });
}

OfflineState::Value OfflineState::get(Family family, std::string_view key) const {
  std::string bytes;
  const Status status =
      database_->Get({}, families_[family], Slice(key.data(), key.size()), &bytes);
  const bool is_replaced = this->is_replaced(family, key);
  if (status.ok()) return {.bytes = std::move(bytes), .is_sure = !is_replaced};
  return {.bytes = {}, .is_sure = status.IsNotFound() && !is_replaced};
}

bool OfflineState::is_doubtful(Family family, std::string_view key) const {
  return damages_.behind(family, key) || is_replaced(family, key);
}

bool OfflineState::has_damage(Family family) const {
  const auto is_its = [family](const auto& damage) { return damage.family == family; };
  const std::vector<Damage> blocks = damages_.ranges();
  return std::any_of(replaced_.begin(), replaced_.end(), is_its) ||
         std::any_of(blocks.begin(), blocks.end(), is_its);
}

std::vector<std::string> OfflineState::damages() const {
  std::vector<std::string> lines = lines_;
  for (const Damage& damage : damages_.all()) {
    std::string why = damage.why;
    if (const auto at = why.find(work_); at != std::string::npos) why.erase(at, work_.size() + 1);
    lines.push_back(std::string(kNames[damage.family]) + ": " + why);
  }
  if (damages_.count() > DamageList::kMost)
    lines.push_back(std::to_string(damages_.count() - DamageList::kMost) +
                    " more places cannot be read");
  return lines;
}

}  // namespace carillon::queue
