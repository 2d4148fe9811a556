// HugePages: while one lives, every large allocation of this program lies in pages of 2 MiB.
//
// A timer that is cancelled at random costs a cache miss and, with pages of 4 KiB, often a walk
// through the page table as well. The systems need not know: huge_pages.cpp replaces operator new.
// Linux must be willing: /sys/kernel/mm/transparent_hugepage/enabled says "madvise" or "always".
// Not for two at a time, nor for several threads.
#pragma once

namespace carillon::bench {

class HugePages {
 public:
  HugePages();   // throws std::bad_alloc if there is no room in the address space
  ~HugePages();  // REQUIRES: what was allocated meanwhile is free again. Gives the pages back
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;
};

}  // namespace carillon::bench
