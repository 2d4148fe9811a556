// Fingerprint (fingerprint.h).
#include "server/text/fingerprint.h"

#include <array>
#include <cstdint>
#include <stdexcept>

namespace carillon::server {

namespace {

void check(int done) {
  if (done != 1) throw std::runtime_error("OpenSSL cannot compute a SHA-256");
}

}  // namespace

Fingerprint::Fingerprint() : hash_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
  check(EVP_DigestInit_ex(hash_.get(), EVP_sha256(), nullptr));
}

void Fingerprint::add(std::string_view part) {
  const std::uint64_t size = part.size();
  check(EVP_DigestUpdate(hash_.get(), &size, sizeof size));
  check(EVP_DigestUpdate(hash_.get(), part.data(), part.size()));
}

std::string Fingerprint::bytes() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  check(EVP_DigestFinal_ex(hash_.get(), digest.data(), nullptr));
  return {digest.begin(), digest.begin() + kBytes};
}

}  // namespace carillon::server
