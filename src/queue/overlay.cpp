// Batches taken apart into their entries.

#include "queue/overlay.h"

#include "queue/rocks_database.h"

namespace carillon::queue {

using rocksdb::Slice;
using rocksdb::Status;

class Overlay::Adder final : public rocksdb::WriteBatch::Handler {
 public:
  explicit Adder(Overlay& overlay) : overlay_(overlay) {}

  Status PutCF(std::uint32_t family, const Slice& key, const Slice& value) override {
    return overlay_.entries_.Put(overlay_.database_.family_by_id(family), key, value);
  }
  Status DeleteCF(std::uint32_t family, const Slice& key) override {
    return overlay_.entries_.Delete(overlay_.database_.family_by_id(family), key);
  }

 private:
  Overlay& overlay_;
};

void Overlay::add(const rocksdb::WriteBatch& batch) {
  Adder adder(*this);
  const Status status = batch.Iterate(&adder);
  if (!status.ok()) throw StoreError("changes cannot be read before they are written: " + status.ToString());
}

}  // namespace carillon::queue
