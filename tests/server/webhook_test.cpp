// Tests of what a pushed request has: its signature, its secrets, its URL, and the headers that an
// endpoint may set; and of Retry-After in the answer.

#include "server/push/webhook.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "server/push/retry_after.h"
#include "server/push/signature.h"
#include "server/push/target_url.h"

namespace carillon::server::push {
namespace {

constexpr const char* kPublished = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

// Returns the message of the exception that the function throws.
template <typename Function>
std::string webhook_error(Function function) {
  try {
    function();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

// --- Signatures.

// The example of the specification and of all its libraries.
TEST(Signature, IsThePublishedOne) {
  const std::string secret = decode_secret(kPublished);
  EXPECT_EQ(sign(std::vector{secret}, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1'614'265'330,
                 R"({"test": 2432232314})"),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

TEST(Signature, ThereIsOneForEachSecret) {
  const std::string first(24, 'a');
  const std::string second(64, '\0');
  const std::string one = sign(std::vector{first}, "job_1", 1, "x");
  const std::string other = sign(std::vector{second}, "job_1", 1, "x");
  EXPECT_NE(one, other);
  EXPECT_EQ(sign(std::vector{first, second}, "job_1", 1, "x"), one + " " + other);
  EXPECT_NE(sign(std::vector{first}, "job_2", 1, "x"), one);
  EXPECT_NE(sign(std::vector{first}, "job_1", 2, "x"), one);
  EXPECT_NE(sign(std::vector{first}, "job_1", 1, "y"), one);
}

TEST(Signature, SecretsAreReadAsTheyAreWritten) {
  EXPECT_EQ(encode_secret(decode_secret(kPublished)), kPublished);
  for (std::size_t size = 24; size <= 64; ++size) {
    std::string secret(size, '\xff');
    secret.back() = '\0';
    EXPECT_EQ(decode_secret(encode_secret(secret)), secret) << size;
  }
}

TEST(Signature, AWrongSecretIsRefusedAndNotShown) {
  const std::string form = "what follows whsec_ is no base64";
  const auto error = [](const std::string& text) {
    return webhook_error([&] { decode_secret(text); });
  };
  EXPECT_EQ(error("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), "a secret begins with whsec_");
  EXPECT_EQ(error("whsec_"), "a secret of 0 bytes: 24 to 64 are allowed");
  EXPECT_EQ(error("whsec_MfKQ9r8"), form);
  EXPECT_EQ(error("whsec_" + std::string(132, 'A')), "a secret of 99 bytes: 24 to 64 are allowed");
  EXPECT_EQ(error("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa*w"), form);
  for (const char* padding : {"A===", "==AA", "AA=A", "===="})
    EXPECT_EQ(error("whsec_" + std::string(32, 'A') + padding), form) << padding;
  EXPECT_EQ(error(encode_secret(std::string(23, 'x'))),
            "a secret of 23 bytes: 24 to 64 are allowed");
  EXPECT_EQ(error(encode_secret(std::string(65, 'x'))),
            "a secret of 65 bytes: 24 to 64 are allowed");
}

TEST(Signature, GeneratedSecretsDiffer) {
  std::set<std::string> all;
  for (int n = 0; n < 100; ++n) all.insert(generate_secret());
  EXPECT_EQ(all.size(), 100u);
  EXPECT_EQ(all.begin()->size(), 32u);
}

TEST(Signature, AFingerprintIsOfSha256) {
  EXPECT_EQ(fingerprint_of("abc"), "ba7816bf8f01cfea");
}

// --- Retry-After.

constexpr queue::UtcMs kNow = 784'111'777'000;  // Sun, 06 Nov 1994 08:49:37 GMT

TEST(RetryAfter, Seconds) {
  EXPECT_EQ(parse_retry_after("0", kNow), 0u);
  EXPECT_EQ(parse_retry_after("120", kNow), 120'000u);
  EXPECT_EQ(parse_retry_after("  7 ", kNow), 7'000u);
  EXPECT_EQ(parse_retry_after("007", kNow), 7'000u);
}

TEST(RetryAfter, ADateOfHttp) {
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:50:00 GMT", kNow), 23'000u);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", kNow), 0u);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:00 GMT", kNow), 0u);
  EXPECT_EQ(parse_retry_after("Wed, 31 Dec 1969 23:59:59 GMT", kNow), 0u);
}

TEST(RetryAfter, AnHourAtMost) {
  EXPECT_EQ(parse_retry_after("3600", kNow), 3'600'000u);
  EXPECT_EQ(parse_retry_after("3601", kNow), 3'600'000u);
  EXPECT_EQ(parse_retry_after("999999999", kNow), 3'600'000u);
  EXPECT_EQ(parse_retry_after(std::string(1'000, '9'), kNow), 3'600'000u);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 2094 08:49:37 GMT", kNow), 3'600'000u);
}

TEST(RetryAfter, WhatIsNeither) {
  for (const char* text :
       {"", " ", "-1", "+1", "1.5", "1s", "soon", "0x10", "1 2", "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 GMT!", "Sun, 06 Nov 1994 08:49:37 CET", "1994-11-06T08:49:37Z"})
    EXPECT_EQ(parse_retry_after(text, kNow), std::nullopt) << text;
}

// --- URLs and headers.

TEST(TargetUrl, IsTakenApart) {
  const TargetUrl plain = parse_target("http://example.com");
  EXPECT_FALSE(plain.is_tls);
  EXPECT_EQ(plain.host, "example.com");
  EXPECT_EQ(plain.port, "80");
  EXPECT_EQ(plain.path, "/");
  const TargetUrl full = parse_target("https://[2606:4700::1111]:8443/a%20b/?q=1&r");
  EXPECT_TRUE(full.is_tls);
  EXPECT_EQ(full.host, "2606:4700::1111");
  EXPECT_EQ(full.port, "8443");
  EXPECT_EQ(full.authority, "[2606:4700::1111]:8443");
  EXPECT_EQ(full.path, "/a%20b/?q=1&r");
  EXPECT_EQ(parse_target("https://example.com?q").path, "/?q");
  EXPECT_EQ(parse_target("HTTPS://example.com/").port, "443");
}

// Boost.URL 1.81 takes the first four numbers for the host, and the rest for a path.
TEST(TargetUrl, ANameThatBeginsAsAnAddressIsAName) {
  const TargetUrl target = parse_target("http://127.0.0.1.example.invalid:23197/hook");
  EXPECT_EQ(target.host, "127.0.0.1.example.invalid");
  EXPECT_EQ(target.port, "23197");
  EXPECT_EQ(target.authority, "127.0.0.1.example.invalid:23197");
  EXPECT_EQ(target.path, "/hook");
}

TEST(TargetUrl, WhatWasTakenApartIsAllOfIt) {
  for (const char* const url :
       {"http://a/", "http://1.2.3.4a.b:1/", "https://[::1]/x//y?z", "http://10.0.0.1:80/?",
        "http://1.1.1.1-x/", "http://a.:8/%41", "http://A-b_c.d/;p=1,2?a=b/c?d"}) {
    const TargetUrl target = parse_target(url);
    EXPECT_EQ((target.is_tls ? "https://" : "http://") + target.authority + target.path, url);
    const bool is_v6 = target.host.find(':') != std::string::npos;
    EXPECT_EQ(target.authority.find(is_v6 ? "[" + target.host + "]" : target.host), 0u) << url;
  }
}

TEST(TargetUrl, WhatIsWrongIsSaid) {
  const auto error = [](const std::string& url) {
    return webhook_error([&] { parse_target(url); });
  };
  EXPECT_NE(error("").find("not a URL"), std::string::npos);
  EXPECT_NE(error("/hook").find("not a URL"), std::string::npos);
  EXPECT_NE(error("http://example.com/a b").find("no path of a URL"), std::string::npos);
  EXPECT_NE(error("http://example.com/\r\nA: b").find("no path of a URL"), std::string::npos);
  EXPECT_NE(error("file:///etc/passwd").find("neither http nor https"), std::string::npos);
  EXPECT_NE(error("http://me:secret@example.com/").find("a user or a password"), std::string::npos);
  EXPECT_NE(error("http://example.com/#top").find("a fragment"), std::string::npos);
  EXPECT_NE(error("http:///hook").find("no host"), std::string::npos);
  for (const char* host : {"a%00b", "a%0d%0ab", "a%20b", "a%ff", "127.0.0.1%2eexample.com"})
    EXPECT_NE(error(std::string("http://") + host + "/").find("a byte that no name has"),
              std::string::npos)
        << host;
  EXPECT_NE(error("http://example.com:0/").find("the port"), std::string::npos);
  for (const char* const port : {"65536", "99999", "131152", "18446744073709551696", ""}) {
    EXPECT_NE(error("http://example.com:" + std::string(port) + "/").find("the port"),
              std::string::npos)
        << port;
  }
  EXPECT_EQ(error("http://example.com/" + std::string(2'000, 'a')),
            "the URL has 2019 bytes; the limit is 2000");
}

std::string header(const PostRequest& request, std::string_view wanted) {
  for (const auto& [name, value] : request.headers)
    if (name == wanted) return value;
  return "none";
}

TEST(Webhook, SecretsBeforeTheFirstSignUntilTheirEnd) {
  queue::Endpoint endpoint{.url = "http://a/", .tube = "t", .secrets = {"new", "old", "older"}};
  EXPECT_EQ(secrets_at(endpoint, kNow).size(), 3u);  // a list that somebody has set has no end
  endpoint.other_secrets_until = kNow;
  EXPECT_EQ(secrets_at(endpoint, kNow - 1).size(), 3u);
  ASSERT_EQ(secrets_at(endpoint, kNow).size(), 1u);
  EXPECT_EQ(secrets_at(endpoint, kNow)[0], "new");
}

TEST(Webhook, ATrialSaysThatItIsOne) {
  const std::string secret = decode_secret(kPublished);
  queue::Endpoint endpoint{.url = "http://a/", .tube = "t", .secrets = {secret}};
  PostRequest request = trial_of("hook", endpoint, kNow);
  EXPECT_EQ(request.body, R"({"test":"hook"})");
  EXPECT_EQ(header(request, "webhook-id"), "test_784111777000");
  EXPECT_EQ(header(request, "webhook-timestamp"), "784111777");
  EXPECT_EQ(header(request, "webhook-signature"),
            sign({&secret, 1}, "test_784111777000", 784'111'777, request.body));
  EXPECT_EQ(header(request, "ce-type"), "none");
  endpoint.format = queue::Endpoint::Format::kCloudEvents;
  EXPECT_EQ(header(trial_of("hook", endpoint, kNow), "ce-type"), "carillon.test");
  endpoint.format = queue::Endpoint::Format::kCloudEventsInJson;
  request = trial_of("hook", endpoint, kNow);
  EXPECT_EQ(request.body, R"({"specversion":"1.0","id":"test_784111777000","source":"/tubes/t",)"
                          R"("type":"carillon.test","time":"1994-11-06T08:49:37.000Z",)"
                          R"("datacontenttype":"application/json","data":{"test":"hook"}})");
}

TEST(Webhook, HeadersOfTheRequestItselfCannotBeSet) {
  for (const char* name :
       {"Host", "content-length", "Transfer-Encoding", "Connection", "Webhook-Id",
        "webhook-signature", "CE-Type", "carillon-tube", "Content-Type"})
    EXPECT_TRUE(is_own_header(name)) << name;
  for (const char* name : {"Authorization", "X-Host", "web", "ce"})
    EXPECT_FALSE(is_own_header(name)) << name;
}

}  // namespace
}  // namespace carillon::server::push
