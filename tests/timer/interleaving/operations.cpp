// What loads, stores and swaps do in the model: which values may be read, and what is learned from
// them.
#include <algorithm>
#include <array>
#include <string>

#include "timer/interleaving/search.h"

namespace carillon::interleaving::detail {
namespace {

bool acquires(std::memory_order order) {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}
bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}

// What reading this store, the `index`th, tells the thread.
void learn_of(AtomicPlace& atomic, int place, std::size_t index, std::memory_order order) {
  if (!search->exploring()) return;
  Knowledge& knows = search->self().knows;
  std::uint8_t& known = knows.stores[static_cast<std::size_t>(place)];
  known = std::max(known, static_cast<std::uint8_t>(index));
  search->self().read_last = static_cast<std::size_t>(place);
  search->self().read_store = index;
  if (acquires(order)) knows.learn(atomic.stores[index].released);
  if (order == std::memory_order_seq_cst)
    atomic.seq_cst = std::max(atomic.seq_cst, static_cast<std::uint8_t>(index));
}

void append(AtomicPlace& atomic, int place, std::uint64_t value, std::memory_order order,
            bool modifies) {
  if (atomic.count == kMostStores) search->end_with("more stores than the explorer has room for");
  const std::size_t index = atomic.count++;
  Store& store = atomic.stores[index];
  store.value = value;
  store.released = Knowledge{};
  if (modifies)
    store.released = atomic.stores[index - 1].released;  // it continues the release sequence
  learn_of(atomic, place, index,
           order == std::memory_order_seq_cst ? order : std::memory_order_relaxed);
  if (!search->exploring() || !releases(order)) return;
  Knowledge& knows = search->self().knows;
  store.released.learn(knows);
  ++knows.clock[search->self_index()];
}

// Which store a load returns. The latest one is tried first.
std::size_t readable(const AtomicPlace& atomic, int place, std::memory_order order) {
  std::size_t first = search->self().knows.stores[static_cast<std::size_t>(place)];
  if (order == std::memory_order_seq_cst) first = std::max<std::size_t>(first, atomic.seq_cst);
  return first;
}

}  // namespace

int new_atomic(std::uint64_t value) {
  return search->add_atomic(value);
}

std::uint64_t load(int place, std::memory_order order) {
  search->step();
  AtomicPlace& atomic = search->atomic(place);
  std::size_t index = atomic.last();
  if (search->exploring()) index -= search->choose(index - readable(atomic, place, order) + 1);
  learn_of(atomic, place, index, order);
  const std::uint64_t value = atomic.stores[index].value;
  search->observed("load", place, value);
  return value;
}

void store(int place, std::uint64_t value, std::memory_order order) {
  search->step();
  append(search->atomic(place), place, value, order, false);
  search->observed("store", place, value);
}

std::uint64_t modify(int place, Change change, std::uint64_t operand, std::memory_order order) {
  search->step();
  AtomicPlace& atomic = search->atomic(place);
  learn_of(atomic, place, atomic.last(), order);
  const std::uint64_t old = atomic.stores[atomic.last()].value;
  const std::uint64_t value = change == Change::kSet  ? operand
                              : change == Change::kOr ? old | operand
                                                      : old + operand;
  append(atomic, place, value, order, true);
  search->observed("was, before it was modified,", place, old);
  return old;
}

bool compare_exchange(int place, std::uint64_t& expected, std::uint64_t desired,
                      std::memory_order success, std::memory_order failure) {
  search->step();
  AtomicPlace& atomic = search->atomic(place);
  // It succeeds on the latest value only, and fails as a load does: on any other that may still be
  // read.
  std::array<std::size_t, kMostStores> outcomes{};
  std::size_t count = 0;
  outcomes[count++] = atomic.last();
  if (search->exploring()) {
    for (std::size_t index = atomic.last(); index-- > readable(atomic, place, failure);) {
      if (atomic.stores[index].value != expected) outcomes[count++] = index;
    }
  }
  const std::size_t index = outcomes[search->exploring() ? search->choose(count) : 0];
  const std::uint64_t value = atomic.stores[index].value;
  if (value != expected) {
    learn_of(atomic, place, index, failure);
    search->observed("not swapped:", place, value);
    expected = value;
    return false;
  }
  learn_of(atomic, place, index, success);
  append(atomic, place, desired, success, true);
  search->observed("swapped for", place, desired);
  return true;
}

void wait(int place, std::uint64_t old, std::memory_order order) {
  for (;;) {
    search->step();
    AtomicPlace& atomic = search->atomic(place);
    learn_of(atomic, place, atomic.last(), order);
    const std::uint64_t value = atomic.stores[atomic.last()].value;
    search->observed("wait finds", place, value);
    if (value != old) return;
    search->self().waits_at = place;
    search->suspend(Status::kWaiting);
  }
}

void notify_all(int place) {
  search->step();
  search->observed("notify", place, 0);
  search->notify(place);
}

void yield() {
  if (search->exploring()) search->yield();
}

int new_plain(std::uint64_t value) {
  return search->add_plain(value);
}

void plain_read(int place) {
  if (!search->exploring()) return;
  PlainPlace& plain = search->plain(place);
  const Knowledge& knows = search->self().knows;
  if (plain.writer != kMain && plain.written > knows.clock[static_cast<std::size_t>(plain.writer)])
    search->end_with("data race: thread " + std::to_string(search->self_index()) +
                     " reads plain #" + std::to_string(place) + ", which thread " +
                     std::to_string(plain.writer) + " has written");
  plain.read[search->self_index()] = knows.clock[search->self_index()];
  search->observed("reads plain", place, plain.value);
}

void plain_write(int place, std::uint64_t value) {
  PlainPlace& plain = search->plain(place);
  plain.value = value;
  if (!search->exploring()) return;
  const Knowledge& knows = search->self().knows;
  bool race =
      plain.writer != kMain && plain.written > knows.clock[static_cast<std::size_t>(plain.writer)];
  for (std::size_t i = 0; i < plain.read.size(); ++i) race = race || plain.read[i] > knows.clock[i];
  if (race)
    search->end_with("data race: thread " + std::to_string(search->self_index()) +
                     " writes plain #" + std::to_string(place) +
                     ", which another has read or written");
  plain.writer = static_cast<int>(search->self_index());
  plain.written = knows.clock[search->self_index()];
  plain.read = {};
  search->observed("writes plain", place, value);
}

}  // namespace carillon::interleaving::detail
