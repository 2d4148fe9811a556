// A value that differs from T() in few records. It takes 8 bytes while it equals T().
//
//   Rare<std::string> note;                  // no allocation
//   note->size() == 0;
//   note = Rare<std::string>("call back");
//
// Thread safety: a plain value.
#pragma once

#include <memory>
#include <utility>

namespace carillon::queue::detail {

template <typename T>
class Rare {
 public:
  Rare() = default;
  explicit Rare(T value)
      : value_(value == T() ? nullptr : std::make_unique<const T>(std::move(value))) {}
  Rare(const Rare& other)
      : value_(other.value_ ? std::make_unique<const T>(*other.value_) : nullptr) {}
  Rare(Rare&&) noexcept = default;
  Rare& operator=(Rare other) noexcept {
    value_ = std::move(other.value_);
    return *this;
  }
  ~Rare() = default;

  // Returns true if the value does not equal T().
  explicit operator bool() const { return value_ != nullptr; }
  const T& operator*() const {
    static const T new_one{};
    return value_ ? *value_ : new_one;
  }
  const T* operator->() const { return &**this; }

  friend bool operator==(const Rare& a, const Rare& b) { return *a == *b; }

 private:
  std::unique_ptr<const T> value_;
};

}  // namespace carillon::queue::detail
