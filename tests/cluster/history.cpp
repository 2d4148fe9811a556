#include "cluster/history.h"

#include "cluster/entries.h"

namespace carillon::cluster::explorer {

void Reading::add(const Sent& sent) {
  chain = chain_after(chain, sent.entry, sent.content());
  if (is_claim(sent.entry)) {
    epoch = sent.entry.epoch;
    owner = sent.entry.owner;
  } else {
    next = sent.entry.first + 1;
  }
}

History history(const Model& model, const World& world) {
  History it;
  Reading& now = it.counting;
  for (std::size_t i = 0; i < world.entries; ++i) {
    const Sent& sent = model.sent[world.log[i]];
    const Entry& entry = sent.entry;
    const bool claims = is_claim(entry);
    it.stored.add(sent);
    const Epoch current = now.epoch + (claims ? 1 : 0);
    if (it.broken || entry.epoch < current) continue;
    if (!claims && entry.epoch == current && entry.first < now.next) continue;
    it.broken = entry.epoch > current || entry.first > now.next ||
                (entry.first == now.next && entry.before != now.chain) ||
                (!claims && entry.owner != now.owner);
    if (it.broken) continue;
    it.accepted |= 1U << i;
    it.commands |= sent.commands;
    now.add(sent);
  }
  return it;
}

}  // namespace carillon::cluster::explorer
