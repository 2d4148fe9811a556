// AroundDamage: an iterator of RocksDB's that goes around blocks that cannot be read.
//
//   DamageList damages;
//   AroundDamage at(kIndex, [&] { return new_iterator(options, family); }, damages, beneath);
//   for (at.Seek(first); at.Valid(); at.Next()) ...       // all that is whole
//   if (!at.status().ok()) ...                            // another error
//   for (const Damage& damage : damages.all()) ...        // what cannot be read
//
// RocksDB's own iterator ends at the first block that fails its checksum, and says which block it
// was. A Seek behind the block works. Nothing says where the block ends, so it is searched: the
// keys for which a Seek fails at this block are neighbours. A few hundred Seeks, first with ever
// wider steps and then between the last two, find the first and the last of them. Only the first
// bytes of long keys are searched, as many as tell neighbours apart. No key that can be read is
// passed over.
//
// A block that fails is read once more from the disk (FreshRead) before it counts as damaged.
//
// In a damaged block RocksDB cannot see erasures, so it reads no table at the keys of the block:
// nothing that was erased comes back. What other tables have there comes from `beneath`, which must
// leave out entries that are gone.
#pragma once

#include <rocksdb/iterator.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "queue/store/state/state_options.h"

namespace carillon::queue {

// The keys of a family from `from` on and before `to` cannot be read.
struct Damage {
  Family family = kMeta;
  std::string from;
  std::string to;
  std::string why;  // RocksDB's words, which name the file and the place in it
};

// Returns the name of a tube, or nothing if it is not known.
using NameOfTube = std::function<std::string(std::uint32_t number)>;

// Describes a key of the family, or the beginning of one.
std::string describe_key(Family family, const std::string& key, const NameOfTube& name_of = {});
// Says which jobs a damage may cost, and where it lies.
std::string describe(const Damage& damage, const NameOfTube& name_of = {});

// Thread safety: any thread.
class DamageList {
 public:
  // all() has kMost at most; count() counts on.
  static constexpr std::size_t kMost = 1'000;

  // Returns true if the damage was not known.
  bool add(Damage damage);
  // If `key` is inside known damage, returns the first key behind the damage.
  std::optional<std::string> behind(Family family, std::string_view key) const;
  std::vector<Damage> all() const;  // in the order in which they were found
  std::size_t count() const;
  // How often a scan has gone around a damaged range, known or new, or has begun behind one because
  // nothing else is there.
  void note_passed();
  void note_left_out(Family family, std::string_view from, std::string_view to);
  std::uint64_t passed() const;
  // All keys inside damage, as ranges; neighbours are joined to one range. They have no `why`.
  std::vector<Damage> ranges() const;

 private:
  void cover(const Damage& damage);

  mutable std::mutex mutex_;
  // Protected by mutex_:
  std::vector<Damage> damages_;
  std::size_t count_ = 0;
  std::uint64_t passed_ = 0;
  // The damaged ranges of keys of each family, in order. No two touch each other.
  std::array<std::map<std::string, std::string, std::less<>>, kFamilies> ranges_;
};

class AroundDamage final : public rocksdb::Iterator {
 public:
  // Returns a new iterator of the family; it has no position yet.
  using Make = std::function<std::unique_ptr<rocksdb::Iterator>()>;

  // Returns an iterator at the first key >= `from` of the entries that damage hides; it ends before
  // `to`.
  using Beneath =
      std::function<std::unique_ptr<rocksdb::Iterator>(std::string_view from, std::string_view to)>;

  // `damages` must outlive the iterator. Without `beneath`, a damaged block counts as empty.
  AroundDamage(Family family, Make make, DamageList& damages, Beneath beneath = {});

  bool Valid() const override { return current().Valid(); }
  rocksdb::Slice key() const override { return current().key(); }
  rocksdb::Slice value() const override { return current().value(); }
  rocksdb::Status status() const override { return current().status(); }
  void Seek(const rocksdb::Slice& target) override;
  void SeekToFirst() override;
  void Next() override;
  // The iterator moves only forward. REQUIRES: these are not called.
  void Prev() override;
  void SeekToLast() override;
  void SeekForPrev(const rocksdb::Slice& target) override;

 private:
  const rocksdb::Iterator& current() const { return beneath_at_ ? *beneath_at_ : *at_; }
  void seek(std::string from);
  bool seek_beneath(const std::string& from, const std::string& to);
  std::string begin_of_damage(const std::string& from, const std::string& why);
  std::string end_of_damage(const std::string& from, const std::string& why);
  std::string last_of(std::string prefix) const;
  void go_to(const std::string& key);
  bool fails(const std::string& key, const std::string& why);

  const Family family_;
  const Make make_;
  DamageList& damages_;
  const Beneath beneath_;
  std::unique_ptr<rocksdb::Iterator> at_;
  std::unique_ptr<rocksdb::Iterator> beneath_at_;  // while it stands at keys of a damaged block
  std::string beneath_to_;                         // and these end here
  std::string last_;                               // the key at which it stands, before a step
};

}  // namespace carillon::queue
