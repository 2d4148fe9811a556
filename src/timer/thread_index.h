// A small number for each thread, which chooses the thread's shard.
#pragma once

#include <cstddef>

namespace carillon::detail {

// Returns the calling thread's index: the lowest number that no other living thread had when this
// thread first asked. It stays the same for the life of the thread. (The number of the processor
// would not do: threads move, and the scheduler often keeps several on one processor for long.)
std::size_t index_of_this_thread() noexcept;

}  // namespace carillon::detail
