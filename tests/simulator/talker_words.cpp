// Random arguments of commands (talker_words.h).

#include "simulator/talker_words.h"

#include <array>
#include <optional>
#include <utility>

#include "carillon/queue/store.h"
#include "simulator/talker.h"

namespace carillon::simulator {

using queue::JobId;
using queue::Millis;

std::string random_tube(Random& random) {
  constexpr std::array<const char*, 5> kTubes = {"default", "a", "b", "mail", "c-3"};
  if (below(random, 20) == 0) return "t" + number(below(random, 20));
  return kTubes[below(random, kTubes.size())];
}

std::string random_group(Random& random) {
  constexpr std::array<const char*, 4> kGroups = {"x", "y", "z", "mail"};
  return kGroups[below(random, kGroups.size())];
}

std::string random_attributes(Random& random) {
  const std::string type = R"({"content_type":"text/)" + number(below(random, 3)) + "\"";
  return below(random, 2) == 0 ? type + "}" : type + R"(,"metadata":{"a":"b"}})";
}

// Often the same one, so that groups take turns.
queue::Priority random_priority(Random& random) {
  if (below(random, 2) == 0) return 0;
  return static_cast<queue::Priority>(
      one_of(random, std::array<std::uint64_t, 6>{0, 1, 1'023, 1'024, 5, UINT32_MAX}));
}

Millis random_delay(Random& random) {
  if (below(random, 2) == 0) return 0;
  return 1'000 * one_of(random, std::array<std::uint64_t, 6>{1, 1, 2, 5, 70, 100'000});
}

std::string random_body(Random& random) {
  std::uint64_t size = below(random, 60);
  if (below(random, 16) == 0) size = below(random, 3'000);
  if (below(random, 128) == 0) size = below(random, kMaxJobSize + 1);
  std::string body(size, static_cast<char>('a' + below(random, 26)));
  if (size >= 8) {
    const std::uint64_t tag = random();
    for (std::size_t i = 0; i < 8; ++i) body[i] = static_cast<char>(tag >> (8 * i));
  }
  return body;
}

std::string random_large_body(Random& random) {
  constexpr std::size_t kMost = kMaxLargeSize;
  std::size_t size = queue::kBodyPiece + 1 + below(random, kMost - queue::kBodyPiece);
  if (below(random, 4) == 0)
    size = one_of(random, std::array<std::uint64_t, 3>{queue::kBodyPiece + 1, kMost - 1, kMost});
  std::string body(size, '.');
  for (std::size_t at = 0; at < size; at += 1'000) body[at] = static_cast<char>(random());
  return body;
}

std::string duration(Millis ms) {
  return ms % 1'000 == 0 ? number(ms / 1'000) + "s" : number(ms) + "ms";
}

std::string line_of(std::vector<std::string> options, Random& random) {
  for (std::size_t i = options.size(); i > 1; --i)
    std::swap(options[i - 1], options[below(random, i)]);
  std::string line;
  for (const std::string& option : options) line += " " + option;
  return line + "\r\n";
}

JobId some_id(const Model& model, Random& random) {
  const std::optional<JobId> id = model.any_job(random);
  if (!id) return 1;
  return below(random, 8) == 0 ? *id + below(random, 5) : *id;
}

}  // namespace carillon::simulator
