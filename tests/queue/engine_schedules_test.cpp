// Schedules: when they fire, and what they do when something is in the way.
// Rows Q5 and Q6 of the product's table.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "carillon/queue/job_bulk.h"
#include "queue/test_calendar.h"
#include "queue/virtual_queue.h"

namespace carillon::queue {
namespace {

using What = ScheduleEvent::What;

class SchedulesTest : public testing::Test {
 protected:
  // At 2023-11-14T22:13:20Z.
  SchedulesTest() : queue({.calendar = TestCalendar::calendar(), .step = 16}) {}
  void TearDown() override { engine().check_invariants(); }

  Engine& engine() { return queue.engine(); }
  void set(const Schedule& schedule, const std::string& name = "s") {
    EXPECT_TRUE(engine().set_schedule(queue.now(), name, schedule).done);
  }
  static Schedule every(Millis ms, Overlap overlap = Overlap::kAllow) {
    return {.body = "tick", .every = ms, .overlap = overlap};
  }
  static Schedule daily(const std::string& time, const std::string& zone = "UTC") {
    return {.body = "tick", .cron = "daily " + time, .zone = zone};
  }
  ScheduleRecord record(const std::string& name = "s") {
    return engine().schedule(queue.now(), name, 0)->record;
  }
  // Calls the engine until nothing is due any more.
  void settle() {
    for (auto wake = engine().next_wakeup(); wake && *wake <= queue.now().mono_ns;
         wake = engine().next_wakeup())
      engine().advance(queue.now());
  }
  // Calls the engine whenever it wants to be called.
  void pass(Millis ms) {
    const std::uint64_t end = queue.now().mono_ns + ms * kMs;
    while (queue.now().mono_ns < end) {
      const std::uint64_t wake = engine().next_wakeup().value_or(end);
      queue.add_ns(std::clamp(wake, queue.now().mono_ns, end) - queue.now().mono_ns);
      settle();
    }
    settle();
  }
  // The engine sees it.
  void set_clock_ahead(Millis ms) { step_clock(static_cast<std::int64_t>(ms)); }
  void set_clock_back(Millis ms) { step_clock(-static_cast<std::int64_t>(ms)); }
  void step_clock(std::int64_t ms) {
    queue.step_wall_clock(ms);
    queue.pass(1);
    settle();
  }
  // For 38 s the clock is 30 days ahead.
  void expect_wrong_clock_caught_up(bool restarts) {
    Schedule schedule = every(5 * kSecond);
    schedule.catch_up = CatchUp::kAll;
    schedule.catch_up_window = kHour;
    set(schedule);
    pass(10 * kSecond);
    set_clock_ahead(30 * kDay);
    pass(38 * kSecond);
    if (restarts) queue.restart();
    while (work()) {
    }
    if (restarts) {
      queue.step_wall_clock(-static_cast<std::int64_t>(30 * kDay));
      queue.restart();
      pass(1);
    } else {
      set_clock_back(30 * kDay);
    }
    EXPECT_EQ(jobs(), (Seconds{15, 20, 25, 30, 35, 40, 45}));
    pass(10 * kSecond);
    EXPECT_EQ(jobs(), (Seconds{15, 20, 25, 30, 35, 40, 45, 50, 55}));
  }
  // Returns the due times of the jobs that are there, in s since the test began.
  std::vector<UtcMs> jobs() {
    std::vector<UtcMs> due;
    for (const TubeRecord& tube : queue.store().recover().tubes) {
      for (const JobRecord& job : queue.store().scan_due(tube.number, {}, 1'000'000))
        due.push_back((job.due - kStart) / kSecond);
    }
    std::sort(due.begin(), due.end());
    return due;
  }
  // Works off one ready job, and returns false if no job is ready.
  bool work(const std::string& tube = "default") {
    const ClientId worker = engine().connect();
    engine().watch(worker, tube);
    const auto got = engine().reserve(worker, queue.now(), 0);
    const bool worked = got->kind == Delivery::Kind::kReserved;
    if (worked) engine().remove(worker, queue.now(), got->job.id);
    engine().disconnect(worker, queue.now());
    return worked;
  }
  // Each as "what at (s since the test began) x count".
  std::vector<std::string> events() {
    std::vector<std::string> words;
    const char* const names[] = {"missed", "overlap", "paused", "gap", "twice", "broken"};
    for (const ScheduleEvent& event : engine().take_schedule_events()) {
      const std::uint64_t at =
          event.occurrence < kStart ? 0 : (event.occurrence - kStart) / kSecond;
      words.push_back(names[static_cast<int>(event.what)] + (" " + std::to_string(at)) + " x " +
                      std::to_string(event.count));
    }
    return words;
  }
  // Returns what went wrong with what is due now.
  std::string complaint() {
    try {
      settle();
    } catch (const StoreError& error) {
      return error.what();
    }
    return "";
  }
  std::string refusal(const Schedule& schedule, const std::string& name = "s") {
    try {
      engine().set_schedule(queue.now(), name, schedule);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "none";
  }

  static constexpr UtcMs kStart = 1'700'000'000'000;
  VirtualQueue queue;
  using Seconds = std::vector<UtcMs>;
  using Events = std::vector<std::string>;
};

TEST_F(SchedulesTest, PutsAJobEachTimeAndNotAMillisecondBefore) {
  Schedule schedule = every(10 * kSecond);
  schedule.tube = "reports";
  schedule.priority = 7;
  schedule.ttr = 5 * kSecond;
  set(schedule);
  pass(9'999);
  EXPECT_EQ(jobs(), Seconds{});
  pass(1);
  EXPECT_EQ(jobs(), (Seconds{10}));
  pass(25 * kSecond);
  EXPECT_EQ(jobs(), (Seconds{10, 20, 30}));
  const auto stats = engine().job_stats(queue.now(), record().last_job);
  EXPECT_EQ(stats->tube, "reports");
  EXPECT_EQ(stats->record.priority, 7u);
  EXPECT_EQ(stats->record.ttr, 5'000u);
  EXPECT_EQ(queue.store().body(record().last_job), "tick");
  EXPECT_EQ(record().fired, 3u);
  EXPECT_EQ(record().last_occurrence, kStart + 30'000);
  EXPECT_EQ(record().spans.size(), 1u);
  EXPECT_EQ(events(), Events{});
}

TEST_F(SchedulesTest, FollowTheCalendarOfTheirZone) {
  set(daily("02:30", "Later"));
  const auto view = engine().schedule(queue.now(), "s", 2);
  ASSERT_EQ(view->next.size(), 2u);
  EXPECT_EQ(view->next[0] % kDay, 5 * kHour + 30 * kMinute);
  EXPECT_EQ(view->next[1], view->next[0] + kDay);
  pass(view->next[0] - queue.utc() - 1);
  EXPECT_EQ(record().fired, 0u);
  pass(1);
  EXPECT_EQ(record().fired, 1u);
}

TEST_F(SchedulesTest, StartWhereTheyAreTold) {
  Schedule schedule = every(kHour);
  schedule.start = kStart - 10 * kHour - kMinute;
  set(schedule);
  pass(kHour);
  EXPECT_EQ(jobs(), (Seconds{3'540}));
  schedule.start = kStart + kDay;
  set(schedule, "later");
  pass(kDay - kHour - 1);
  EXPECT_EQ(record("later").fired, 0u);
  pass(1);
  EXPECT_EQ(record("later").fired, 1u);
}

// The test begins at 22:13:20.
TEST_F(SchedulesTest, MayStartWithTheYear1970) {
  Schedule schedule = every(kHour);
  schedule.start = 0;
  set(schedule);
  queue.restart(0);
  settle();
  EXPECT_EQ(record().schedule, schedule);
  EXPECT_EQ(engine().schedule(queue.now(), "s", 1)->next.front(), kStart + 2'800 * kSecond);
}

TEST_F(SchedulesTest, SpreadTheSameWayEachTime) {
  Schedule schedule = every(kHour);
  schedule.spread = 10 * kMinute;
  std::vector<UtcMs> due;
  for (const char* name : {"a", "b", "c", "d"}) set(schedule, name);
  pass(kHour);
  const Seconds first = jobs();
  ASSERT_EQ(first.size(), 4u);
  EXPECT_GE(first.front(), 3'600u);
  EXPECT_LT(first.back(), 4'200u);
  EXPECT_GT(first.back(), first.front());
  EXPECT_FALSE(work() && first.front() > 3'600);

  VirtualQueue again({.calendar = {}});
  for (const char* name : {"a", "b", "c", "d"})
    again.engine().set_schedule(again.now(), name, schedule);
  again.pass(kHour);
  const auto records = again.store().scan_due(1, {}, 10);
  ASSERT_EQ(records.size(), 4u);
  for (std::size_t n = 0; n < 4; ++n) EXPECT_EQ((records[n].due - kStart) / kSecond, first[n]);
}

// --- When a server was down.

TEST_F(SchedulesTest, WhatIsMissedByALittleFires) {
  Schedule schedule = every(5 * kSecond);
  schedule.catch_up = CatchUp::kNone;
  set(schedule);
  queue.restart(10 * kSecond);
  settle();
  EXPECT_EQ(jobs(), (Seconds{5, 10}));
  EXPECT_EQ(events(), Events{});
}

TEST_F(SchedulesTest, TheLastMissedOneIsNotSkippedByTheClocks) {
  pass(1'711'752'000'000 - kStart);  // 2024-03-29T23:00:00Z; the clocks go forward on the 31st
  Schedule skips = daily("02:30", "Summer");
  skips.run_after_gap = false;
  set(skips);
  queue.restart(2 * kDay);
  settle();
  EXPECT_EQ(record().fired, 1u);
  EXPECT_EQ(record().last_occurrence, 1'711'762'200'000u);  // 2024-03-30T01:30:00Z
}

TEST_F(SchedulesTest, NoneOfTheMissedFire) {
  Schedule schedule = every(kMinute);
  schedule.catch_up = CatchUp::kNone;
  set(schedule);
  queue.restart(10 * kMinute + 30 * kSecond);
  settle();
  EXPECT_EQ(jobs(), Seconds{});
  EXPECT_EQ(events(), Events{"missed 60 x 10"});
  EXPECT_EQ(record().skipped, 10u);
  pass(30 * kSecond);
  EXPECT_EQ(jobs(), Seconds{660});
}

TEST_F(SchedulesTest, TheLastOfTheMissedFires) {
  set(every(kMinute));
  queue.restart(10 * kMinute + 30 * kSecond);
  settle();
  EXPECT_EQ(jobs(), Seconds{600});
  EXPECT_EQ(events(), Events{"missed 60 x 9"});
  set(daily("12:00"), "noon");
  queue.restart(400 * kDay);
  settle();
  EXPECT_EQ(record("noon").last_occurrence % kDay, 12 * kHour);
  EXPECT_LT(queue.utc() - record("noon").last_occurrence, kDay);
  EXPECT_EQ(record("noon").skipped, 399u);
}

TEST_F(SchedulesTest, AllOfTheMissedFireWithinTheWindow) {
  Schedule schedule = every(kMinute);
  schedule.catch_up = CatchUp::kAll;
  schedule.catch_up_window = 4 * kMinute;
  set(schedule);
  queue.restart(10 * kMinute + 30 * kSecond);
  settle();
  EXPECT_EQ(jobs(), (Seconds{420, 480, 540, 600}));
  EXPECT_EQ(events(), Events{"missed 60 x 6"});
}

TEST_F(SchedulesTest, ManyMissedFireInSteps) {
  Schedule schedule = every(kMinute);
  schedule.catch_up = CatchUp::kAll;
  schedule.catch_up_window = kDay;
  set(schedule);
  queue.restart(kDay);
  queue.pass(0);
  EXPECT_EQ(jobs().size(), 16u);  // options.step
  queue.pass(0);
  EXPECT_EQ(jobs().size(), 32u);
  settle();
  EXPECT_EQ(jobs().size(), 1'440u);
  EXPECT_EQ(record().spans.size(), 1u);
}

TEST_F(SchedulesTest, ManyThatAreCountedAreCountedInSteps) {
  for (int n = 0; n < 16; ++n) set(every(kSecond), "s" + std::to_string(n));
  queue.restart(kHour);
  queue.pass(0);
  EXPECT_EQ(jobs().size(), 1u);
  settle();
  EXPECT_EQ(jobs().size(), 16u * 11);
}

TEST_F(SchedulesTest, MissedOnesAreCountedUpToABound) {
  Schedule schedule = every(kSecond);
  schedule.catch_up = CatchUp::kNone;
  set(schedule);
  queue.restart(365 * kDay);
  settle();
  EXPECT_EQ(events(), Events{"missed 1 x 1000"});
}

// --- Overlap.

TEST_F(SchedulesTest, AnOverlapIsSkipped) {
  set(every(kMinute, Overlap::kSkip));
  pass(3 * kMinute);
  EXPECT_EQ(jobs(), Seconds{60});
  EXPECT_EQ(events(), (Events{"overlap 120 x 1", "overlap 180 x 1"}));
  EXPECT_TRUE(work());
  pass(kMinute);
  EXPECT_EQ(jobs(), Seconds{240});
  EXPECT_EQ(record().fired, 2u);
  EXPECT_EQ(record().skipped, 2u);
}

// Damage hides the job, so no worker gets it.
TEST_F(SchedulesTest, AJobThatCannotBeReadCountsAsGoneAndIsToldOnce) {
  for (const Overlap overlap : {Overlap::kSkip, Overlap::kQueue}) {
    SCOPED_TRACE(static_cast<int>(overlap));
    const std::string name = "s" + std::to_string(static_cast<int>(overlap));
    set(every(kMinute, overlap), name);
    pass(kMinute);
    const JobId lost = record(name).last_job;
    queue.store().faults.record = lost;
    queue.restart();
    queue.add_ns(kMinute * kMs);
    EXPECT_EQ(complaint().find("schedule " + name + ": its last job, " + std::to_string(lost) +
                               ", cannot be read and counts as gone, so the schedule goes on"),
              0u);
    EXPECT_EQ(record(name).fired, 2u);
    EXPECT_NE(record(name).last_job, lost);
    pass(kMinute);
    EXPECT_EQ(record(name).fired, 2u);  // the second job is there
    EXPECT_TRUE(engine().remove_schedule(queue.now(), name).done);
    queue.store().faults.record = 0;
    queue.restart();
    while (work()) {
    }
  }
}

TEST_F(SchedulesTest, AJobInMemoryOverlapsThoughItsRecordIsDamaged) {
  set(every(kMinute, Overlap::kSkip));
  pass(kMinute);
  queue.store().faults.record = record().last_job;
  pass(kMinute);
  EXPECT_EQ(events(), Events{"overlap 120 x 1"});
  queue.store().faults.record = 0;
}

TEST_F(SchedulesTest, AnErrorThatMayPassNamesTheSchedule) {
  set(every(kMinute, Overlap::kSkip));
  pass(kMinute);
  queue.store().faults.record = record().last_job;
  queue.restart();
  queue.store().faults.records = true;
  queue.add_ns(kMinute * kMs);
  EXPECT_EQ(complaint(), "schedule s: input/output error");
  EXPECT_EQ(record().fired, 1u);
  queue.store().faults = {};
  queue.restart();
}

TEST_F(SchedulesTest, AReservedJobOverlapsAndABuriedOneDoesNot) {
  set(every(kMinute, Overlap::kSkip));
  pass(kMinute);
  const ClientId worker = engine().connect();
  const auto got = engine().reserve(worker, queue.now(), 0);
  engine().touch(worker, queue.now(), got->job.id);
  pass(kMinute);
  EXPECT_EQ(events(), Events{"overlap 120 x 1"});
  const auto again = engine().reserve(worker, queue.now(), 0);
  const JobId id = again->kind == Delivery::Kind::kReserved ? again->job.id : got->job.id;
  EXPECT_TRUE(engine().bury(worker, queue.now(), id, 0).done);
  pass(kMinute);
  EXPECT_EQ(events(), Events{});
  EXPECT_EQ(record().fired, 2u);
}

TEST_F(SchedulesTest, OneOverlapWaitsUntilTheJobIsGone) {
  set(every(kMinute, Overlap::kQueue));
  pass(3 * kMinute + 30 * kSecond);
  EXPECT_EQ(jobs(), Seconds{60});
  EXPECT_EQ(events(), Events{"overlap 180 x 1"});  // the one at 120 waits
  EXPECT_EQ(record().waiting, kStart + 120 * kSecond);
  EXPECT_EQ(record().fired, 1u);
  EXPECT_TRUE(work());
  settle();
  EXPECT_EQ(jobs(), Seconds{120});
  EXPECT_EQ(record().waiting, 0u);
  EXPECT_EQ(record().last_occurrence, kStart + 120 * kSecond);
  EXPECT_TRUE(work());
  pass(kMinute);
  EXPECT_EQ(jobs(), Seconds{240});
}

TEST_F(SchedulesTest, WhatWaitsGoesOnWaitingIfOverlapsAreSkippedFromNowOn) {
  set(every(kMinute, Overlap::kQueue));
  pass(2 * kMinute);
  set(every(kMinute, Overlap::kSkip));
  settle();
  EXPECT_EQ(jobs(), Seconds{60});
  EXPECT_TRUE(work());
  settle();
  EXPECT_EQ(jobs(), Seconds{120});
  EXPECT_EQ(record().waiting, 0u);
}

TEST_F(SchedulesTest, WhatWaitsFiresAtTheResumeIfTheJobHasGoneDuringThePause) {
  set(every(kMinute, Overlap::kQueue));
  pass(2 * kMinute);
  EXPECT_TRUE(engine().pause_schedule(queue.now(), "s").done);
  EXPECT_TRUE(work());
  settle();
  EXPECT_EQ(jobs(), Seconds{});
  EXPECT_TRUE(engine().resume_schedule(queue.now(), "s").done);
  settle();
  EXPECT_EQ(jobs(), Seconds{120});
}

// --- Pause, trigger, change, remove.

TEST_F(SchedulesTest, APauseSkipsWhatComesMeanwhileOverRestartsToo) {
  set(every(kMinute));
  EXPECT_TRUE(engine().pause_schedule(queue.now(), "s").done);
  EXPECT_EQ(engine().next_wakeup(), std::nullopt);
  pass(2 * kMinute);
  queue.restart(kMinute);
  settle();
  EXPECT_TRUE(engine().schedule(queue.now(), "s", 5)->next.empty());
  EXPECT_TRUE(engine().resume_schedule(queue.now(), "s").done);
  EXPECT_EQ(events(), Events{"paused 60 x 3"});
  pass(kMinute);
  EXPECT_EQ(jobs(), Seconds{240});
  EXPECT_TRUE(engine().resume_schedule(queue.now(), "s").done);
  EXPECT_FALSE(engine().pause_schedule(queue.now(), "none").done);
  EXPECT_FALSE(engine().resume_schedule(queue.now(), "none").done);
}

TEST_F(SchedulesTest, ATriggerPutsAJobAtOnceAndChangesNoOccurrence) {
  set(every(kMinute, Overlap::kSkip));
  engine().pause_schedule(queue.now(), "s");
  pass(5 * kSecond);
  const auto batch = engine().trigger_schedule(queue.now(), "s");
  ASSERT_TRUE(batch);
  const JobId id = batch->jobs.front().id;
  EXPECT_EQ(queue.store().body(id), "tick");
  EXPECT_EQ(jobs(), Seconds{5});
  EXPECT_EQ(record().last_job, id);
  EXPECT_EQ(record().fired, 0u);
  EXPECT_FALSE(engine().trigger_schedule(queue.now(), "none"));
  engine().resume_schedule(queue.now(), "s");
  pass(55 * kSecond);
  EXPECT_EQ(events(), Events{"overlap 60 x 1"});  // the triggered job is there
  EXPECT_TRUE(work());
  pass(kMinute);
  EXPECT_EQ(jobs(), Seconds{120});
}

TEST_F(SchedulesTest, OtherTimesCountFromTheChangeOn) {
  set(every(kMinute));
  pass(90 * kSecond);
  Schedule other = every(45 * kSecond);
  other.body = "other";
  other.tube = "elsewhere";
  set(other);
  pass(50 * kSecond);
  EXPECT_EQ(jobs(), (Seconds{60, 135}));
  EXPECT_EQ(queue.store().body(record().last_job), "other");
  set(daily("00:00"));  // 6400 s after the start
  pass(6'400 * kSecond - 140 * kSecond);
  EXPECT_EQ(jobs(), (Seconds{60, 135, 6'400}));
  EXPECT_EQ(record().fired, 3u);
}

TEST_F(SchedulesTest, ARemovedOnePutsNoMoreAndItsJobsStay) {
  Schedule schedule = every(kMinute);
  schedule.tube = "reports";
  set(schedule);
  pass(kMinute);
  EXPECT_TRUE(engine().remove_schedule(queue.now(), "s").done);
  EXPECT_FALSE(engine().remove_schedule(queue.now(), "s").done);
  EXPECT_FALSE(engine().schedule(queue.now(), "s", 1));
  pass(kHour);
  EXPECT_EQ(jobs(), Seconds{60});
  EXPECT_TRUE(work("reports"));
  EXPECT_FALSE(engine().tube_stats(queue.now(), "reports"));
  queue.restart();
  EXPECT_FALSE(engine().schedule(queue.now(), "s", 1));
}

TEST_F(SchedulesTest, AreListedByName) {
  for (const char* name : {"c", "a", "d", "b"}) set(every(kMinute), name);
  EXPECT_EQ(engine().schedules("", 2), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(engine().schedules("b", 5), (std::vector<std::string>{"c", "d"}));
}

// --- Clocks.

TEST_F(SchedulesTest, ATimeThatTheClocksSkipIsSkippedOrRunAfter) {
  pass(1'711'800'000'000 - kStart);  // 2024-03-30T12:00:00Z, the day before
  Schedule skips = daily("02:30", "Summer");
  skips.run_after_gap = false;
  set(skips, "skips");
  set(daily("02:30", "Summer"), "after");
  EXPECT_EQ(engine().schedule(queue.now(), "skips", 1)->next.front(), 1'711'931'400'000u);
  EXPECT_EQ(engine().schedule(queue.now(), "after", 1)->next.front(), 1'711'846'800'000u);
  pass(kDay);
  EXPECT_EQ(record("skips").fired, 0u);
  EXPECT_EQ(record("skips").skipped, 1u);
  EXPECT_EQ(record("after").fired, 1u);
  EXPECT_EQ(events().size(), 1u);
}

// The search for the next time would go on until the year 9999.
TEST_F(SchedulesTest, TimesThatTheClocksAlwaysSkipAreNotSearchedForEver) {
  int looks = 0;
  VirtualQueue odd({.calendar = [&looks](const std::string&, const std::string&) -> Timetable {
    return [&looks](UtcMs after) -> std::optional<Occurrence> {
      ++looks;
      return Occurrence{.at = after + kDay, .clocks = Occurrence::Clocks::kAfterGap};
    };
  }});
  Schedule skips = daily("02:30");
  skips.run_after_gap = false;
  odd.engine().set_schedule(odd.now(), "s", skips);
  looks = 0;
  EXPECT_TRUE(odd.engine().schedule(odd.now(), "s", 5)->next.empty());
  EXPECT_LE(looks, 200);
}

TEST_F(SchedulesTest, ATimeThatTheClocksShowTwiceRunsOnceAndThatIsTold) {
  pass(1'729'944'000'000 - kStart);  // 2024-10-26T12:00:00Z
  set(daily("02:30", "Summer"));
  pass(kDay);
  EXPECT_EQ(record().fired, 1u);
  EXPECT_EQ(record().last_occurrence, 1'729'989'000'000u);  // 00:30Z, the first time
  const auto told = engine().take_schedule_events();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].what, What::kShownTwice);
  EXPECT_EQ(told[0].occurrence, 1'729'989'000'000u);
}

TEST_F(SchedulesTest, AClockThatWasAheadForAWhileLosesNoOccurrence) {
  Schedule schedule = every(kMinute);
  schedule.catch_up = CatchUp::kNone;
  set(schedule);
  pass(kMinute);
  queue.step_wall_clock(static_cast<std::int64_t>(10 * kDay));
  pass(kMinute);  // skips ten days, and fires the two after them
  EXPECT_EQ(record().fired, 3u);
  queue.step_wall_clock(-static_cast<std::int64_t>(10 * kDay));
  pass(0);
  queue.restart();
  pass(kMinute);
  EXPECT_EQ(record().fired, 5u);
  EXPECT_EQ(record().last_occurrence, kStart + 3 * kMinute);
  pass(10 * kDay);
  EXPECT_EQ(record().fired, 10u * 24 * 60 + 3);
  EXPECT_EQ(record().spans.size(), 1u);
}

// At 03:59:56 the clock goes an hour ahead, and is put right at 04:00:02.
TEST_F(SchedulesTest, AnOccurrenceThatFallsIntoAWrongClockFiresWhenItIsPutRight) {
  Schedule schedule = daily("04:00");
  schedule.catch_up = CatchUp::kNone;
  set(schedule);
  const UtcMs four = engine().schedule(queue.now(), "s", 1)->next.front();
  pass(four - kStart - 4 * kSecond);
  set_clock_ahead(kHour);
  pass(6 * kSecond);
  EXPECT_EQ(record().fired, 0u);
  set_clock_back(kHour);
  EXPECT_EQ(record().fired, 1u);
  EXPECT_EQ(record().last_occurrence, four);
  pass(kDay - kHour);
  EXPECT_EQ(record().fired, 1u);
}

TEST_F(SchedulesTest, WhatFellIntoAWrongClockIsCaughtUpWhenItIsPutRight) {
  expect_wrong_clock_caught_up(false);
}

TEST_F(SchedulesTest, WhatFellIntoAWrongClockIsCaughtUpOverRestarts) {
  expect_wrong_clock_caught_up(true);
}

TEST_F(SchedulesTest, AWrongClockBringsNothingFromBeforeASchedulesTime) {
  pass(10 * kSecond);
  set_clock_ahead(kHour);
  pass(20 * kSecond);
  Schedule schedule{.body = "tick", .every = 5 * kSecond, .start = kStart};
  schedule.catch_up = CatchUp::kAll;
  schedule.catch_up_window = kMinute;
  set(schedule);
  pass(10 * kSecond);
  while (work()) {
  }
  set_clock_back(kHour);
  EXPECT_EQ(jobs(), (Seconds{35, 40}));
}

TEST_F(SchedulesTest, AClockThatIsBehindForAWhileBringsNothingOfLongAgo) {
  set(every(kMinute, Overlap::kSkip));
  for (int n = 0; n < 2; ++n) {
    pass(kHour);
    set_clock_back(kHour);
    set_clock_ahead(kHour);
  }
  EXPECT_TRUE(work());
  EXPECT_FALSE(work());
  EXPECT_EQ(record().fired, 1u);
}

TEST_F(SchedulesTest, AJobThatWasMovedToAnotherTubeIsWaitedForNoMore) {
  for (const Overlap overlap : {Overlap::kSkip, Overlap::kQueue}) {
    set(every(kMinute, overlap));
    pass(kMinute);
    ASSERT_EQ(record().fired, overlap == Overlap::kSkip ? 1u : 3u);
    if (overlap == Overlap::kQueue) pass(kMinute);  // one waits
    JobBulk move{.action = JobBulk::Action::kMove, .list = {.tube = "default"}, .to = "elsewhere"};
    while (!move.ended()) engine().change_jobs(queue.now(), move);
    settle();
    if (overlap == Overlap::kSkip) pass(kMinute);
    EXPECT_EQ(record().fired, overlap == Overlap::kSkip ? 2u : 4u);
    EXPECT_TRUE(work());
  }
}

// --- What cannot be done.

TEST_F(SchedulesTest, AFailedAppendChangesNothingAndIsTriedAgain) {
  set(every(kMinute));
  queue.add_ns(kMinute * kMs);
  queue.store().faults.appends = true;
  EXPECT_THROW(engine().advance(queue.now()), StoreError);
  EXPECT_EQ(record().fired, 0u);
  EXPECT_EQ(jobs(), Seconds{});
  queue.store().faults.appends = false;
  pass(999);
  EXPECT_EQ(jobs(), Seconds{});
  pass(1);
  EXPECT_EQ(jobs(), Seconds{60});
  EXPECT_EQ(record().fired, 1u);
}

TEST_F(SchedulesTest, ATriggerWithATokenPutsOneJob) {
  set(every(kMinute));
  const BatchOrder order{.once = "t", .fingerprint = "7", .tells_job = true};
  const auto first = engine().trigger_schedule(queue.now(), "s", order);
  EXPECT_EQ(first->result, BatchOutcome::Result::kPut);
  engine().remove_schedule(queue.now(), "s");
  const auto again = engine().trigger_schedule(queue.now(), "s", order);
  EXPECT_EQ(again->result, BatchOutcome::Result::kAlready);
  EXPECT_EQ(again->job, first->job);
  EXPECT_EQ(again->jobs.front().id, first->jobs.front().id);
  const auto other = engine().trigger_schedule(queue.now(), "s", {.once = "t", .fingerprint = "8"});
  EXPECT_EQ(other->result, BatchOutcome::Result::kOtherBatch);
  EXPECT_FALSE(engine().trigger_schedule(queue.now(), "s", {.once = "u"}));
}

TEST_F(SchedulesTest, AFailedCommandChangesNothing) {
  set(every(kMinute));
  queue.store().faults.appends = true;
  EXPECT_THROW(set(daily("00:00")), StoreError);
  EXPECT_THROW(set(daily("00:00"), "new"), StoreError);
  EXPECT_THROW(engine().remove_schedule(queue.now(), "s"), StoreError);
  EXPECT_THROW(engine().pause_schedule(queue.now(), "s"), StoreError);
  EXPECT_THROW(engine().trigger_schedule(queue.now(), "s"), StoreError);
  EXPECT_THROW(engine().trigger_schedule(queue.now(), "s", {.once = "t"}), StoreError);
  queue.store().faults.appends = false;
  EXPECT_EQ(engine().schedules("", 9), std::vector<std::string>{"s"});
  EXPECT_EQ(record().schedule.every, kMinute);
  EXPECT_EQ(jobs(), Seconds{});
  pass(kMinute);
  EXPECT_EQ(jobs(), Seconds{60});
}

TEST_F(SchedulesTest, WhatCouldNotBeStoredIsNotTold) {
  set(every(kMinute, Overlap::kSkip));
  pass(kMinute);
  queue.add_ns(kMinute * kMs);
  queue.store().faults.appends = true;
  EXPECT_THROW(engine().advance(queue.now()), StoreError);
  queue.store().faults.appends = false;
  engine().trigger_schedule(queue.now(), "s");
  EXPECT_EQ(events(), Events{});
  pass(kSecond);
  EXPECT_EQ(events(), Events{"overlap 120 x 1"});
}

TEST_F(SchedulesTest, WaitWhilePutsAreRefused) {
  bool refuses = true;
  VirtualQueue full({.refuses_puts = [&refuses] { return refuses; }});
  full.engine().set_schedule(full.now(), "s", every(kMinute));
  for (int n = 0; n < 65; ++n) full.pass(kSecond);
  EXPECT_EQ(full.engine().schedule(full.now(), "s", 0)->record.fired, 0u);
  refuses = false;
  full.pass(kSecond);
  EXPECT_EQ(full.engine().schedule(full.now(), "s", 0)->record.fired, 1u);
}

TEST_F(SchedulesTest, WhatIsWrongIsRefusedInWords) {
  EXPECT_EQ(refusal({}),
            "a schedule has a cron expression, or a time after which it occurs every time");
  EXPECT_EQ(refusal(every(999)), "every: 999 ms; at least 1000");
  EXPECT_EQ(refusal(every(kMaxScheduleSpan + 1)),
            "every: 315532800001 ms; at most 315532800000 (ten years)");
  EXPECT_EQ(refusal(daily("xx")), "cron: \"daily xx\" is not daily HH:MM");
  EXPECT_EQ(refusal(daily("00:00", "Mars")), "zone: \"Mars\" is not known");
  EXPECT_EQ(refusal(every(kMinute), std::string(201, 'n')), "name: 201 bytes; 1 to 200");
  Schedule large = every(kMinute);
  large.body = std::string((64 << 10) + 1, 'b');
  EXPECT_EQ(refusal(large), "body: 65537 bytes; at most 65536");
  large.body.pop_back();
  EXPECT_EQ(refusal(large), "none");
  Schedule both = daily("00:00");
  both.start = 5;
  EXPECT_EQ(refusal(both), "start: needs every");
  Schedule jobs = every(kMinute);
  jobs.group = std::string(201, 'g');
  EXPECT_EQ(refusal(jobs), "group: 201 bytes; at most 200");
  jobs.group.clear();
  jobs.expires_in = kMaxScheduleSpan + 1;
  EXPECT_EQ(refusal(jobs), "expires-in: 315532800001 ms; at most 315532800000 (ten years)");
  jobs.expires_in = 0;
  jobs.retry.jitter = 101;
  EXPECT_EQ(refusal(jobs), "queue engine: the jitter is 101 percent; the most is 100");
  jobs.retry.jitter = 0;
  jobs.attributes = std::string(kMaxAttributes + 1, ' ');
  EXPECT_EQ(refusal(jobs), "attributes: 513 bytes; the most is 512");
}

TEST_F(SchedulesTest, TakeNoMoreThanTheyMay) {
  VirtualQueue small({.max_schedule_bytes = 3'000});
  small.engine().set_schedule(small.now(), "a", every(kMinute));
  small.engine().set_schedule(small.now(), "b", every(kMinute));
  EXPECT_THROW(small.engine().set_schedule(small.now(), "c", every(kMinute)), OverLimit);
  small.engine().set_schedule(small.now(), "b", every(kMinute));
  small.engine().remove_schedule(small.now(), "a");
  small.engine().set_schedule(small.now(), "c", every(kMinute));
  EXPECT_EQ(small.engine().schedules("", 9), (std::vector<std::string>{"b", "c"}));
}

TEST_F(SchedulesTest, AnExpressionThatCannotBeReadAnyMoreStopsItsScheduleAlone) {
  MemoryStore store;
  const Now now{.utc_ns = kStart * kMs, .mono_ns = kMs};
  const auto later = [&now](Millis ms) {
    return Now{.utc_ns = now.utc_ns + ms * kMs, .mono_ns = now.mono_ns + ms * kMs};
  };
  {
    Engine first(store, {.calendar = TestCalendar::calendar()}, now);
    first.set_schedule(now, "cron", daily("00:00"));
    first.set_schedule(now, "every", every(kMinute));
  }
  Engine second(store, {}, now);
  const auto told = second.take_schedule_events();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].what, What::kBroken);
  EXPECT_EQ(told[0].name, "cron");
  EXPECT_EQ(told[0].why, "cron: this queue has no calendar");
  EXPECT_EQ(second.schedule(now, "cron", 5)->broken, told[0].why);
  second.advance(later(kMinute));
  EXPECT_EQ(second.schedule(later(kMinute), "every", 0)->record.fired, 1u);
  EXPECT_TRUE(second.trigger_schedule(later(kMinute), "cron"));
}

TEST_F(SchedulesTest, GiveTheirJobsAllThatIsAsked) {
  Schedule schedule = every(kMinute);
  schedule.priority = 7;
  schedule.group = "acme";
  schedule.retry = {.max_attempts = 2, .backoff = 5 * kSecond};
  schedule.attributes = R"({"content_type":"text/plain"})";
  schedule.spread = 30 * kSecond;
  schedule.expires_in = kHour;
  schedule.at_expiry = AtExpiry::kDead;
  set(schedule);
  queue.restart();
  pass(kMinute);
  const JobStats job = *engine().job_stats(queue.now(), 1);
  EXPECT_EQ(job.group, "acme");
  EXPECT_EQ(job.tube, "default");
  EXPECT_EQ(job.record.priority, 7u);
  EXPECT_EQ(job.record.extras->retry, schedule.retry);
  EXPECT_EQ(job.record.extras->attributes, schedule.attributes);
  EXPECT_GT(job.record.due, kStart + kMinute);  // by its part of the spread
  EXPECT_EQ(job.record.extras->expires, job.record.due + kHour);
  EXPECT_EQ(job.record.extras->at_expiry, AtExpiry::kDead);
  EXPECT_TRUE(engine().trigger_schedule(queue.now(), "s"));
  EXPECT_EQ(engine().job_stats(queue.now(), 2)->record.extras->expires, kStart + kMinute + kHour);
}

TEST_F(SchedulesTest, KeepTheirGroupSoThatAFiringNeedsNoOther) {
  VirtualQueue small({.max_tubes = 4});
  Schedule schedule = every(kMinute);
  schedule.tube = "t";
  schedule.group = "g";
  small.engine().set_schedule(small.now(), "s", schedule);  // default, t, and g
  EXPECT_EQ(small.engine().tube_stats(small.now(), "t")->groups, 1u);
  schedule.tube = "u";  // which would be one more, and the group another one
  EXPECT_THROW(small.engine().set_schedule(small.now(), "r", schedule), OverLimit);
  EXPECT_FALSE(small.engine().tube_stats(small.now(), "u"));
  small.engine().check_invariants();
  small.restart();
  small.pass(kMinute);
  EXPECT_EQ(small.engine().group_stats(small.now(), "t", "g")->jobs.ready, 1u);
  small.engine().remove_schedule(small.now(), "s");
  const ClientId client = small.engine().connect();
  small.engine().remove(client, small.now(), 1);
  EXPECT_FALSE(small.engine().tube_stats(small.now(), "t"));
  small.engine().check_invariants();
}

TEST_F(SchedulesTest, AreSetPaused) {
  EXPECT_TRUE(engine().set_schedule(queue.now(), "s", every(kMinute), true).done);
  pass(2 * kMinute);
  EXPECT_EQ(record().fired, 0u);
  set(every(kMinute));
  EXPECT_TRUE(record().paused);
  engine().resume_schedule(queue.now(), "s");
  pass(kMinute);
  EXPECT_EQ(record().fired, 1u);
}

}  // namespace
}  // namespace carillon::queue
