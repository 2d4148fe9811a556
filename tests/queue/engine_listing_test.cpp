// The list of all tubes is read in steps while tubes are made and forgotten.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "queue/engine_fixture.h"

namespace carillon::queue {
namespace {

class EngineListing : public EngineTest {
 protected:
  static std::string name(std::uint64_t n) { return "tube" + std::to_string(n); }
  void make(std::uint64_t tubes) {
    for (std::uint64_t n = 0; n < tubes; ++n) ASSERT_TRUE(engine.watch(worker, name(n)));
  }
  // Reads the next names of the list, and returns false at its end.
  bool read() {
    const auto names = engine.next_tubes(producer);
    if (!names) lost = true;
    if (lost) return false;
    if (names->empty() && ++empty_steps > 1'000) {
      ADD_FAILURE() << size.tubes - listed.size() << " names never come";
      return false;
    }
    listed.insert(listed.end(), names->begin(), names->end());
    return listed.size() < size.tubes;
  }
  void begin() { size = engine.list_tubes(producer); }
  static Words sorted(Words words) {
    std::sort(words.begin(), words.end());
    return words;
  }

  TubeListSize size;
  Words listed;
  bool lost = false;
  int empty_steps = 0;
};

TEST_F(EngineListing, HasAllTubesInTheirOrderAndTellsItsLength) {
  make(300);
  begin();
  EXPECT_EQ(size.tubes, 301u);
  EXPECT_EQ(size.name_bytes, 7u + 10 * 5 + 90 * 6 + 200 * 7);
  int steps = 1;
  for (; read(); ++steps) EXPECT_EQ(listed.size(), static_cast<std::size_t>(128 * steps));
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(listed, engine.tubes());
}

TEST_F(EngineListing, TubesMadeMeanwhileAreNotInIt) {
  make(200);
  begin();
  const Words before = engine.tubes();
  while (read()) make(400);
  EXPECT_EQ(listed, before);
}

TEST_F(EngineListing, TubesForgottenMeanwhileAreInIt) {
  make(300);
  begin();
  const Words before = engine.tubes();
  ASSERT_TRUE(read());
  EXPECT_EQ(listed.back(), "tube126");
  engine.ignore(worker, "tube0");    // it was listed; the last tube moves to where the list was
  engine.ignore(worker, "tube200");  // it was not
  engine.ignore(worker, "tube298");  // it has just moved to the position of tube200
  while (read()) {
  }
  EXPECT_EQ(sorted(listed), sorted(before));
  EXPECT_EQ(listed[128], "tube299");
  EXPECT_EQ(listed[129], "tube200");
}

TEST_F(EngineListing, ATubeThatIsForgottenAndMadeAgainIsInItOnce) {
  make(300);
  begin();
  const Words before = engine.tubes();
  ASSERT_TRUE(read());
  for (const char* tube : {"tube0", "tube200", "tube299"}) {
    engine.ignore(worker, tube);
    engine.watch(worker, tube);
  }
  while (read()) {
  }
  EXPECT_EQ(sorted(listed), sorted(before));
}

TEST_F(EngineListing, AllTubesMayBeForgottenMeanwhile) {
  make(9'000);
  begin();
  const Words before = engine.tubes();
  ASSERT_TRUE(read());
  engine.disconnect(worker, queue.now());
  while (engine.stats().tubes > 1) engine.advance(queue.now());
  while (read()) {
  }
  EXPECT_EQ(sorted(listed), sorted(before));
}

TEST_F(EngineListing, IsLostWhenTooManyAreForgottenBetweenTwoSteps) {
  make(300);
  for (const int removals : {16'384, 16'385}) {
    listed.clear();
    begin();
    ASSERT_TRUE(read());
    for (int i = 0; i < removals; ++i) {
      engine.watch(worker, "more");
      engine.ignore(worker, "more");
    }
    while (read()) {
    }
    EXPECT_EQ(lost, removals == 16'385);
  }
}

TEST_F(EngineListing, ANewListEndsTheOneBeforeAndADisconnectEndsIt) {
  make(300);
  begin();
  ASSERT_TRUE(read());
  begin();
  listed.clear();
  while (read()) {
  }
  EXPECT_EQ(listed, engine.tubes());
  begin();
  engine.disconnect(producer, queue.now());
  engine.ignore(worker, "tube7");
}

}  // namespace
}  // namespace carillon::queue
