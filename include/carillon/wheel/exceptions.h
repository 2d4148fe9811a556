// CARILLON_THROW and CARILLON_TRY: with them, the headers of the wheels and of the idle tracker
// also compile with -fno-exceptions. What would throw then prints its sentence to standard error
// and ends the program. Compile all files of a program with that flag, or none: the linker keeps
// one of the two versions of an inline function, and the other files then call that one.
//
//   CARILLON_TRY {
//     ...
//   }
//   CARILLON_CATCH_ALL {
//     ...
//     CARILLON_RETHROW;
//   }
//   CARILLON_THROW std::invalid_argument("carillon: ...");
#pragma once

#if defined(__cpp_exceptions)
#define CARILLON_TRY try
#define CARILLON_CATCH_ALL catch (...)
#define CARILLON_RETHROW throw
#define CARILLON_THROW throw
#else
#include <cstdio>
#include <cstdlib>

namespace carillon::detail {
struct Ending {
  template <class Exception>
  [[noreturn]] friend void operator<<(Ending, const Exception& error) {
    std::fputs(error.what(), stderr);
    std::fputc('\n', stderr);
    std::abort();
  }
};
}  // namespace carillon::detail

#define CARILLON_TRY if constexpr (true)
#define CARILLON_CATCH_ALL else
#define CARILLON_RETHROW static_cast<void>(0)
#define CARILLON_THROW ::carillon::detail::Ending() <<
#endif
