// Reads of files that bring a wrong bit, as from a faulty memory, cable or page cache: the file
// itself stays right.
//
//   FlippedReads flips(3, 1);            // the fourth read of a file, and no other
//   ...
//   if (flips.left() == 0) ...           // it came so far
//
// Counted are pread() and preadv2() of this process. Not under a sanitizer, which replaces them
// itself: can_flip() tells.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace carillon::queue {

class FlippedReads {
 public:
  // The reads after the first `skip` ones, `count` of them, bring a wrong bit. Only files count
  // whose names end with `ending`. `bit` is counted from the first byte that was read, modulo the
  // size of the read; without it, it is one in the middle. REQUIRES: no other one lives.
  FlippedReads(int skip, int count, const std::string& ending = "",
               std::optional<std::uint64_t> bit = {});
  ~FlippedReads();
  FlippedReads(const FlippedReads&) = delete;
  FlippedReads& operator=(const FlippedReads&) = delete;

  static bool can_flip();
  // How many reads are still to be flipped.
  int left() const;
};

}  // namespace carillon::queue
