// Signatures, by OpenSSL (signature.h).
#include "server/push/signature.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <array>
#include <optional>
#include <stdexcept>
#include <utility>

#include "server/text/json_text.h"

namespace carillon::server::push {

namespace {

constexpr std::string_view kPrefix = "whsec_";
constexpr std::size_t kLeast = 24;
constexpr std::size_t kMost = 64;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string decode_secret(std::string_view text) {
  const auto fail = [](const std::string& why) { throw std::invalid_argument(why); };
  if (!text.starts_with(kPrefix)) fail("a secret begins with whsec_");
  text.remove_prefix(kPrefix.size());
  std::optional<std::string> secret = from_base64(text);
  if (!secret) fail("what follows whsec_ is no base64");
  if (secret->size() < kLeast || secret->size() > kMost)
    fail(fmt::format("a secret of {} bytes: {} to {} are allowed", secret->size(), kLeast, kMost));
  return *std::move(secret);
}

std::string encode_secret(std::string_view secret) {
  return std::string(kPrefix) + to_base64(secret);
}

std::string generate_secret() {
  std::string secret(32, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(secret.data()),
                 static_cast<int>(secret.size())) != 1)
    throw std::runtime_error("the system gives no random bytes for a secret");
  return secret;
}

std::string fingerprint_of(std::string_view secret) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(bytes_of(secret), secret.size(), digest.data());
  std::string digits;
  for (std::size_t n = 0; n < 8; ++n) digits += fmt::format("{:02x}", digest[n]);
  return digits;
}

std::string sign(std::span<const std::string> secrets, std::string_view id,
                 std::uint64_t unix_seconds, std::string_view body) {
  std::string content = fmt::format("{}.{}.", id, unix_seconds);
  content += body;
  std::string signatures;
  for (const std::string& secret : secrets) {
    std::array<char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), bytes_of(content),
         content.size(), reinterpret_cast<unsigned char*>(digest.data()), &size);
    if (!signatures.empty()) signatures += ' ';
    signatures += "v1," + to_base64({digest.data(), size});
  }
  return signatures;
}

}  // namespace carillon::server::push
