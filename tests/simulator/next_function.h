// Finds the C library's own function that a function of this program replaces.
//
//   int close(int fd) {
//     if (is_ours(fd)) return ...;
//     return next<"close">(::close)(fd);
//   }
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>

namespace carillon::simulator {

template <std::size_t size>
struct FunctionName {
  constexpr FunctionName(const char (&text)[size]) { std::copy_n(text, size, bytes); }  // NOLINT
  char bytes[size] = {};
};

// REQUIRES: such a function is there. The argument gives the type alone.
template <FunctionName name, typename Function>
Function* next(Function* /*replaced*/) {
  static auto* const found = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name.bytes));
  return found;
}

// The same for the functions of conditions, of which the C library has older versions, too.
template <FunctionName name, typename Function>
Function* next_for_condition(Function* /*replaced*/) {
  static auto* const found =
      reinterpret_cast<Function*>(::dlvsym(RTLD_NEXT, name.bytes, "GLIBC_2.3.2"));
  return found;
}

}  // namespace carillon::simulator
