// Searches for the ends of a damaged range, by Seeks. And RocksState's scans around damage: they
// return what the whole state has. In a damaged block they return what other tables have there, if
// the state still names it.

#include "queue/store/damage/around_damage.h"

#include <rocksdb/iterator.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "queue/store/damage/tables_apart.h"
#include "queue/store/state/no_wait_files.h"
#include "queue/store/state/record_keys.h"
#include "queue/store/state/record_values.h"
#include "queue/store/state/rocks_state.h"

namespace carillon::queue {

namespace {

// The widest key of the family, in bytes. A damaged range ends at a key of this width at the
// latest.
std::size_t width_of(Family family) {
  switch (family) {
    case kJobs:
      return sizeof(JobKey);
    case kIndex:
      return sizeof(IndexKey);
    case kBodies:
      return sizeof(PieceKey);
    case kMeta:
    case kKeys:
    case kSchedules:
      break;
  }
  return 1 + sizeof(UtcMs) + sizeof(std::uint32_t) + std::max(kMaxKey, kMaxScheduleText);
}

std::string behind_all(Family family) {
  return std::string(width_of(family) + 1, '\xff');
}

// In the following functions a key is read as a number, with its first byte the highest.

// Adds 2^bit. Returns false if the sum has no room.
bool add_bit(std::string& key, std::size_t bit) {
  const std::size_t from_end = bit / 8;
  if (from_end >= key.size()) return false;
  unsigned carry = 1u << (bit % 8);
  for (std::size_t i = key.size() - from_end; i-- > 0 && carry > 0;) {
    const unsigned sum = static_cast<std::uint8_t>(key[i]) + carry;
    key[i] = static_cast<char>(sum);
    carry = sum >> 8;
  }
  return carry == 0;
}

// Takes 2^bit away. Returns false if there is less.
bool take_bit(std::string& key, std::size_t bit) {
  for (char& byte : key) byte = static_cast<char>(~static_cast<std::uint8_t>(byte));
  const bool done = add_bit(key, bit);
  for (char& byte : key) byte = static_cast<char>(~static_cast<std::uint8_t>(byte));
  return done;
}

// REQUIRES: both have the same size.
std::string middle(const std::string& low, const std::string& high) {
  std::string sum(low.size() + 1, '\0');
  unsigned carry = 0;
  for (std::size_t i = low.size(); i-- > 0;) {
    carry += unsigned{static_cast<std::uint8_t>(low[i])} + static_cast<std::uint8_t>(high[i]);
    sum[i + 1] = static_cast<char>(carry);
    carry >>= 8;
  }
  sum[0] = static_cast<char>(carry);
  for (std::size_t i = sum.size() - 1; i > 0; --i) {
    const unsigned above = static_cast<std::uint8_t>(sum[i - 1]) & 1u;
    sum[i] = static_cast<char>((unsigned{static_cast<std::uint8_t>(sum[i])} >> 1) | (above << 7));
  }
  return sum.substr(1);
}

// As RFC 3339 in UTC. No job is due after kLastDue.
std::string moment(UtcMs at) {
  using std::chrono::milliseconds;
  if (at > kLastDue) return "the end of time";
  const std::chrono::sys_time<milliseconds> time{milliseconds(at)};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()),
                static_cast<int>(clock.subseconds().count()));
  return text.data();
}

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

// --- The list.

std::string describe_key(Family family, const std::string& key, const NameOfTube& name_of) {
  JobRecord job;
  if (family == kIndex && set_job_of_key(key.substr(0, sizeof(IndexKey)), job)) {
    const std::string name = name_of ? name_of(job.tube) : "";
    return (name.empty() ? "tube number " + std::to_string(job.tube) : "tube " + name) +
           (job.buried() ? " buried as number " + std::to_string(job.burial)
                         : " due at " + moment(job.due));
  }
  if ((family == kJobs || family == kBodies) && key.size() >= sizeof(JobKey)) {
    std::uint64_t id = 0;
    for (std::size_t i = 0; i < sizeof id; ++i) id = id << 8 | static_cast<std::uint8_t>(key[i]);
    return "job " + std::to_string(id);
  }
  if (family == kSchedules) return "'" + key + "'";
  return "the key " + hex(key);
}

std::string describe(const Damage& damage, const NameOfTube& name_of) {
  if (damage.family != kIndex) return damage.why;
  const auto place = [&name_of](const std::string& key, const char* otherwise) {
    JobRecord job;
    const bool is_known = set_job_of_key(key.substr(0, sizeof(IndexKey)), job);
    return is_known ? describe_key(kIndex, key, name_of) : std::string(otherwise);
  };
  return "not all jobs from " + place(damage.from, "the first one") + " to " +
         place(damage.to, "the last one") + " can be handed out: " + damage.why;
}

bool DamageList::add(Damage damage) {
  const std::lock_guard lock(mutex_);
  cover(damage);
  for (Damage& known : damages_) {
    if (known.family != damage.family || known.to != damage.to) continue;
    known.from = std::min(known.from, damage.from);
    return false;
  }
  ++count_;
  if (damages_.size() < kMost) damages_.push_back(std::move(damage));
  return true;
}

// A range that begins before the damage, or with it, may grow to contain it, and then join ranges
// that follow.
void DamageList::cover(const Damage& damage) {
  auto& ranges = ranges_[damage.family];
  std::string from = damage.from;
  std::string to = damage.to;
  auto at = ranges.upper_bound(from);
  if (at != ranges.begin() && std::prev(at)->second >= from) --at;
  while (at != ranges.end() && at->first <= to) {
    from = std::min(from, at->first);
    to = std::max(to, at->second);
    at = ranges.erase(at);
  }
  ranges.emplace(std::move(from), std::move(to));
}

std::optional<std::string> DamageList::behind(Family family, std::string_view key) const {
  const std::lock_guard lock(mutex_);
  const auto& ranges = ranges_[family];
  const auto next = ranges.upper_bound(key);
  if (next == ranges.begin() || std::prev(next)->second <= key) return std::nullopt;
  return std::prev(next)->second;
}

std::vector<Damage> DamageList::ranges() const {
  const std::lock_guard lock(mutex_);
  std::vector<Damage> all;
  for (std::size_t family = 0; family < kFamilies; ++family) {
    for (const auto& [from, to] : ranges_[family])
      all.push_back({.family = static_cast<Family>(family), .from = from, .to = to, .why = {}});
  }
  return all;
}

std::vector<Damage> DamageList::all() const {
  const std::lock_guard lock(mutex_);
  return damages_;
}

void DamageList::note_passed() {
  const std::lock_guard lock(mutex_);
  ++passed_;
}

// Without a damaged range between the two keys it does nothing.
void DamageList::note_left_out(Family family, std::string_view from, std::string_view to) {
  if (from >= to) return;
  const std::lock_guard lock(mutex_);
  const auto next = ranges_[family].lower_bound(to);
  if (next != ranges_[family].begin() && std::prev(next)->second > from) ++passed_;
}

std::uint64_t DamageList::passed() const {
  const std::lock_guard lock(mutex_);
  return passed_;
}

std::size_t DamageList::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

// --- The iterator.

AroundDamage::AroundDamage(Family family, Make make, DamageList& damages, Beneath beneath)
    : family_(family),
      make_(std::move(make)),
      damages_(damages),
      beneath_(std::move(beneath)),
      at_(make_()) {}

void AroundDamage::Seek(const rocksdb::Slice& target) {
  seek(target.ToString());
}

void AroundDamage::SeekToFirst() {
  seek("");
}

void AroundDamage::Next() {
  if (beneath_at_) {
    beneath_at_->Next();
    if (!beneath_at_->Valid() && beneath_at_->status().ok()) seek(beneath_to_);
    return;
  }
  last_.assign(at_->key().data(), at_->key().size());
  at_->Next();
  if (!at_->Valid() && at_->status().IsCorruption()) seek(last_ + '\0');
}

// An iterator that has failed to open a file does not try again; a new iterator does.
void AroundDamage::seek(std::string from) {
  beneath_at_.reset();
  while (from < behind_all(family_)) {
    if (auto behind = damages_.behind(family_, from)) {
      damages_.note_passed();
      if (seek_beneath(from, *behind)) return;
      from = std::move(*behind);
      continue;
    }
    go_to(from);
    if (at_->Valid() || !at_->status().IsCorruption()) return;
    {
      const FreshRead fresh;
      at_ = make_();
      at_->Seek(from);
    }
    if (at_->Valid() || !at_->status().IsCorruption()) return;
    const std::string why = at_->status().ToString();
    std::string to = end_of_damage(from, why);
    std::string begin = begin_of_damage(from, why);
    damages_.add({family_, std::move(begin), to, why});
    damages_.note_passed();
    if (seek_beneath(from, to)) return;
    from = std::move(to);
  }
  at_.reset(rocksdb::NewEmptyIterator());
}

// Returns false if `beneath` has no entry there.
bool AroundDamage::seek_beneath(const std::string& from, const std::string& to) {
  if (!beneath_) return false;
  beneath_at_ = beneath_(from, to);
  beneath_to_ = to;
  if (beneath_at_->Valid() || !beneath_at_->status().ok()) return true;
  beneath_at_.reset();
  return false;
}

// Only this many bytes of a key are searched at first, and then twice as many each time.
constexpr std::size_t kFirstWidth = sizeof(IndexKey);

// Returns the first key behind the damage, or behind_all() if no key is behind it.
std::string AroundDamage::end_of_damage(const std::string& from, const std::string& why) {
  const std::size_t whole = width_of(family_);
  // RocksDB does not say which of the large bodies is damaged, so no step may pass over one. After
  // 1000 failures assume that the table itself is damaged.
  constexpr std::size_t kNextId = 8 * sizeof(std::uint32_t);
  constexpr std::size_t kManyBodies = 1'000;
  const bool is_body = why.find(" offset ") == std::string::npos && family_ == kBodies;
  std::string low = from;  // before the end
  for (std::size_t width = std::min(kFirstWidth, whole);; width = std::min(2 * width, whole)) {
    low = std::max(low, from);
    low.resize(width, '\0');
    std::string high = low;
    std::size_t steps = 0;
    for (std::size_t bit = is_body ? kNextId : 0;; ++steps) {
      high = low;
      if (!add_bit(high, bit)) {
        high = behind_all(family_);
        if (fails(high, why)) return high;
        low.resize(high.size(), '\0');  // the two must have one size
        break;
      }
      if (!fails(high, why)) break;
      low = high;
      if (!is_body || steps > kManyBodies) ++bit;
    }
    for (std::string next = middle(low, high); next > low; next = middle(low, high))
      (fails(next, why) ? low : high) = next;
    if (low.size() >= whole || fails(last_of(low), why)) return high;
  }
}

// Returns the first key at which a Seek fails, or `from` if that is not known.
std::string AroundDamage::begin_of_damage(const std::string& from, const std::string& why) {
  if (from.empty() || why.find(" offset ") == std::string::npos) return from;
  const std::size_t whole = width_of(family_);
  std::string failing = from.substr(0, whole);
  failing.resize(whole, '\0');
  if (!fails(failing, why)) return from;  // it is the last key before the damage
  for (std::size_t width = std::min(kFirstWidth, whole);; width = std::min(2 * width, whole)) {
    std::string high = failing.substr(0, width);
    if (!fails(high, why)) {
      if (width == whole) return from;  // it can be read now
      continue;
    }
    std::string low = high;
    for (std::size_t bit = 0;; ++bit) {
      low = high;
      if (!take_bit(low, bit)) low.assign(low.size(), '\0');
      if (!fails(low, why)) break;
      if (low.find_first_not_of('\0') == std::string::npos) return low;
      high = low;
    }
    for (std::string next = middle(low, high); next > low; next = middle(low, high))
      (fails(next, why) ? high : low) = next;
    failing = last_of(low);
    if (width == whole || !fails(failing, why)) return high;
  }
}

// Returns the last key of the family's width that begins with `prefix`.
std::string AroundDamage::last_of(std::string prefix) const {
  prefix.resize(std::max(prefix.size(), width_of(family_)), '\xff');
  return prefix;
}

bool AroundDamage::fails(const std::string& key, const std::string& why) {
  go_to(key);
  return !at_->Valid() && at_->status().IsCorruption() && at_->status().ToString() == why;
}

// An iterator of RocksDB that has failed may also fail at keys that can be read: it does not load
// again the block in which it was before. A new iterator does.
void AroundDamage::go_to(const std::string& key) {
  if (!at_->status().ok()) at_ = make_();
  at_->Seek(key);
}

void AroundDamage::Prev() {
  assert(false);
}

void AroundDamage::SeekToLast() {
  assert(false);
}

void AroundDamage::SeekForPrev(const rocksdb::Slice&) {
  assert(false);
}

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
