// HugePages: while one lives, every large allocation of this program lies in pages of 2 MiB.
//
// A cancel of a random timer costs a cache miss and, with pages of 4 KiB, often a walk through the
// page table as well. The systems need not know of the pages: huge_pages.cpp replaces operator new.
// It needs "madvise" or "always" in /sys/kernel/mm/transparent_hugepage/enabled. At most one
// HugePages may live at a time, and in one thread only.
#pragma once

namespace carillon::bench {

class HugePages {
 public:
  // Throws std::bad_alloc if there is no room in the address space.
  HugePages();
  // Gives the pages back. REQUIRES: all that was allocated meanwhile is free again.
  ~HugePages();
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;
};

}  // namespace carillon::bench
