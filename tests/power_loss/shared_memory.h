// One object that two processes share: in a file that both have mapped.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace carillon::queue {

template <class Value>
class SharedMemory {
 public:
  // The first process makes the file, and then the object with `emplace`.
  explicit SharedMemory(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const bool sized = file >= 0 && ::ftruncate(file, sizeof(Value)) == 0;
    void* const mapped =
        sized ? ::mmap(nullptr, sizeof(Value), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
              : MAP_FAILED;
    if (file >= 0) ::close(file);
    if (mapped == MAP_FAILED) throw std::runtime_error("cannot share " + path);
    value_ = static_cast<Value*>(mapped);
  }
  ~SharedMemory() { ::munmap(value_, sizeof(Value)); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void emplace() { ::new (value_) Value(); }
  Value& operator*() { return *value_; }
  Value* operator->() { return value_; }

 private:
  Value* value_;
};

}  // namespace carillon::queue
