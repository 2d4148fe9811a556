// WheelPages: the size of the memory pages in which a wheel keeps its slots, and a TimerPool its
// timers.
#pragma once

namespace carillon {

// A cancel, or a re-arm, touches memory at random. With millions of timers that costs a cache miss
// and, unless pages are large, a walk through the page table as well. kHuge takes memory in pieces
// of 2 MiB and asks Linux (madvise) for one page for each. Linux gives such pages if
// /sys/kernel/mm/transparent_hugepage/enabled says "madvise" or "always". Otherwise, and on other
// systems, pages are ordinary.
//
// Choose kHuge for 100 000 timers and more. It is not the default: a wheel with ten timers would
// take 2 MiB and keep them, and the system may need long to find such a page.
enum class WheelPages { kDefault, kHuge };

}  // namespace carillon
