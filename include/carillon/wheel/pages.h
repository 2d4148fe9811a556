// Pages: in what pages of memory a wheel's slots, and a pool's timers, lie.
#pragma once

namespace carillon {

// A cancel, or a re-arm, touches memory at random. With millions of timers that costs, beside a
// cache miss, a walk through the page table, unless pages are large. kHuge takes memory by 2 MiB
// and asks Linux for one page for each (madvise), which it gives if
// /sys/kernel/mm/transparent_hugepage/enabled says "madvise" or "always"; otherwise, and elsewhere,
// pages are ordinary. For 100 000 timers and more: one page is kept once it is taken.
// docs/decisions.md has what it brings.
enum class Pages { kDefault, kHuge };

}  // namespace carillon
