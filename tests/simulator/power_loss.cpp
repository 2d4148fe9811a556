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
  const std::size_t kept = random() % (directory.changes.size() + 1);
  for (std::size_t n = 0; n < kept; ++n) directory.changes[n].apply(directory.durable_names);
  directory.changes.clear();
  directory.names = directory.durable_names;
}

// What was there before is torn. What was added is there up to some byte; what was cut off is all
// there or all gone.
void Disk::lose_bytes(File& file, Random& random) {
  file.unsynced.merge(file.never_written);
  file.never_written.clear();
  const std::size_t written = file.bytes.size();
  const std::size_t durable = file.durable_size;
  const std::size_t added = written > durable ? written - durable : 0;
  const std::size_t sizes[] = {written, durable, durable + random() % (added + 1)};
  const std::size_t size = sizes[random() % 3];
  file.bytes.resize(std::max(written, durable));
  const std::uint64_t all = random() % 4;  // one fate for all pages, or one for each
  for (const auto& [page, before] : file.unsynced) {
    const std::size_t at = page * kPage;
    const std::uint64_t fate = all < 3 ? all : random() % 3;
    for (std::size_t sector = at; sector < std::min(at + kPage, durable); sector += kSector) {
      const bool cut_off = written < durable && sector + kSector > written;
      const bool kept = fate == 0 || (fate == 2 && random() % 2 == 0);
      if (kept && !cut_off) continue;
      const std::size_t bytes = std::min(kSector, durable - sector);
      std::memcpy(file.bytes.data() + sector, before->data() + (sector - at), bytes);
    }
  }
  file.unsynced.clear();
  file.bytes.resize(size);
  used_pages_ += pages_of(size);
  file.durable_size = size;
}

}  // namespace carillon::simulator
