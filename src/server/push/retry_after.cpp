// Retry-After (retry_after.h).
#include "server/push/retry_after.h"

#include <time.h>

#include <algorithm>
#include <string>

namespace carillon::server::push {

std::optional<queue::Millis> parse_retry_after(std::string_view text, queue::UtcMs now) {
  while (text.ends_with(' ')) text.remove_suffix(1);
  while (text.starts_with(' ')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  if (text.find_first_not_of("0123456789") == std::string_view::npos) {
    constexpr std::size_t kDigits = 9;
    if (text.size() > kDigits) return kLongestRetryAfter;
    return std::min<queue::Millis>(std::stoull(std::string(text)) * 1'000, kLongestRetryAfter);
  }
  tm parts{};
  const std::string date(text);
  const char* const end = ::strptime(date.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  const time_t seconds = ::timegm(&parts);
  if (seconds < 0) return 0;
  const queue::UtcMs at = static_cast<queue::UtcMs>(seconds) * 1'000;
  return at <= now ? 0 : std::min<queue::Millis>(at - now, kLongestRetryAfter);
}

}  // namespace carillon::server::push
