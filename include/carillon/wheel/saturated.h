// saturated(): converts durations and times of std::chrono without overflow. Saturating: a
// parameter that does so.
//
//   using std::chrono::nanoseconds, std::chrono::hours;
//   nanoseconds wrong = hours::max();                                    // overflows: -3600 s
//   nanoseconds right = carillon::saturated<nanoseconds>(hours::max());  // 292 years
//
// Why: whoever writes hours::max() means "never". The conversions of std::chrono multiply, and the
// product may be any number, also a negative one: a timer for the end of time would fire at once.
//
// Contracts
//  - A value beyond the range of the target becomes the end of the range: the largest number, or
//    the same with a minus. A floating point value that is not a number becomes the largest.
//  - A value between two units of the target is rounded up, so that no timer is early.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>
#include <utility>

namespace carillon {

// REQUIRES of To: it counts in integers.
template <class To, class Rep, class Period>
requires(std::integral<typename To::rep>&& std::same_as<
         To, std::chrono::duration<typename To::rep, typename To::period>>) constexpr To
    saturated(std::chrono::duration<Rep, Period> from) noexcept {
  using Count = typename To::rep;
  using Units = std::ratio_divide<Period, typename To::period>;  // one of `from` in To
  constexpr bool kFits = std::cmp_less(std::numeric_limits<Count>::max(), INTMAX_MAX);
  constexpr std::intmax_t kMost = kFits ? std::numeric_limits<Count>::max() : INTMAX_MAX;
  constexpr std::intmax_t kLeast = std::is_signed_v<Count> ? -kMost : 0;
  constexpr To kLast(static_cast<Count>(kMost));
  constexpr To kFirst(static_cast<Count>(kLeast));
  if constexpr (std::is_same_v<To, std::chrono::duration<Rep, Period>>) {
    return from;
  } else if constexpr (std::is_integral_v<Rep>) {
    using Wide = std::common_type_t<Rep, std::intmax_t>;
    // The units in whole multiples of Units::den, and the rest, which is less than that.
    const Wide whole = static_cast<Wide>(from.count()) / Wide{Units::den};
    const auto rest =
        static_cast<std::intmax_t>(static_cast<Wide>(from.count()) % Wide{Units::den});
    const std::intmax_t more =
        rest <= 0 ? rest * Units::num / Units::den : (rest * Units::num - 1) / Units::den + 1;
    if (more > kMost || std::cmp_greater(whole, (kMost - (more > 0 ? more : 0)) / Units::num))
      return kLast;
    if (more < kLeast || std::cmp_less(whole, (kLeast - (more < 0 ? more : 0)) / Units::num))
      return kFirst;
    return To(static_cast<Count>(static_cast<std::intmax_t>(whole) * Units::num + more));
  } else {
    const std::chrono::duration<long double, typename To::period> exact = from;
    if (!(exact.count() < static_cast<long double>(kMost))) return kLast;
    if (exact.count() < static_cast<long double>(kLeast)) return kFirst;
    return std::chrono::ceil<To>(exact);
  }
}

// To: a time point of the same clock.
template <class To, class Duration>
constexpr To saturated(std::chrono::time_point<typename To::clock, Duration> from) noexcept {
  return To(saturated<typename To::duration>(from.time_since_epoch()));
}

// time + delay, at most the end of the range.
template <class Time>
constexpr Time saturated_sum(Time time, typename Time::duration delay) noexcept {
  using Duration = typename Time::duration;
  const Duration since = time.time_since_epoch();
  if (delay > Duration::zero() && since > Duration::max() - delay) return Time(Duration::max());
  if (delay < Duration::zero() && since < -Duration::max() - delay) return Time(-Duration::max());
  return time + delay;
}

// A parameter or a field of type To, a duration or a time point, which takes any value for which
// saturated<To>() can be called, or that converts to To. It is a To, also for templates.
template <class To>
class Saturating : public To {
 public:
  constexpr Saturating() noexcept : To{} {}
  template <class From>
  requires requires(const From& from) { saturated<To>(from); }
  // NOLINTNEXTLINE(google-explicit-constructor): as std::chrono's
  constexpr Saturating(const From& from) noexcept : To(saturated<To>(from)) {}
  template <class From>
  requires(!requires(const From& from) { saturated<To>(from); } &&
           std::convertible_to<const From&, To>)
      // NOLINTNEXTLINE(google-explicit-constructor)
      constexpr Saturating(const From& from)
      : To(static_cast<To>(from)) {}

  constexpr To value() const noexcept { return *this; }
};

}  // namespace carillon
