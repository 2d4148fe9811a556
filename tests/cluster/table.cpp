#include "cluster/table.h"

#include <tuple>
#include <type_traits>

#include "cluster/entries.h"
#include "cluster/world.h"

namespace carillon::cluster::explorer {
namespace {

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

}  // namespace carillon::cluster::explorer
