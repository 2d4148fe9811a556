// Counts the memory that connections take from what they may take together: their buffers, the
// bodies that come in, and the replies that a client has not read.
//
//   MemoryPool pool(384 << 20);
//   MemoryPool::Share share(pool);
//   if (pool.has(bytes)) share.set(bytes);       // else: refuse what needs this memory
//
// A share never fails to grow. A caller that can do without the memory asks has() first. So the
// pool may be overdrawn a little, by bytes that are needed to finish what was begun.
//
// Thread safety: none; a pool and its shares belong to one thread.
#pragma once

#include <cstddef>

namespace carillon::server {

class MemoryPool {
 public:
  explicit MemoryPool(std::size_t bytes) : bytes_(bytes) {}
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  std::size_t bytes() const { return bytes_; }
  std::size_t used() const { return used_; }
  std::size_t free() const { return used_ < bytes_ ? bytes_ - used_ : 0; }
  bool has(std::size_t bytes) const { return bytes <= free(); }

  // The bytes that one owner takes from the pool. The destructor gives everything back. A share of
  // 0 bytes may outlive the pool.
  class Share {
   public:
    explicit Share(MemoryPool& pool) : pool_(pool) {}
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    ~Share() {
      if (bytes_ > 0) set(0);
    }

    void set(std::size_t bytes) {
      pool_.used_ += bytes - bytes_;  // modulo 2^64: may fall
      bytes_ = bytes;
    }
    std::size_t bytes() const { return bytes_; }

   private:
    MemoryPool& pool_;
    std::size_t bytes_ = 0;
  };

 private:
  std::size_t bytes_;
  std::size_t used_ = 0;
};

}  // namespace carillon::server
