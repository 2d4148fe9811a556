// How endpoints are kept: the bytes of a record, and over a restart.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "carillon/queue/engine.h"
#include "queue/store/state/endpoint_values.h"
#include "queue/store/state/tagged_fields.h"
#include "queue/store_media.h"

namespace carillon::queue {
namespace {

constexpr Now kThen{.utc_ns = 1'700'000'000'000'000'000, .mono_ns = 1'000'000'000};
constexpr UtcMs kUtc = 1'700'000'000'000;

Endpoint full() {
  return {.url = "https://example.com/hook",
          .tube = "bills",
          .secrets = {std::string("a\0b", 3), std::string(64, '\xff')},
          .other_secrets_until = kUtc + 1,
          .headers = {{"Authorization", "Bearer x"}, {"X-Empty", ""}},
          .format = Endpoint::Format::kCloudEventsInJson,
          .concurrency = 64,
          .timeout = 600'000,
          .disabled = "it answered 410 Gone",
          .paused = true,
          .created = kUtc};
}

std::string value_of(const Endpoint& endpoint) {
  std::string value;
  append_endpoint_value(value, endpoint);
  return value;
}

std::string endpoint_complaint(const std::string& value) {
  try {
    read_endpoint_value("hook", value);
  } catch (const StoreDamage& error) {
    return error.what();
  }
  return "none";
}

// --- The bytes.

TEST(EndpointValues, AreReadAsTheyWereWritten) {
  EXPECT_EQ(read_endpoint_value("hook", value_of(full())), full());
  const Endpoint plain{.url = "http://a/", .tube = "t"};
  EXPECT_EQ(read_endpoint_value("hook", value_of(plain)), plain);
}

TEST(EndpointValues, FieldsOfANewerVersionAreKept) {
  std::string newer;
  append_number(newer, 90, 5);
  append_bytes(newer, 91, "later");
  const Endpoint read = read_endpoint_value("hook", value_of(full()) + newer);
  EXPECT_EQ(*read.newer, newer);
  EXPECT_EQ(read.url, full().url);
  EXPECT_EQ(value_of(read), value_of(full()) + newer);
}

TEST(EndpointValues, WhatIsBrokenIsRefusedByItsName) {
  const std::string value = value_of(full());
  EXPECT_EQ(endpoint_complaint(""),
            "the record of the endpoint under the key 686f6f6b is damaged: it is empty");
  EXPECT_NE(endpoint_complaint("\x09" + value.substr(1)).find("has version 9"), std::string::npos);
  EXPECT_NE(endpoint_complaint(value.substr(0, value.size() - 1)).find("is broken"),
            std::string::npos);
  EXPECT_NE(endpoint_complaint(value.substr(0, 1)).find("lacks a field"), std::string::npos);
  std::string header = value;
  append_bytes(header, 4,
               "\x09"
               "abc");
  EXPECT_NE(endpoint_complaint(header).find("a header that is cut short"), std::string::npos);
  std::string kind = value;
  append_number(kind, 1, 5);
  EXPECT_NE(endpoint_complaint(kind).find("a field 1 that is a number"), std::string::npos);
  std::string format = value;
  append_number(format, 5, 3);
  EXPECT_NE(endpoint_complaint(format).find("a field 5 that is no such number"), std::string::npos);
}

// --- The engine.

template <typename Medium>
class EndpointStore : public testing::Test {};
using Media = testing::Types<InMemory, OnDisk>;
TYPED_TEST_SUITE(EndpointStore, Media);

TYPED_TEST(EndpointStore, EndpointsComeBackAfterARestart) {
  TypeParam medium;
  std::uint64_t changes = 0;
  {
    Engine engine(store_of(medium), {}, kThen);
    EXPECT_TRUE(engine.endpoints().empty());
    EXPECT_TRUE(engine.set_endpoint(kThen, "one", full()).done);
    EXPECT_TRUE(engine.set_endpoint(kThen, "two", {.url = "http://a/", .tube = "t"}).done);
    EXPECT_TRUE(engine.set_endpoint(kThen, "three", {.url = "http://b/", .tube = "t"}).done);
    changes = engine.endpoint_changes();
    EXPECT_TRUE(engine.remove_endpoint(kThen, "two").done);
    EXPECT_GT(engine.endpoint_changes(), changes);
    EXPECT_FALSE(engine.remove_endpoint(kThen, "two").done);
    store_of(medium).sync();
  }
  medium.reopen();
  {
    Engine engine(store_of(medium), {}, kThen);
    ASSERT_EQ(engine.endpoints().size(), 2u);
    EXPECT_EQ(engine.endpoints().at("one"), full());
    // Another one in its place has been there as long as the first.
    const Now later{.utc_ns = kThen.utc_ns + 5'000'000'000, .mono_ns = kThen.mono_ns};
    engine.set_endpoint(later, "one", {.url = "http://c/", .tube = "t"});
    engine.remove_endpoint(later, "three");
    store_of(medium).sync();
  }
  medium.reopen();
  const Engine engine(store_of(medium), {}, kThen);
  ASSERT_EQ(engine.endpoints().size(), 1u);
  EXPECT_EQ(engine.endpoints().at("one").url, "http://c/");
  EXPECT_EQ(engine.endpoints().at("one").created, kUtc);
}

TEST(Endpoints, AreBounded) {
  MemoryStore store;
  Engine engine(store, {}, kThen);
  const Endpoint plain{.url = "http://a/", .tube = "t"};
  for (std::size_t n = 0; n < kMostEndpoints; ++n)
    engine.set_endpoint(kThen, "e" + std::to_string(n), plain);
  EXPECT_THROW(engine.set_endpoint(kThen, "more", plain), OverLimit);
  EXPECT_TRUE(engine.set_endpoint(kThen, "e0", plain).done);  // in the place of another
  engine.remove_endpoint(kThen, "e1");
  EXPECT_TRUE(engine.set_endpoint(kThen, "more", plain).done);

  Endpoint large = plain;
  large.headers = {{"a", std::string(kMostEndpointBytes, 'x')}};
  EXPECT_THROW(engine.set_endpoint(kThen, "e0", large), std::invalid_argument);
  large.headers[0].second.resize(kMostEndpointBytes - std::string("http://a/ta").size());
  EXPECT_TRUE(engine.set_endpoint(kThen, "more", large).done);
  large.disabled = "it answered 410 Gone";  // so that the largest one can be disabled
  EXPECT_TRUE(engine.set_endpoint(kThen, "more", large).done);
  EXPECT_THROW(engine.set_endpoint(kThen, "", plain), std::invalid_argument);
  EXPECT_THROW(engine.set_endpoint(kThen, "e0", {.url = "http://a/", .tube = ""}),
               std::invalid_argument);
  EXPECT_EQ(engine.endpoints().at("e0"), engine.endpoints().at("e2"));
}

}  // namespace
}  // namespace carillon::queue
