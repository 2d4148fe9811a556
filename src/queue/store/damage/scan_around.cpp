// RocksState's scans around damage: they return what the whole state has. In a damaged block they
// return what other tables have there, if the state still names it.

#include <rocksdb/iterator.h>

#include <algorithm>
#include <cassert>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "queue/store/damage/around_damage.h"
#include "queue/store/damage/tables_apart.h"
#include "queue/store/state/record_keys.h"
#include "queue/store/state/record_values.h"
#include "queue/store/state/rocks_state.h"

namespace carillon::queue {

namespace {

using rocksdb::Slice;
using rocksdb::Status;

// The entries of an iterator whose keys are chosen. Forward only.
class Chosen final : public rocksdb::Iterator {
 public:
  using Choose = std::function<bool(std::string_view key)>;

  Chosen(std::unique_ptr<rocksdb::Iterator> at, Choose choose)
      : at_(std::move(at)), choose_(std::move(choose)) {
    pass();
  }

  bool Valid() const override { return at_->Valid(); }
  Slice key() const override { return at_->key(); }
  Slice value() const override { return at_->value(); }
  Status status() const override { return at_->status(); }
  void Next() override {
    at_->Next();
    pass();
  }
  void Seek(const Slice&) override { assert(false); }
  void SeekToFirst() override { assert(false); }
  void SeekToLast() override { assert(false); }
  void SeekForPrev(const Slice&) override { assert(false); }
  void Prev() override { assert(false); }

 private:
  void pass() {
    while (at_->Valid() && !choose_({at_->key().data(), at_->key().size()})) at_->Next();
  }

  const std::unique_ptr<rocksdb::Iterator> at_;
  const Choose choose_;
};

}  // namespace

std::unique_ptr<rocksdb::Iterator> RocksState::scan_around(Family family, std::string_view from,
                                                           const Slice& end) const {
  const auto make = [this, family, &end] { return iterator(family, end, rocksdb::kReadAllTier); };
  AroundDamage::Beneath beneath;
  if (family == kIndex || family == kKeys) {
    beneath = [this, family, &end](std::string_view begin, std::string_view to) {
      return scan_beneath(family, begin, std::min(to, std::string_view(end.data(), end.size())));
    };
  }
  auto around = std::make_unique<AroundDamage>(family, make, damages_, std::move(beneath));
  around->Seek({from.data(), from.size()});
  return around;
}

std::unique_ptr<rocksdb::Iterator> RocksState::scan_beneath(Family family, std::string_view from,
                                                            std::string_view to) const {
  const auto names = [this, family](std::string_view key) { return is_named(family, key); };
  return std::make_unique<Chosen>(
      tables_apart_.scan(database(), this->family(family), family, from, to), names);
}

// Returns whether the state still has an entry that other tables have. If that cannot be read, the
// entry is left out, and that is a damage, too.
bool RocksState::is_named(Family family, std::string_view key) const {
  try {
    JobRecord job;
    if (family == kIndex && set_job_of_key(key, job)) {
      const auto pointer = get(kJobs, view(job_key(job.id)));
      return pointer && *pointer == view(encode_pointer(index_key_of(job)));
    }
    if (family == kKeys && key.starts_with(kEndedKeys)) {
      const KeyRecord ended = key_of_ended_key(key);
      const auto value = get(kKeys, key_key(ended.tube, ended.key));
      return value && read_key_value(ended.tube, ended.key, *value).until == ended.until;
    }
  } catch (const StoreDamage& why) {
    damages_.add({family, std::string(key), std::string(key) + '\0', why.what()});
    damages_.note_passed();
  }
  return false;
}

}  // namespace carillon::queue
