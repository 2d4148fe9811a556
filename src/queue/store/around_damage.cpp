// Where damage ends, by Seeks.

#include "queue/store/around_damage.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <utility>

#include "queue/store/no_wait_files.h"
#include "queue/store/record_keys.h"

namespace carillon::queue {

namespace {

// Keys of so many bytes are searched through; a longer key has no damage that ends within it.
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

// Below, a key is a number, with its first byte the highest.

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

}  // namespace

// --- The list.

std::string describe(const Damage& damage) {
  if (damage.family != kIndex) return damage.why;
  const auto place = [](const std::string& key, const char* else_what) -> std::string {
    JobRecord job;
    if (!set_job_of_key(key.substr(0, sizeof(IndexKey)), job)) return else_what;
    return "tube number " + std::to_string(job.tube) +
           (job.buried() ? " buried as number " + std::to_string(job.burial)
                         : " due at " + std::to_string(job.due) + " ms since 1970");
  };
  return "not all jobs from " + place(damage.from, "the first one") + " to " +
         place(damage.to, "the last one") + " can be handed out: " + damage.why;
}

bool DamageList::add(Damage damage) {
  const std::lock_guard lock(mutex_);
  for (Damage& known : damages_) {
    if (known.family != damage.family || known.to != damage.to) continue;
    known.from = std::min(known.from, damage.from);
    return false;
  }
  ++count_;
  if (damages_.size() < kMost) damages_.push_back(std::move(damage));
  return true;
}

std::optional<std::string> DamageList::behind(Family family, std::string_view key) const {
  const std::lock_guard lock(mutex_);
  for (const Damage& known : damages_) {
    if (known.family == family && known.from <= key && key < known.to) return known.to;
  }
  return std::nullopt;
}

std::vector<Damage> DamageList::all() const {
  const std::lock_guard lock(mutex_);
  return damages_;
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

// An iterator that has failed to open a file does not try it again; a new one does.
void AroundDamage::seek(std::string from) {
  beneath_at_.reset();
  while (from < behind_all(family_)) {
    if (auto behind = damages_.behind(family_, from)) {
      if (seek_beneath(from, *behind)) return;
      from = std::move(*behind);
      continue;
    }
    at_->Seek(from);
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
    if (seek_beneath(from, to)) return;
    from = std::move(to);
  }
  at_.reset(rocksdb::NewEmptyIterator());
}

// Returns false if there is nothing.
bool AroundDamage::seek_beneath(const std::string& from, const std::string& to) {
  if (!beneath_) return false;
  beneath_at_ = beneath_(from, to);
  beneath_to_ = to;
  if (beneath_at_->Valid() || !beneath_at_->status().ok()) return true;
  beneath_at_.reset();
  return false;
}

// Returns the first key behind the damage, of width_of() bytes; behind_all() if there is none.
std::string AroundDamage::end_of_damage(const std::string& from, const std::string& why) {
  const std::size_t width = width_of(family_);
  std::string low = from.substr(0, width);
  low.resize(width, '\0');
  std::string high = low;
  // RocksDB does not say which of the large bodies is damaged, so no step may pass over one.
  constexpr std::size_t kNextId = 8 * sizeof(std::uint32_t);
  const bool is_body = why.find(" offset ") == std::string::npos && family_ == kBodies;
  for (std::size_t bit = is_body ? kNextId : 0;; bit += is_body ? 0 : 1) {
    high = low;
    if (!add_bit(high, bit)) {
      high = behind_all(family_);
      if (fails(high, why)) return high;
      low += '\0';  // the two are to have one size
      break;
    }
    if (!fails(high, why)) break;
    low = high;
  }
  for (std::string next = middle(low, high); next > low; next = middle(low, high))
    (fails(next, why) ? low : high) = next;
  return high;
}

// Returns the first key at which a Seek fails, or `from` if that is not known.
std::string AroundDamage::begin_of_damage(const std::string& from, const std::string& why) {
  if (from.empty() || why.find(" offset ") == std::string::npos) return from;
  std::string high = from.substr(0, width_of(family_));
  high.resize(width_of(family_), '\0');
  if (!fails(high, why)) return from;  // it is the last key before the damage
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
  return high;
}

bool AroundDamage::fails(const std::string& key, const std::string& why) {
  at_->Seek(key);
  return !at_->Valid() && at_->status().IsCorruption() && at_->status().ToString() == why;
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

}  // namespace carillon::queue
