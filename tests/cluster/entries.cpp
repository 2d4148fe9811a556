#include "cluster/entries.h"

namespace carillon::cluster {

Chain chain_after(const Chain& before, const Entry& entry, std::uint64_t content) {
  std::uint64_t hash = before[0];
  for (const std::uint64_t part :
       {static_cast<std::uint64_t>(entry.kind), entry.epoch, entry.owner.high, entry.owner.low,
        entry.first, entry.before[0], content}) {
    hash = mixed(hash, part);
  }
  return {hash};
}

Entry found_at(Position position, const Chain& chain, const Entry& sent, std::uint64_t content) {
  Entry entry = sent;
  entry.position = position;
  entry.end = entry.first + (is_claim(entry) ? 0 : 1);
  entry.after = chain_after(chain, entry, content);
  return entry;
}

std::string name_of(Writes writes) {
  return writes == Writes::kConditional ? "Conditional" : "Unconditional";
}

}  // namespace carillon::cluster
