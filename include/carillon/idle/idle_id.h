// IdleId: names one connection of an IdleTracker (idle_tracker.h), also after the connection is
// gone.
//
// An id is a small value. Copy it into the connection's own data, or pass it to another thread:
//
//   IdleId id = tracker.add(socket);
//   tracker.remove(id);                          // the connection ended
//   IdleId other = tracker.add(other_socket);    // may get the same index, with a new generation
//   tracker.touch(id);                           // does nothing: the generation has changed
//   tracker.remove(id);                          // returns false
//
// `index` says where the tracker keeps the connection. When a connection ends, its index is used
// again for another one. `generation` tells the two apart: it is 1 for the first connection at an
// index, 3 for the second, and so on, and even while the index is free. An id is therefore valid
// only while its generation is that of the index. After 8 million connections, when the generations
// of 24 bits are used up, the tracker never uses the index again, so no id is ever given twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace carillon {

// IdleId{} names no connection.
struct IdleId {
  std::uint32_t index = 0;
  // Odd: twice the number of connections that have had this index, minus one.
  std::uint32_t generation = 0;

  friend bool operator==(const IdleId&, const IdleId&) = default;
};

}  // namespace carillon

template <>
struct std::hash<carillon::IdleId> {
  std::size_t operator()(carillon::IdleId id) const noexcept {
    return std::hash<std::uint64_t>()(std::uint64_t{id.generation} << 32 | id.index);
  }
};
