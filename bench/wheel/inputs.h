// Inputs: the delays and orders that all systems get for one N, the same for each.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace carillon::bench {

// One generator, std::mt19937_64 with seed 42, makes the delays, then the wide delays, then the
// random order.
struct Inputs {
  static constexpr std::uint32_t kLongest = 60'000;  // ticks
  static constexpr double kWidest = 2.6e9;           // ticks: 30 days of milliseconds

  std::vector<std::uint32_t> delays;        // 1 .. 60 000, uniform: 1 + x % 60000
  std::vector<std::uint32_t> wide_delays;   // 1 .. 2.6e9, log-uniform
  std::vector<std::uint32_t> random_order;  // a permutation

  explicit Inputs(std::size_t n) : delays(n), wide_delays(n), random_order(n) {
    std::mt19937_64 random(42);
    for (auto& delay : delays) delay = static_cast<std::uint32_t>(1 + random() % kLongest);
    std::uniform_real_distribution<double> magnitude(0.0, std::log(kWidest));
    for (auto& delay : wide_delays)
      delay = static_cast<std::uint32_t>(std::max(1.0, std::exp(magnitude(random))));
    std::iota(random_order.begin(), random_order.end(), 0U);
    std::shuffle(random_order.begin(), random_order.end(), random);
  }

  std::size_t size() const { return delays.size(); }

  // Writes N, the delays, the wide delays and the order to `file`, all as 32-bit words in this
  // machine's byte order, for systems in other languages (bench/peers). Throws std::runtime_error
  // if that fails.
  void write(const std::string& file) const {
    std::ofstream out(file, std::ios::binary);
    const auto n = static_cast<std::uint32_t>(size());
    out.write(reinterpret_cast<const char*>(&n), sizeof n);
    for (const auto* words : {&delays, &wide_delays, &random_order}) {
      out.write(reinterpret_cast<const char*>(words->data()),
                static_cast<std::streamsize>(4 * words->size()));
    }
    if (!out.flush()) throw std::runtime_error(file + ": cannot be written");
  }
};

// The random numbers of W4 and W7: Marsaglia's xorshift. It is so cheap that it does not distort
// the measurement, and three lines in any language.
class XorShift {
 public:
  // The number of a timer, below n, from the upper half of the word.
  std::size_t index(std::size_t n) { return (step() >> 32) * n >> 32; }

  // A delay of 1 .. 60 000 ticks from the lower half of the same word.
  std::uint32_t delay() const {
    return static_cast<std::uint32_t>(1 + ((state_ & 0xffffffff) * Inputs::kLongest >> 32));
  }

 private:
  std::uint64_t step() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

  std::uint64_t state_ = 88172645463325252ULL;
};

}  // namespace carillon::bench
