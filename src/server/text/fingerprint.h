// What tells two puts apart that came with the same name of their client's own (Idempotency-Key,
// once=): the first 16 bytes of a SHA-256 of all that they have.
//
//   Fingerprint fingerprint;
//   fingerprint.add("POST");
//   fingerprint.add(request.body);
//   engine.put_all(client, now, jobs, {.once = key, .fingerprint = fingerprint.bytes()});
//
// Nobody can make two requests with the same one: that would take 2^64 tries. The engine keeps it
// with each name for a day, so that the other 16 bytes would be paid for, and add nothing.
//
// Thread safety: none.
#pragma once

#include <openssl/evp.h>

#include <memory>
#include <string>
#include <string_view>

namespace carillon::server {

class Fingerprint {
 public:
  static constexpr std::size_t kBytes = 16;

  Fingerprint();

  // Adds a part. Parts are told apart: "a" and "bc" are not "ab" and "c".
  void add(std::string_view part);
  // Returns that of the parts. Nothing can be added then.
  std::string bytes();

 private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> hash_;
};

}  // namespace carillon::server
