// What the log means, and the numbers that stand for what was seen.
#include <cstdint>
#include <tuple>
#include <type_traits>

#include "cluster/world.h"

namespace carillon::cluster::explorer {
namespace {

std::uint64_t mixed(std::uint64_t seed, std::uint64_t value) {
  std::uint64_t x = (seed ^ value) * 0x9e3779b97f4a7c15U;
  x ^= x >> 32;
  return x * 0xd6e8feb86659fd93U ^ x >> 29;
}

std::uint64_t hashed(std::uint64_t seed, const Chain& chain) {
  return mixed(seed, chain[0]);
}

template <class T>
requires std::is_integral_v<T> || std::is_enum_v<T> std::uint64_t hashed(std::uint64_t seed,
                                                                         T value) {
  return mixed(seed, static_cast<std::uint64_t>(value));
}

template <class... Fields>
std::uint64_t hash_of(const Fields&... fields) {
  std::uint64_t seed = 1;
  ((seed = hashed(seed, fields)), ...);
  return seed;
}

std::uint64_t hash(const Role& role) {
  return std::apply([](const auto&... fields) { return hash_of(fields...); }, role.fields());
}
std::uint64_t hash(const Mark& mark) {
  return hash_of(mark.epoch, mark.owner.high, mark.owner.low, mark.epoch_began, mark.next,
                 mark.chain, mark.position);
}
std::uint64_t hash(const Sent& sent) {
  const Entry& entry = sent.entry;
  return hash_of(entry.kind, entry.epoch, entry.owner.high, entry.owner.low, entry.first,
                 entry.before, sent.commands, sent.result);
}

}  // namespace

template <class T>
std::size_t Table<T>::index(const T& value) {
  const std::uint64_t key = hash(value);
  const auto [begin, end] = found_.equal_range(key);
  for (auto it = begin; it != end; ++it) {
    if (values_[it->second] == value) return it->second;
  }
  values_.push_back(value);
  found_.emplace(key, values_.size() - 1);
  return values_.size() - 1;
}
template class Table<Role>;
template class Table<Mark>;
template class Table<Sent>;

Chain chain_after(const Chain& before, const Sent& sent) {
  return {hash_of(before, hash(sent))};
}

History history(const Model& model, const World& world) {
  History it;
  for (std::size_t i = 0; i < world.entries; ++i) {
    const Sent& sent = model.sent[world.log[i]];
    const Entry& entry = sent.entry;
    it.stored_chain = chain_after(it.stored_chain, sent);
    if (is_claim(sent)) {
      it.claimed = entry.epoch;
      it.claimant = entry.owner;
    } else {
      it.stored_next = entry.first + 1;
    }
    const Epoch current = it.epoch + (is_claim(sent) ? 1 : 0);
    if (it.broken || entry.epoch < current) continue;
    if (!is_claim(sent) && entry.epoch == current && entry.first < it.next) continue;
    it.broken = entry.epoch > current || entry.first > it.next ||
                (entry.first == it.next && entry.before != it.chain) ||
                (!is_claim(sent) && entry.owner != it.owner);
    if (it.broken) continue;
    it.accepted |= 1U << i;
    it.chain = chain_after(it.chain, sent);
    if (is_claim(sent)) {
      it.epoch = entry.epoch;
      it.owner = entry.owner;
    } else {
      it.next = entry.first + 1;
      it.commands |= sent.commands;
    }
  }
  return it;
}

}  // namespace carillon::cluster::explorer
