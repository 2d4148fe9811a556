// Signatures of pushed jobs, as Standard Webhooks 1.0.0 has them: HMAC-SHA256 of id.timestamp.body.
//
//   const std::string secret = decode_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
//   sign({&secret, 1}, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, R"({"test": 2432232314})");
//   // "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
//
// Source: https://www.standardwebhooks.com. Thread safety: pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace carillon::server::push {

// Returns the bytes of a secret: `whsec_` and the base64 of 24 to 64 bytes. Throws
// std::invalid_argument, with a text that does not contain the secret.
std::string decode_secret(std::string_view text);
// Returns the text of a secret of these bytes.
std::string encode_secret(std::string_view secret);
// Returns 32 bytes that nobody can guess. Throws std::runtime_error if the system fails to give
// them.
std::string generate_secret();
// Returns a short name of a secret, from which nobody can find the secret: 16 hexadecimal digits of
// its SHA-256.
std::string fingerprint_of(std::string_view secret);

// Returns one signature for each secret, with spaces between them.
std::string sign(std::span<const std::string> secrets, std::string_view id,
                 std::uint64_t unix_seconds, std::string_view body);

}  // namespace carillon::server::push
