// A small number for each thread, by which it finds its shard.
#pragma once

#include <cstddef>

namespace carillon::detail {

// The same for the life of the thread, and the lowest that no other living thread has. (Not the
// number of the processor: threads move, and sit on half of the processors for long.)
std::size_t home_of_this_thread() noexcept;

}  // namespace carillon::detail
