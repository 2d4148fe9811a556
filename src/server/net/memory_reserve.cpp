// MemoryReserve (memory_reserve.h).
#include "server/net/memory_reserve.h"

#include <sys/mman.h>

#include <atomic>
#include <new>

namespace carillon::server {
namespace {

std::atomic<void*> reserve = nullptr;

// Maps pages of its own, so that giving up the reserve returns them to the system, where any
// allocator can get them.
void* map_reserve() {
  void* const pages = ::mmap(nullptr, MemoryReserve::kBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

void give_up() {
  void* const pages = reserve.exchange(nullptr);
  if (pages == nullptr) throw std::bad_alloc();
  ::munmap(pages, MemoryReserve::kBytes);
}

}  // namespace

MemoryReserve::MemoryReserve() {
  reserve = map_reserve();
  std::set_new_handler(give_up);
}

MemoryReserve::~MemoryReserve() {
  std::set_new_handler(nullptr);
  if (void* const pages = reserve.exchange(nullptr)) ::munmap(pages, kBytes);
}

bool MemoryReserve::is_used() const {
  return reserve.load(std::memory_order_relaxed) == nullptr;
}

void MemoryReserve::renew() {
  if (is_used()) reserve = map_reserve();
}

}  // namespace carillon::server
