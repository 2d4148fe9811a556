// The names of fields in files and in the API, both ways.
#include "cli/file_fields.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace carillon::cli {
namespace {

namespace json = boost::json;

// What a file has, and what the API has.
struct Same {
  FileObject of;
  std::string_view in_file;
  std::string_view in_api;
};
constexpr Same kSame[] = {
    {FileObject::kTube,
     R"({"max_attempts":5,"backoff":"1000ms..60000ms","jitter":"10%","lost":"fails",)"
     R"("max_running":3,"rate":"100/60000ms","burst":7,"retention":"604800000ms"})",
     R"({"retry":{"max_attempts":5,"backoff":{"type":"exponential","initial":"1000ms",)"
     R"("max":"60000ms","jitter":10},"lost_fails":true},"limits":{"max_running":3,)"
     R"("rate":{"jobs":100,"per":"60000ms","burst":7}},"retention":"604800000ms"})"},
    {FileObject::kTube, R"({"put_rate":"2/3600000ms","put_burst":3,"puts":"refused"})",
     R"({"limits":{"put_rate":{"jobs":2,"per":"3600000ms","burst":3}},"draining":true})"},
    {FileObject::kSchedule, R"({"cron":"@daily","zone":"UTC","catch_up":"all:3600000ms"})",
     R"({"cron":"@daily","time_zone":"UTC","catch_up":"all","catch_up_window":"3600000ms"})"},
    {FileObject::kSchedule, R"({"every":"5000ms","catch_up":"none","paused":"yes"})",
     R"({"every":"5000ms","catch_up":"none","paused":true})"},
    {FileObject::kScheduledJob, R"({"pri":7,"group_base64":"/w==","attributes":{"a":1}})",
     R"({"priority":7,"group_base64":"/w==","attributes":{"a":1}})"},
};

TEST(FileFields, AreTheFieldsOfTheApiByOtherNames) {
  for (const Same& same : kSame) {
    const json::value in_file = json::parse(same.in_file);
    const json::value in_api = json::parse(same.in_api);
    EXPECT_EQ(json::value(api_fields(same.of, in_file.as_object())), in_api);
    EXPECT_EQ(json::value(file_fields(same.of, in_api)), in_file);
  }
}

TEST(FileFields, ADeadJobIsBuriedAndDurationsAreInMilliseconds) {
  const json::value shown = json::parse(
      R"({"state":"dead","died":"expired","ttr":"1m","failed_attempts":0,"metadata":{"n":1}})");
  EXPECT_EQ(json::value(file_fields(FileObject::kJob, shown)),
            json::parse(R"({"state":"buried","ttr":"60000ms","dead":"expired",)"
                        R"("attributes":{"metadata":{"n":1}}})"));
}

TEST(FileFields, PartsOfAnObjectComeInAnyOrder) {
  const auto in_api = [](std::string_view text) {
    return json::value(api_fields(FileObject::kTube, json::parse(text).as_object()));
  };
  EXPECT_EQ(in_api(R"({"burst":7,"rate":"1/1s"})"), in_api(R"({"rate":"1/1s","burst":"7"})"));
  EXPECT_EQ(in_api(R"({"jitter":"5%","backoff":"1s"})"), in_api(R"({"backoff":"1s","jitter":5})"));
}

TEST(FileFields, FaultsHaveTheNamesOfTheFile) {
  EXPECT_EQ(file_name_of(FileObject::kTube, "/limits/rate/per"), "rate");
  EXPECT_EQ(file_name_of(FileObject::kTube, "/limits/rate/burst"), "burst");
  EXPECT_EQ(file_name_of(FileObject::kSchedule, "/job/retry/backoff/initial"), "backoff");
  EXPECT_EQ(file_name_of(FileObject::kSchedule, "/catch_up_window"), "catch_up_window");
  const auto fault = [](std::string_view text) -> std::string {
    try {
      api_fields(FileObject::kTube, json::parse(text).as_object());
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(fault(R"({"rate":"x"})"), "rate: \"x\": 0, or a number in a duration, as 100/1m");
  EXPECT_EQ(fault(R"({"puts":"none"})"), "puts: \"none\": refused or taken");
  EXPECT_TRUE(fault(R"({"rates":1})").starts_with("\"rates\": no such option; there are"));
}

}  // namespace
}  // namespace carillon::cli
