// Entries, put one by one where reads look first.

#include "queue/store/overlay.h"

#include "queue/store/entries.h"
#include "queue/store/rocks_database.h"

namespace carillon::queue {

void Overlay::add(std::string_view entries) {
  for_each_entry(entries, [this](const Entry& entry) {
    rocksdb::ColumnFamilyHandle* const family = database_.family(entry.family);
    const rocksdb::Status status = entry.is_put
                                       ? entries_.Put(family, slice(entry.key), slice(entry.value))
                                       : entries_.Delete(family, slice(entry.key));
    if (!status.ok())
      throw StoreError("changes cannot be read before they are written: " + status.ToString());
  });
}

}  // namespace carillon::queue
