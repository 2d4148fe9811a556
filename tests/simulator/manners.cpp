// Random behaviour (manners.h).

#include "simulator/manners.h"

#include <array>

namespace carillon::simulator {

Manners random_manners(Random& random) {
  Manners manners{.role = static_cast<Role>(random() % kRoles)};
  if (manners.role == Role::kVandal && random() % 2 == 0) manners.role = Role::kWorker;
  switch (random() % 8) {
    case 0:
      manners.ahead = 1 + random() % (random() % 4 == 0 ? 1'000 : 30);
      break;
    case 1:
      manners.piece = 1;
      break;
    case 2:
      manners.piece = 1 + random() % 100;
      manners.ahead = 3;
      break;
    case 3:
      manners.reads = random() % 4 != 0;
      manners.ahead = 10;
      break;
    default:
      break;
  }
  return manners;
}

std::int64_t random_error(Random& random) {
  constexpr std::int64_t kMs = 1'000'000;
  constexpr std::int64_t kHour = 3'600'000 * kMs;
  constexpr std::array<std::int64_t, 9> kErrors = {2 * kMs,      50 * kMs,    150 * kMs,
                                                   700 * kMs,    1'000 * kMs, 20'000 * kMs,
                                                   40'000 * kMs, kHour,       87'600 * kHour};
  if (random() % 3 == 0) return 0;
  const std::int64_t error = kErrors[random() % kErrors.size()];
  return random() % 2 == 0 ? error : -error;
}

}  // namespace carillon::simulator
