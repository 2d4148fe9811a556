// CARILLON_REQUIRE: checks what a function requires of its caller, in release builds too. If it
// does not hold, a line says what was required, where, and with which values, and the process ends:
// its state is not what the code believes, and to go on could spoil more.
//
//   // REQUIRES: tokens <= left.
//   void take(std::uint64_t tokens, std::uint64_t left) {
//     CARILLON_REQUIRE(tokens <= left, tokens, left);
//
//   carillon: limiter.h:55: take() requires: tokens <= left; tokens = 3, left = 2
//
// CARILLON_REQUIRE is for conditions that cost a compare or two. CARILLON_REQUIRE_DEBUG is for
// dearer ones, and for those in the hottest loops. It checks unless NDEBUG is defined, as assert()
// does, and also if CARILLON_CHECK_ALL is defined: in debug, sanitizer and simulator builds.
// Neither is for wrong input, which is answered with an error.
//
// A condition has no side effects. Values, if any, are integers, enumerators, booleans, floating
// point numbers, strings, pointers, durations and time points; they are evaluated only if the
// condition does not hold. Both macros work in constexpr and noexcept functions, and without
// exceptions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <type_traits>

namespace carillon::detail {

// A value that is printed: a word, and what stands around it.
class RequiredValue {
 public:
  template <class T>
  // NOLINTNEXTLINE(google-explicit-constructor): the macro passes on what it is given
  RequiredValue(const T& value) noexcept {
    if constexpr (std::is_same_v<T, bool>) {
      value_.text = value ? "true" : "false";
      size_ = value ? 4 : 5;
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      const std::string_view text = value;
      kind_ = Kind::kText;
      value_.text = text.data();
      size_ = text.size();
    } else if constexpr (std::is_pointer_v<T>) {
      kind_ = Kind::kPointer;
      value_.pointer = value;
    } else if constexpr (std::is_floating_point_v<T>) {
      kind_ = Kind::kReal;
      value_.real = static_cast<double>(value);
    } else if constexpr (requires { value.time_since_epoch(); }) {
      *this = RequiredValue(value.time_since_epoch());
    } else if constexpr (requires { typename T::period; }) {
      *this = RequiredValue(value.count());
      unit_ = unit(T::period::num, T::period::den);
    } else if constexpr (std::is_enum_v<T>) {
      *this = RequiredValue(static_cast<std::underlying_type_t<T>>(value));
    } else {  // an integer, or a class that is one, such as Moment
      kind_ = std::is_signed_v<T> ? Kind::kSigned : Kind::kUnsigned;
      value_.number = static_cast<unsigned long long>(value);
    }
  }

  // As snprintf(): writes what there is room for, and returns how many bytes there would be.
  int write(char* to, std::size_t room) const noexcept {
    constexpr std::size_t kMostShown = 80;  // bytes of a text
    const int shown = static_cast<int>(size_ < kMostShown ? size_ : kMostShown);
    switch (kind_) {
      case Kind::kWord:
        return std::snprintf(to, room, "%.*s", shown, value_.text);
      case Kind::kText:
        return std::snprintf(to, room, size_ > kMostShown ? "\"%.*s...\" of %zu bytes" : "\"%.*s\"",
                             shown, value_.text, size_);
      case Kind::kPointer:
        return std::snprintf(to, room, "%p", value_.pointer);
      case Kind::kReal:
        return std::snprintf(to, room, "%.17g%s", value_.real, unit_);
      case Kind::kSigned:
        return std::snprintf(to, room, "%lld%s", static_cast<long long>(value_.number), unit_);
      default:
        return std::snprintf(to, room, "%llu%s", value_.number, unit_);
    }
  }

 private:
  enum class Kind : unsigned char { kWord, kText, kPointer, kReal, kSigned, kUnsigned };

  static constexpr const char* unit(std::intmax_t num, std::intmax_t den) noexcept {
    if (num == 1 && den == 1'000'000'000) return " ns";
    if (num == 1 && den == 1'000'000) return " us";
    if (num == 1 && den == 1'000) return " ms";
    return num == 1 && den == 1 ? " s" : "";
  }

  Kind kind_ = Kind::kWord;
  union {
    const char* text = nullptr;
    const void* pointer;
    double real;
    unsigned long long number;
  } value_;
  std::size_t size_ = 0;  // bytes of value_.text
  const char* unit_ = "";
};

// The line that says what was required, in a buffer of its own: memory may be exhausted.
class RequirementLine {
 public:
  template <class... Arguments>
  void add(const char* format, Arguments... arguments) noexcept {
    count(std::snprintf(text_ + used_, sizeof text_ - used_, format, arguments...));
  }
  void add(const RequiredValue& value) noexcept {
    count(value.write(text_ + used_, sizeof text_ - used_));
  }

  // In one piece, because other threads write too, and on one line, whatever a text holds.
  void print() noexcept {
    for (std::size_t i = 0; i < used_; ++i) {
      if (static_cast<unsigned char>(text_[i]) < ' ') text_[i] = '?';
    }
    text_[used_++] = '\n';
    std::fwrite(text_, 1, used_, stderr);
  }

 private:
  // snprintf() returns more than it has written if there was no room.
  void count(int written) noexcept {
    const std::size_t left = sizeof text_ - 1 - used_;
    const auto wanted = static_cast<std::size_t>(written < 0 ? 0 : written);
    used_ += wanted < left ? wanted : left;
  }

  char text_[2'048];
  std::size_t used_ = 0;
};

// Returns where the first of the expressions in `names` ends: at a comma outside of brackets.
inline std::size_t end_of_name(std::string_view names) noexcept {
  int depth = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const char c = names[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (c == ',' && depth == 0) return i;
  }
  return names.size();
}

// `names`: the expressions of the values, separated by commas.
[[noreturn, gnu::cold, gnu::noinline]] inline void requirement_failed(
    const char* condition, const char* file, int line, const char* function, std::string_view names,
    std::initializer_list<RequiredValue> values) noexcept {
  RequirementLine text;
  text.add("carillon: %s:%d: %s() requires: %s", file, line, function, condition);
  const char* before = "; ";
  for (const RequiredValue& value : values) {
    const std::size_t end = end_of_name(names);
    text.add("%s%.*s = ", before, static_cast<int>(end), names.data());
    text.add(value);
    names.remove_prefix(end < names.size() ? end + 1 : end);
    while (!names.empty() && names.front() == ' ') names.remove_prefix(1);
    before = ", ";
  }
  text.print();
  std::abort();
}

}  // namespace carillon::detail

#define CARILLON_REQUIRE(condition, ...)                                                          \
  (static_cast<bool>(condition)                                                                   \
       ? static_cast<void>(0)                                                                     \
       : ::carillon::detail::requirement_failed(#condition, __FILE__, __LINE__,                   \
                                                static_cast<const char*>(__func__), #__VA_ARGS__, \
                                                {__VA_ARGS__}))

#if !defined(NDEBUG) || defined(CARILLON_CHECK_ALL)
#define CARILLON_REQUIRE_DEBUG(...) CARILLON_REQUIRE(__VA_ARGS__)
#else
// Compiled, but not evaluated.
#define CARILLON_REQUIRE_DEBUG(condition, ...) \
  static_cast<void>(sizeof(static_cast<bool>(condition)))
#endif
