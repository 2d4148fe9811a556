// The system calls of the simulated disk. What a power loss does to it is in power_loss.cpp.

#include "simulator/disk.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include "simulator/disk_files.h"

namespace carillon::simulator {

namespace {

std::unique_ptr<Disk> the_disk;

// Takes the first name off a path. Returns an empty one at its end.
std::string_view take_name(std::string_view& path) {
  std::string_view name;
  do {
    path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
    name = path.substr(0, path.find('/'));
    path.remove_prefix(name.size());
  } while (name == ".");
  return name;
}

// Takes "/proc/self/fd/N" off a path, and returns N if it is a descriptor of the disk; else -1.
int take_held(std::string_view& path) {
  constexpr std::string_view kHeld = "/proc/self/fd/";
  if (!path.starts_with(kHeld)) return -1;
  int fd = -1;
  const char* const begin = path.data() + kHeld.size();
  const char* const end = std::from_chars(begin, path.data() + path.size(), fd).ptr;
  if (!Disk::has(fd)) return -1;
  path.remove_prefix(static_cast<std::size_t>(end - path.data()));
  return fd;
}

bool writes(int flags) {
  return (flags & O_ACCMODE) != O_RDONLY;
}

}  // namespace

Disk& Disk::mount() {
  the_disk.reset();
  the_disk = std::make_unique<Disk>();
  return *the_disk;
}

Disk* Disk::mounted() {
  return the_disk.get();
}

bool Disk::has(const char* path) {
  std::string_view name(path);
  if (!the_disk) return false;
  if (take_held(name) >= 0) return true;
  return name.starts_with(kRoot) && (name.size() == kRoot.size() || name[kRoot.size()] == '/');
}

Disk::Disk() : root_(std::make_shared<File>(1, true)) {}

Disk::~Disk() = default;

void Disk::end_process() {
  descriptors_.clear();
  stopped_ = false;
  changes_left_ = 0;
  faults_ = {};
}

void Disk::set_faults(const Faults& faults, std::uint64_t seed) {
  faults_ = faults;
  fault_random_.seed(seed);
}

std::uint64_t Disk::free_bytes() const {
  return capacity_pages_ > used_pages_ ? (capacity_pages_ - used_pages_) * kPage : 0;
}

// --- Descriptors and paths.

Disk::Descriptor* Disk::descriptor(int fd) {
  const auto found = descriptors_.find(fd);
  return found == descriptors_.end() ? nullptr : found->second.get();
}

int Disk::add_descriptor(const FilePointer& file, int flags) {
  const int fd = next_descriptor_++;
  descriptors_.emplace(fd, std::make_unique<Descriptor>(Descriptor{.file = file, .flags = flags}));
  return fd;
}

Disk::Place Disk::find(int at, const char* path) const {
  std::string_view rest(path);
  Place place{.file = root_};
  const int held = take_held(rest);
  if (held < 0 && rest.starts_with('/')) {
    rest.remove_prefix(kRoot.size());
  } else {
    const auto from = descriptors_.find(held < 0 ? at : held);
    if (from == descriptors_.end()) return {.file = nullptr, .error = ENOENT};
    place.file = from->second->file;
  }
  for (std::string_view name = take_name(rest); !name.empty(); name = take_name(rest)) {
    if (!place.file || !place.file->is_directory)
      return {.file = nullptr, .error = place.file ? ENOTDIR : ENOENT};
    place.in = place.file;
    place.name = std::string(name);
    const auto found = place.in->names.find(name);
    place.file = found == place.in->names.end() ? nullptr : found->second;
  }
  return place;
}

// --- What can go wrong.

bool Disk::fails(std::uint32_t one_in, bool is_change) {
  if (is_change && stopped_) return true;
  if (one_in == 0 || fault_random_() % one_in != 0) return false;
  ++failed_;
  return true;
}

// Counts a change. Returns true if it is the last one, and so may be done by halves.
bool Disk::is_last() {
  ++changes_;
  if (changes_left_ == 0 || --changes_left_ > 0) return false;
  stopped_ = true;
  return true;
}

bool Disk::take_pages(File& file, std::size_t size) {
  const std::size_t has = pages_of(file.bytes.size());
  const std::size_t needs = pages_of(size);
  if (needs > has && used_pages_ + needs - has > capacity_pages_) {
    ++failed_;
    return false;
  }
  return true;
}

// --- Bytes.

void Disk::set_size(File& file, std::size_t size) {
  for (std::size_t page = size / kPage; page < pages_of(file.bytes.size()); ++page)
    save_page(file, page);
  resize(file, size);
}

// A file without a name takes no space.
void Disk::resize(File& file, std::size_t size) {
  if (file.links > 0) used_pages_ += pages_of(size) - pages_of(file.bytes.size());
  file.bytes.resize(size);
}

// Keeps what a page has, if it is durable, because it will be changed.
void Disk::save_page(File& file, std::size_t page) {
  if (const auto lost = file.never_written.find(page); lost != file.never_written.end()) {
    file.unsynced.insert(file.never_written.extract(lost));
    return;
  }
  if (file.unsynced.contains(page)) return;
  auto saved = std::make_unique<Page>();
  saved->fill('\0');
  const std::size_t at = page * kPage;
  if (at < file.bytes.size())
    std::memcpy(saved->data(), file.bytes.data() + at, std::min(kPage, file.bytes.size() - at));
  file.unsynced.emplace(page, std::move(saved));
}

void Disk::put(File& file, const char* bytes, std::size_t size, std::size_t at, bool durable) {
  const std::size_t end = at + size;
  for (std::size_t page = at / kPage; page < pages_of(end) && !durable; ++page)
    save_page(file, page);
  if (end > file.bytes.size()) resize(file, end);
  std::memcpy(file.bytes.data() + at, bytes, size);
  if (!durable) return;
  file.durable_size = std::max(file.durable_size, end);
  for (std::size_t page = at / kPage; page < pages_of(end); ++page) {
    file.unsynced.erase(page);
    file.never_written.erase(page);
  }
}

ssize_t Disk::pwrite(int fd, const char* bytes, std::size_t size, off_t at) {
  Descriptor* const to = descriptor(fd);
  if (to == nullptr || !writes(to->flags)) return -EBADF;
  if (fails(faults_.writes)) return -EIO;
  const auto from = static_cast<std::size_t>(at);
  if (!take_pages(*to->file, from + size)) return -ENOSPC;
  const bool last = is_last();
  put(*to->file, bytes, size, from, (to->flags & O_DSYNC) != 0 && !last);
  return last ? -EIO : static_cast<ssize_t>(size);
}

ssize_t Disk::write(int fd, const char* bytes, std::size_t size) {
  Descriptor* const to = descriptor(fd);
  if (to == nullptr) return -EBADF;
  if ((to->flags & O_APPEND) != 0) to->position = static_cast<off_t>(to->file->bytes.size());
  const ssize_t wrote = pwrite(fd, bytes, size, to->position);
  if (wrote > 0) to->position += wrote;
  return wrote;
}

ssize_t Disk::pread(int fd, char* to, std::size_t size, off_t at) {
  Descriptor* const from = descriptor(fd);
  if (from == nullptr) return -EBADF;
  if (from->file->is_directory) return -EISDIR;
  ++reads_;
  if (fails(faults_.reads, false)) return -EIO;
  const std::string_view bytes(from->file->bytes.data(), from->file->bytes.size());
  const auto begin = static_cast<std::size_t>(at);
  if (begin >= bytes.size()) return 0;
  const std::size_t got = bytes.substr(begin, size).copy(to, size);
  if ((from->flags & O_DIRECT) != 0) put_durable_pages(*from->file, to, got, begin);
  return static_cast<ssize_t>(got);
}

// What a failed sync has not written is in the page cache alone.
void Disk::put_durable_pages(const File& file, char* to, std::size_t size, std::size_t from) {
  for (const auto& [page, before] : file.never_written) {
    const std::size_t begin = std::max(page * kPage, from);
    const std::size_t end = std::min((page + 1) * kPage, from + size);
    if (begin < end)
      std::memcpy(to + (begin - from), before->data() + (begin - page * kPage), end - begin);
  }
}

ssize_t Disk::read(int fd, char* to, std::size_t size) {
  Descriptor* const from = descriptor(fd);
  if (from == nullptr) return -EBADF;
  const ssize_t got = pread(fd, to, size, from->position);
  if (got > 0) from->position += got;
  return got;
}

off_t Disk::seek(int fd, off_t by, int from) {
  Descriptor* const of = descriptor(fd);
  if (of == nullptr) return -EBADF;
  if (from == SEEK_CUR) by += of->position;
  if (from == SEEK_END) by += static_cast<off_t>(of->file->bytes.size());
  return of->position = by;
}

int Disk::sync(int fd) {
  const Descriptor* const of = descriptor(fd);
  if (of == nullptr) return -EBADF;
  File& file = *of->file;
  ++syncs_;
  if (stopped_) return -EIO;
  if (fails(faults_.syncs)) {
    file.never_written.merge(file.unsynced);
    file.unsynced.clear();
    return -EIO;
  }
  if (is_last()) return -EIO;
  file.unsynced.clear();
  file.durable_size = file.bytes.size();
  file.durable_names = file.names;
  file.changes.clear();
  return 0;
}

int Disk::resize(int fd, off_t size) {
  Descriptor* const of = descriptor(fd);
  if (of == nullptr || !writes(of->flags)) return -EBADF;
  if (fails(faults_.writes)) return -EIO;
  const auto wanted = static_cast<std::size_t>(size);
  if (!take_pages(*of->file, wanted)) return -ENOSPC;
  const bool last = is_last();
  set_size(*of->file, wanted);
  return last ? -EIO : 0;
}

int Disk::allocate(int fd, off_t size) {
  const Descriptor* const of = descriptor(fd);
  if (of == nullptr) return -EBADF;
  return static_cast<std::size_t>(size) > of->file->bytes.size() ? resize(fd, size) : 0;
}

// --- Descriptors.

int Disk::open(int at, const char* path, int flags) {
  Place place = find(at, path);
  if (place.error != 0) return -place.error;
  if (place.file && (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) return -EEXIST;
  if (!place.file) {
    if ((flags & O_CREAT) == 0) return -ENOENT;
    if (fails(faults_.writes)) return -EIO;
    const bool last = is_last();
    place.file = std::make_shared<File>(next_inode_++, false);
    change_names(*place.in, {.name = place.name, .file = place.file});
    if (last) return -EIO;
  }
  if (place.file->is_directory && writes(flags)) return -EISDIR;
  if (!place.file->is_directory && (flags & O_DIRECTORY) != 0) return -ENOTDIR;
  const int fd = add_descriptor(place.file, flags);
  if ((flags & O_TRUNC) == 0 || place.file->bytes.empty()) return fd;
  const int result = resize(fd, 0);
  if (result != 0) close(fd);
  return result != 0 ? result : fd;
}

int Disk::close(int fd) {
  const Descriptor* const of = descriptor(fd);
  if (of == nullptr) return -EBADF;
  if (of->file->locked_by == fd) of->file->locked_by = -1;
  descriptors_.erase(fd);
  return 0;
}

int Disk::get_flags(int fd) {
  const Descriptor* const of = descriptor(fd);
  return of == nullptr ? -EBADF : of->flags;
}

int Disk::set_flags(int fd, int flags) {
  Descriptor* const of = descriptor(fd);
  if (of == nullptr) return -EBADF;
  of->flags = (of->flags & (O_ACCMODE | O_DSYNC)) | (flags & (O_APPEND | O_DIRECT));
  return 0;
}

int Disk::lock(int fd, int operation) {
  const Descriptor* const of = descriptor(fd);
  if (of == nullptr) return -EBADF;
  int& owner = of->file->locked_by;
  if (owner >= 0 && owner != fd && descriptors_.contains(owner)) return -EWOULDBLOCK;
  owner = (operation & LOCK_UN) != 0 ? -1 : fd;
  return 0;
}

int Disk::stat(int fd, struct stat& to) {
  const Descriptor* const of = descriptor(fd);
  if (of == nullptr) return -EBADF;
  of->file->tell(to);
  return 0;
}

int Disk::stat(int at, const char* path, struct stat& to) {
  const Place place = find(at, path);
  if (!place.file) return place.error != 0 ? -place.error : -ENOENT;
  place.file->tell(to);
  return 0;
}

// --- Names.

void Disk::change_names(File& directory, Change change) {
  const auto before = directory.names.find(change.name);
  if (before != directory.names.end() && --before->second->links == 0)
    used_pages_ -= pages_of(before->second->bytes.size());
  if (change.file && change.renamed_from.empty()) ++change.file->links;
  change.apply(directory.names);
  directory.changes.push_back(std::move(change));
}

int Disk::make_directory(const char* path) {
  const Place place = find(-1, path);
  if (place.file) return -EEXIST;
  if (place.error != 0) return -place.error;
  if (fails(faults_.writes)) return -EIO;
  const bool last = is_last();
  change_names(*place.in,
               {.name = place.name, .file = std::make_shared<File>(next_inode_++, true)});
  return last ? -EIO : 0;
}

int Disk::link(const char* from, const char* to) {
  const Place file = find(-1, from);
  const Place place = find(-1, to);
  if (!file.file || !place.in) return -ENOENT;
  if (place.file) return -EEXIST;
  if (fails(faults_.writes)) return -EIO;
  const bool last = is_last();
  change_names(*place.in, {.name = place.name, .file = file.file});
  return last ? -EIO : 0;
}

int Disk::rename(int from_at, const char* from, int to_at, const char* to) {
  const Place file = find(from_at, from);
  const Place place = find(to_at, to);
  if (!file.file || !place.in) return -ENOENT;
  if (file.in != place.in) return -EXDEV;
  if (fails(faults_.writes)) return -EIO;
  const bool last = is_last();
  change_names(*place.in, {.name = place.name, .file = file.file, .renamed_from = file.name});
  return last ? -EIO : 0;
}

int Disk::unlink(int at, const char* path) {
  const Place place = find(at, path);
  if (!place.file) return place.error != 0 ? -place.error : -ENOENT;
  if (place.file->is_directory) return -EISDIR;
  if (fails(faults_.writes)) return -EIO;
  const bool last = is_last();
  change_names(*place.in, {.name = place.name});
  return last ? -EIO : 0;
}

int Disk::remove_directory(int at, const char* path) {
  const Place place = find(at, path);
  if (!place.file) return place.error != 0 ? -place.error : -ENOENT;
  if (!place.file->is_directory) return -ENOTDIR;
  if (!place.file->names.empty()) return -ENOTEMPTY;
  if (fails(faults_.writes)) return -EIO;
  const bool last = is_last();
  change_names(*place.in, {.name = place.name});
  return last ? -EIO : 0;
}

std::vector<Disk::Entry> Disk::list(int fd) {
  std::vector<Entry> entries;
  const Descriptor* const of = descriptor(fd);
  if (of == nullptr) return entries;
  for (const auto& [name, file] : of->file->names)
    entries.push_back({.name = name, .inode = file->inode, .directory = file->is_directory});
  return entries;
}

}  // namespace carillon::simulator
