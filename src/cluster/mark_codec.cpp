#include "cluster/mark_codec.h"

#include <cstdint>

#include "cluster/fixed_bytes.h"

namespace carillon::cluster {

namespace {

constexpr std::string_view kMagic = "CARM";
constexpr std::uint8_t kVersion = 1;

}  // namespace

std::string encode_mark(const Mark& mark) {
  std::string bytes(kMagic);
  put(bytes, kVersion);
  put(bytes, mark.log);
  put(bytes, mark.epoch);
  put(bytes, mark.owner);
  put(bytes, mark.epoch_began);
  put(bytes, mark.next);
  put(bytes, mark.chain);
  put(bytes, mark.position);
  put(bytes, mark.utc);
  return bytes;
}

std::optional<Mark> decode_mark(std::string_view bytes) {
  FixedReader from(bytes);
  if (from.take(kMagic.size()) != kMagic) return std::nullopt;
  std::uint8_t version = 0;
  from.get(version);
  Mark mark;
  from.get(mark.log);
  from.get(mark.epoch);
  from.get(mark.owner);
  from.get(mark.epoch_began);
  from.get(mark.next);
  from.get(mark.chain);
  from.get(mark.position);
  from.get(mark.utc);
  if (!from.good() || !from.at_end() || version != kVersion) return std::nullopt;
  return mark;
}

}  // namespace carillon::cluster
