// What is due when, over HTTP: /v1/wheel.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "http_fixture.h"

namespace carillon::server::http {
namespace {

// The server's clock starts at 2023-11-14T22:13:20Z, which is day 25 of 30.
constexpr std::uint64_t kStart = 1'700'000'000'000;

class HttpWheel : public HttpSession {
 protected:
  json::value wheel() { return ask("GET", "/v1/wheel?tube=mail").value(); }
  // The slots of the dial that have jobs, as "5:1 14:2".
  static std::string slots(const json::value& wheel, std::size_t dial) {
    std::string text;
    const json::array& jobs = wheel.at("dials").at(dial).at("jobs").as_array();
    for (std::size_t slot = 0; slot < jobs.size(); ++slot) {
      const auto held = jobs[slot].to_number<int>();
      if (held == 0) continue;
      text += (text.empty() ? "" : " ") + std::to_string(slot) + ":" + std::to_string(held);
    }
    return text;
  }
  void put_many(int jobs, const std::string& delay) {
    for (int i = 0; i < jobs; ++i) put(R"({"delay":")" + delay + R"("})");
  }
};

TEST_F(HttpWheel, EachDialHasWhatTheFinerOnesHaveNot) {
  put_many(1, "5s");
  put_many(2, "50s");
  put_many(1, "1h");
  put_many(1, "2h");
  put_many(1, "100d");
  const json::value shown = wheel();
  EXPECT_EQ(shown.at("now"), "2023-11-14T22:13:20.000Z");
  EXPECT_EQ(shown.at("delayed").to_number<int>(), 6);
  EXPECT_EQ(slots(shown, 0), "25:1");
  EXPECT_EQ(slots(shown, 1), "14:2");
  EXPECT_EQ(slots(shown, 2), "23:1");
  EXPECT_EQ(slots(shown, 3), "26:1");
  EXPECT_EQ(shown.at("beyond").to_number<int>(), 1);
  const int hands[] = {20, 13, 22, 25};
  for (std::size_t dial = 0; dial < 4; ++dial)
    EXPECT_EQ(shown.at("dials").at(dial).at("hand").to_number<int>(), hands[dial]);
  EXPECT_TRUE(shown.at("exact").as_bool());
  EXPECT_TRUE(shown.at("storms").as_array().empty());
}

// 22:14:00: the slot of the minute wheel has poured its jobs into that of seconds.
TEST_F(HttpWheel, AHandThatMovesOnPoursItsSlotIntoTheFinerWheel) {
  put_many(2, "50s");
  EXPECT_EQ(slots(wheel(), 1), "14:2");
  pass(40'000);
  EXPECT_EQ(slots(wheel(), 1), "");
  EXPECT_EQ(slots(wheel(), 0), "10:2");
}

TEST_F(HttpWheel, ShowsTheNextMinuteHourDayAndMonth) {
  put_many(1, "59s");
  put_many(1, "61s");
  const json::value shown = wheel();
  EXPECT_EQ(shown.at("next").at(0).at("jobs").at(59).to_number<int>(), 1);
  EXPECT_EQ(shown.at("next").at(0).at("jobs").as_array().size(), 60U);
  EXPECT_EQ(shown.at("next").at(1).at("jobs").at(1).to_number<int>(), 2);
  EXPECT_EQ(shown.at("next").at(1).at("jobs").as_array().size(), 60U);
  EXPECT_EQ(shown.at("next").at(2).at("jobs").as_array().size(), 24U);
  EXPECT_EQ(shown.at("next").at(3).at("jobs").as_array().size(), 30U);
}

TEST_F(HttpWheel, AStormIsSeen) {
  put_many(50, "10m");
  put_many(10, "12h");
  const json::value storm = wheel().at("storms").at(0);
  EXPECT_EQ(storm.at("tube").as_string(), "mail");
  EXPECT_EQ(storm.at("from"), "2023-11-14T22:23:00.000Z");
  EXPECT_EQ(storm.at("before"), "2023-11-14T22:24:00.000Z");
  EXPECT_EQ(storm.at("jobs").to_number<int>(), 50);
  EXPECT_NEAR(storm.at("share").to_number<double>(), 50.0 / 60, 1e-9);
}

}  // namespace
}  // namespace carillon::server::http
