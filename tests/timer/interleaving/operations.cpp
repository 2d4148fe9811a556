// Loads, stores and swaps in the memory model: which values a thread may read, and what it learns
// from them.
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

// The running thread reads the store with this index, and learns what that tells.
void learn_of(AtomicLocation& atomic, int location, std::size_t index, std::memory_order order) {
  if (!search->exploring()) return;
  Knowledge& knows = search->self().knows;
  std::uint8_t& known = knows.stores[static_cast<std::size_t>(location)];
  known = std::max(known, static_cast<std::uint8_t>(index));
  search->self().read_last = static_cast<std::size_t>(location);
  search->self().read_store = index;
  if (acquires(order)) knows.learn(atomic.stores[index].released);
  if (order == std::memory_order_seq_cst)
    atomic.seq_cst = std::max(atomic.seq_cst, static_cast<std::uint8_t>(index));
}

void append(AtomicLocation& atomic, int location, std::uint64_t value, std::memory_order order,
            bool modifies) {
  if (atomic.count == kMostStores) search->end_with("more stores than the explorer has room for");
  const std::size_t index = atomic.count++;
  Store& store = atomic.stores[index];
  store.value = value;
  store.released = Knowledge{};
  // A read-modify-write continues the release sequence.
  if (modifies) store.released = atomic.stores[index - 1].released;
  learn_of(atomic, location, index,
           order == std::memory_order_seq_cst ? order : std::memory_order_relaxed);
  if (!search->exploring() || !releases(order)) return;
  Knowledge& knows = search->self().knows;
  store.released.learn(knows);
  ++knows.clock[search->self_index()];
}

// Returns the index of the oldest store that a load may return.
std::size_t oldest_readable(const AtomicLocation& atomic, int location, std::memory_order order) {
  std::size_t first = search->self().knows.stores[static_cast<std::size_t>(location)];
  if (order == std::memory_order_seq_cst) first = std::max<std::size_t>(first, atomic.seq_cst);
  return first;
}

}  // namespace

int new_atomic(std::uint64_t value) {
  return search->add_atomic(value);
}

std::uint64_t load(int location, std::memory_order order) {
  search->step();
  AtomicLocation& atomic = search->atomic(location);
  std::size_t index = atomic.last();
  // The latest store is tried first.
  if (search->exploring()) {
    index -= search->choose(index - oldest_readable(atomic, location, order) + 1);
  }
  learn_of(atomic, location, index, order);
  const std::uint64_t value = atomic.stores[index].value;
  search->observed("load", location, value);
  return value;
}

void store(int location, std::uint64_t value, std::memory_order order) {
  search->step();
  append(search->atomic(location), location, value, order, false);
  search->observed("store", location, value);
}

std::uint64_t modify(int location, Change change, std::uint64_t operand, std::memory_order order) {
  search->step();
  AtomicLocation& atomic = search->atomic(location);
  learn_of(atomic, location, atomic.last(), order);
  const std::uint64_t old = atomic.stores[atomic.last()].value;
  const std::uint64_t value = change == Change::kSet  ? operand
                              : change == Change::kOr ? old | operand
                                                      : old + operand;
  append(atomic, location, value, order, true);
  search->observed("modified; it was", location, old);
  return old;
}

bool compare_exchange(int location, std::uint64_t& expected, std::uint64_t desired,
                      std::memory_order success, std::memory_order failure) {
  search->step();
  AtomicLocation& atomic = search->atomic(location);
  // It succeeds only if the latest value is the expected one. It may fail on any other value that a
  // load may return.
  std::array<std::size_t, kMostStores> outcomes{};
  std::size_t count = 0;
  outcomes[count++] = atomic.last();
  if (search->exploring()) {
    for (std::size_t index = atomic.last(); index-- > oldest_readable(atomic, location, failure);) {
      if (atomic.stores[index].value != expected) outcomes[count++] = index;
    }
  }
  const std::size_t index = outcomes[search->exploring() ? search->choose(count) : 0];
  const std::uint64_t value = atomic.stores[index].value;
  if (value != expected) {
    learn_of(atomic, location, index, failure);
    search->observed("not swapped:", location, value);
    expected = value;
    return false;
  }
  learn_of(atomic, location, index, success);
  append(atomic, location, desired, success, true);
  search->observed("swapped for", location, desired);
  return true;
}

void wait(int location, std::uint64_t old, std::memory_order order) {
  for (;;) {
    search->step();
    AtomicLocation& atomic = search->atomic(location);
    learn_of(atomic, location, atomic.last(), order);
    const std::uint64_t value = atomic.stores[atomic.last()].value;
    search->observed("wait finds", location, value);
    if (value != old) return;
    search->self().waits_at = location;
    search->suspend(Status::kWaiting);
  }
}

void notify_all(int location) {
  search->step();
  search->observed("notify", location, 0);
  search->notify(location);
}

void yield() {
  if (search->exploring()) search->yield();
}

int new_plain(std::uint64_t value) {
  return search->add_plain(value);
}

void plain_read(int location) {
  if (!search->exploring()) return;
  PlainLocation& plain = search->plain(location);
  const Knowledge& knows = search->self().knows;
  if (plain.writer != kMain && plain.written > knows.clock[static_cast<std::size_t>(plain.writer)])
    search->end_with("data race: thread " + std::to_string(search->self_index()) +
                     " reads plain #" + std::to_string(location) + ", which thread " +
                     std::to_string(plain.writer) + " has written");
  plain.read[search->self_index()] = knows.clock[search->self_index()];
  search->observed("reads plain", location, plain.value);
}

void plain_write(int location, std::uint64_t value) {
  PlainLocation& plain = search->plain(location);
  plain.value = value;
  if (!search->exploring()) return;
  const Knowledge& knows = search->self().knows;
  bool race =
      plain.writer != kMain && plain.written > knows.clock[static_cast<std::size_t>(plain.writer)];
  for (std::size_t i = 0; i < plain.read.size(); ++i) race = race || plain.read[i] > knows.clock[i];
  if (race)
    search->end_with("data race: thread " + std::to_string(search->self_index()) +
                     " writes plain #" + std::to_string(location) +
                     ", which another has read or written");
  plain.writer = static_cast<int>(search->self_index());
  plain.written = knows.clock[search->self_index()];
  plain.read = {};
  search->observed("writes plain", location, value);
}

}  // namespace carillon::interleaving::detail
