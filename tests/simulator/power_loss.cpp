// What a power loss does to the simulated disk.

#include <algorithm>
#include <cstring>
#include <set>

#include "simulator/disk.h"
#include "simulator/disk_files.h"

namespace carillon::simulator {

void Disk::lose_power(Random& random) {
  end_process();
  used_pages_ = 0;
  std::set<const File*> seen;
  lose_below(*root_, random, seen);
}

void Disk::lose_below(File& directory, Random& random, std::set<const File*>& seen) {
  lose_names(directory, random);
  for (const auto& [name, file] : directory.names) {
    const bool is_new = seen.insert(file.get()).second;
    file->links = is_new ? 1 : file->links + 1;
    if (!is_new) continue;
    if (file->is_directory) {
      lose_below(*file, random, seen);
    } else {
      lose_bytes(*file, random);
    }
  }
}

void Disk::lose_names(File& directory, Random& random) {
  const bool in_order = random() % 2 == 0;
  std::size_t first = directory.changes.empty() ? 0 : random() % (directory.changes.size() + 1);
  for (const Change& change : directory.changes) {
    const bool kept = in_order ? first > 0 : random() % 2 == 0;
    first -= std::min<std::size_t>(first, 1);
    if (kept) change.apply(directory.durable_names);
  }
  directory.changes.clear();
  directory.names = directory.durable_names;
}

void Disk::lose_bytes(File& file, Random& random) {
  file.unsynced.merge(file.never_written);
  file.never_written.clear();
  const std::size_t written = file.bytes.size();
  const std::size_t longest = std::max(written, file.durable_size);
  file.bytes.resize(longest);
  const std::uint64_t all = random() % 4;  // one fate for all pages, or one for each
  for (const auto& [page, before] : file.unsynced) {
    const std::size_t at = page * kPage;
    const std::uint64_t fate = all < 3 ? all : random() % 3;
    for (std::size_t sector = at; sector < std::min(at + kPage, longest); sector += kSector) {
      const bool kept = fate == 0 || (fate == 2 && random() % 2 == 0);
      if (kept) continue;
      const std::size_t size = std::min(kSector, longest - sector);
      std::memcpy(file.bytes.data() + sector, before->data() + (sector - at), size);
    }
  }
  file.unsynced.clear();
  const std::size_t shortest = std::min(written, file.durable_size);
  const std::size_t sizes[] = {written, file.durable_size,
                               shortest + random() % (longest - shortest + 1)};
  const std::size_t size = sizes[random() % 3];
  file.bytes.resize(size);
  used_pages_ += pages_of(size);
  file.durable_size = size;
}

}  // namespace carillon::simulator
