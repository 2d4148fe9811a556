#include "cluster/entry_codec.h"

#include <openssl/evp.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "carillon/require.h"
#include "cluster/fixed_bytes.h"

namespace carillon::cluster {

namespace {

constexpr std::string_view kMagic = "CAR1";

template <typename Id>
std::string bytes_of_id(const Id& id) {
  std::string bytes;
  put(bytes, id);
  return bytes;
}

}  // namespace

void add_change(std::string& changes, std::string_view change) {
  CARILLON_REQUIRE(change.size() <= std::numeric_limits<std::uint32_t>::max(), change.size());
  put(changes, static_cast<std::uint32_t>(change.size()));
  changes += change;
}

Front first_changes(std::string_view changes, std::size_t most) {
  Front front;
  while (front.bytes < changes.size()) {
    std::uint32_t size = 0;
    FixedReader(changes.substr(front.bytes)).get(size);
    const std::size_t with_this = front.bytes + sizeof size + size;
    if (with_this > most && front.changes > 0) break;
    front = {.bytes = with_this, .changes = front.changes + 1};
  }
  return front;
}

std::string encode_entry(const Entry& entry, std::string_view changes) {
  std::string bytes(kMagic);
  put(bytes, static_cast<std::uint8_t>(entry.kind));
  put(bytes, entry.log);
  put(bytes, entry.epoch);
  put(bytes, entry.owner);
  put(bytes, entry.first);
  put(bytes, entry.end);
  put(bytes, entry.before);
  put(bytes, entry.utc);
  return bytes.append(changes);
}

std::optional<Decoded> decode_entry(std::string_view bytes) {
  FixedReader from(bytes);
  if (from.take(kMagic.size()) != kMagic) return std::nullopt;
  Decoded decoded;
  Entry& entry = decoded.entry;
  std::uint8_t kind = 0;
  from.get(kind);
  from.get(entry.log);
  from.get(entry.epoch);
  from.get(entry.owner);
  from.get(entry.first);
  from.get(entry.end);
  from.get(entry.before);
  from.get(entry.utc);
  while (from.good() && !from.at_end()) {
    std::uint32_t size = 0;
    from.get(size);
    decoded.changes.push_back(from.take(size));
  }
  if (!from.good() || kind > static_cast<std::uint8_t>(Entry::Kind::kWindow)) return std::nullopt;
  entry.kind = static_cast<Entry::Kind>(kind);
  if (entry.end < entry.first || entry.end - entry.first != decoded.changes.size())
    return std::nullopt;
  return decoded;
}

Chain chain_after(const Chain& before, std::string_view bytes) {
  Chain after = {};
  unsigned size = 0;
  static_assert(sizeof after == 32);
  EVP_MD_CTX* const context = ::EVP_MD_CTX_new();
  const bool hashed =
      context != nullptr && ::EVP_DigestInit_ex(context, ::EVP_sha256(), nullptr) == 1 &&
      ::EVP_DigestUpdate(context, before.data(), sizeof before) == 1 &&
      ::EVP_DigestUpdate(context, bytes.data(), bytes.size()) == 1 &&
      ::EVP_DigestFinal_ex(context, reinterpret_cast<unsigned char*>(after.data()), &size) == 1;
  ::EVP_MD_CTX_free(context);
  if (!hashed) throw std::runtime_error("SHA-256 is not to be had");
  return after;
}

std::string bytes_of(const Chain& chain) {
  return {reinterpret_cast<const char*>(chain.data()), sizeof chain};
}

Chain chain_of(std::string_view bytes) {
  Chain chain = {};
  CARILLON_REQUIRE(bytes.size() == sizeof chain, bytes.size());
  std::memcpy(chain.data(), bytes.data(), sizeof chain);
  return chain;
}

std::string bytes_of(const Owner& owner) {
  return bytes_of_id(owner);
}

std::string bytes_of(const LogId& log) {
  return bytes_of_id(log);
}

}  // namespace carillon::cluster
