// JSON bodies of 200 bytes, no two alike, about as varied as those of real jobs: a benchmark that
// repeats one text lets a server that compresses look better than it is. Each body begins with the
// time at which its job is due, so that a worker can tell how late it was.
//
//   Bodies bodies(7);
//   std::string_view body = bodies.next(due_us);   // valid until the next call
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace carillon::bench {

class Bodies {
 public:
  static constexpr std::size_t kBytes = 200;

  explicit Bodies(std::uint64_t seed) : random_(seed) {}

  std::string_view next(std::uint64_t due_us) {
    body_ = kStart;
    body_ += std::to_string(due_us);
    body_.append(",\"type\":\"").append(pick(kTypes)).append("\",\"user\":");
    body_ += std::to_string(10'000'000 + random_() % 90'000'000);
    body_.append(",\"mail\":\"").append(pick(kWords)).append(".").append(pick(kWords));
    body_ += std::to_string(random_() % 1'000);
    body_.append("@example.org\",\"order\":\"");
    for (std::uint64_t bits = random_(), i = 0; i < 16; ++i, bits >>= 4)
      body_ += "0123456789abcdef"[bits & 15];
    body_ += "\",\"text\":\"";
    while (body_.size() < kBytes - 2) body_.append(pick(kWords)).append(" ");
    body_.resize(kBytes - 2);
    body_ += "\"}";
    return body_;
  }

  // Returns the time in microseconds that `next` was given for this body.
  static std::uint64_t due_us(std::string_view body) {
    std::uint64_t due = 0;
    if (body.starts_with(kStart))
      std::from_chars(body.data() + kStart.size(), body.data() + body.size(), due);
    return due;
  }

 private:
  static constexpr std::string_view kStart = "{\"due\":";
  static constexpr std::array<std::string_view, 8> kTypes = {
      "invoice.reminder", "webhook.retry", "trial.ends",  "mail.digest",
      "cart.abandoned",   "token.expires", "sms.confirm", "report.weekly"};
  static constexpr std::array<std::string_view, 32> kWords = {
      "amber",  "birch",  "cedar", "delta", "ember",  "fjord",  "grove",  "harbor",
      "island", "jasper", "kite",  "lemon", "meadow", "nectar", "ocean",  "pepper",
      "quartz", "river",  "stone", "tulip", "umbra",  "velvet", "willow", "xenon",
      "yarrow", "zephyr", "and",   "the",   "with",   "from",   "at",     "of"};

  template <std::size_t N>
  std::string_view pick(const std::array<std::string_view, N>& from) {
    return from[random_() % N];
  }

  std::mt19937_64 random_;
  std::string body_;
};

}  // namespace carillon::bench
