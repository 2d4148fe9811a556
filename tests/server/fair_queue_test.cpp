// The order in which clients are served, and for how long: on a virtual clock, with clients that
// are only numbers.

#include "server/net/fair_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "queue/seed.h"

namespace carillon::server {
namespace {

constexpr std::int64_t kQuantum = 100;
constexpr std::int64_t kNoRound = 1'000'000;  // long enough that the quantum is never less

// A client with commands that each take some time.
struct Customer : FairQueue::Member {
  std::deque<std::int64_t> commands;  // ns each
  std::int64_t used = 0;
  std::vector<std::int64_t> answered;  // when each command was done
};

class Shop {
 public:
  explicit Shop(std::int64_t round = kNoRound) : line(kQuantum, round) {}

  void send(Customer& customer, std::int64_t takes, int times = 1) {
    for (int i = 0; i < times; ++i) customer.commands.push_back(takes);
    line.join(customer);
  }

  // Serves one customer until its credit is used up. Returns nullptr if nobody has work.
  Customer* serve() {
    auto* const next = static_cast<Customer*>(line.next());
    if (next == nullptr) return nullptr;
    EXPECT_GT(next->credit(), 0);
    std::int64_t spent = 0;
    for (auto& all = next->commands; !all.empty() && spent < next->credit(); all.pop_front()) {
      spent += all.front();
      next->answered.push_back(now + spent);
    }
    now += spent;
    next->used += spent;
    if (!next->commands.empty()) line.join(*next);
    line.spent(*next, spent);
    return next;
  }

  FairQueue line;
  std::int64_t now = 0;
};

TEST(FairQueue, ServesInTheOrderInWhichTheyCame) {
  Customer a, b, c;
  Shop shop;
  for (Customer* each : {&a, &b, &c}) shop.send(*each, 10);
  for (Customer* each : {&a, &b, &c}) EXPECT_EQ(shop.serve(), each);
  EXPECT_EQ(shop.serve(), nullptr);
  EXPECT_TRUE(shop.line.empty());
}

TEST(FairQueue, AMemberWithLittleWorkIsServedBeforeThoseWithMuch) {
  std::vector<Customer> greedy(50);
  Customer modest;
  Shop shop;
  for (Customer& each : greedy) shop.send(each, 10, 1'000);
  for (int i = 0; i < 100; ++i) shop.serve();
  shop.send(modest, 10);
  EXPECT_EQ(shop.serve(), &modest);
}

TEST(FairQueue, EqualTimeNotEqualNumbersOfCommands) {
  Customer quick, slow;
  Shop shop;
  shop.send(quick, 1, 100'000);
  shop.send(slow, 350, 1'000);
  while (shop.now < 50'000) shop.serve();
  EXPECT_NEAR(static_cast<double>(quick.used), 25'000, 500);
  EXPECT_NEAR(static_cast<double>(slow.used), 25'000, 500);
}

// A modest client whose second command comes right after its first has to wait for a round.
TEST(FairQueue, ARoundIsNotLongerWithManyMembers) {
  constexpr std::int64_t kRound = 1'000;
  std::vector<Customer> greedy(100);
  Customer modest;
  Shop shop(kRound);
  for (Customer& each : greedy) shop.send(each, 1, 10'000);
  for (int i = 0; i < 1'000; ++i) shop.serve();
  for (int i = 0; i < 20; ++i) {
    shop.send(modest, 1);
    const std::int64_t sent = shop.now;
    while (modest.answered.size() <= static_cast<std::size_t>(i)) shop.serve();
    EXPECT_LE(modest.answered.back() - sent, kRound + 2 * kQuantum);
  }
}

TEST(FairQueue, ALongCommandIsPaidForInLaterRounds) {
  Customer hasty, other;
  Shop shop;
  shop.send(hasty, 1'000);
  EXPECT_EQ(shop.serve(), &hasty);
  shop.send(other, 100, 100);
  shop.send(hasty, 1);  // it waits for its debt of 900 to be paid, though it had no work left
  while (hasty.answered.size() < 2) shop.serve();
  EXPECT_NEAR(static_cast<double>(other.used), 1'000, 2 * kQuantum);
}

TEST(FairQueue, ADebtIsBounded) {
  Customer stopped, other;
  Shop shop;
  shop.send(stopped, 1'000'000'000);  // the machine was asleep
  shop.serve();
  shop.send(other, 100, 1'000);
  shop.send(stopped, 1);
  while (stopped.answered.size() < 2) shop.serve();
  EXPECT_LE(other.used, (FairQueue::kLongestDebt + 2) * kQuantum);
}

// Those that send one command after the other have work all the time: 21 equal shares.
TEST(FairQueue, ManyWithLittleWorkDoNotStopOneWithMuch) {
  Customer busy;
  std::vector<Customer> modest(20);
  Shop shop;
  shop.send(busy, 10, 1'000'000);
  for (Customer& each : modest) shop.send(each, 10);
  while (shop.now < 100'000) {
    Customer* const served = shop.serve();
    if (served != &busy) shop.send(*served, 10);  // each sends its next command at once
  }
  EXPECT_GT(busy.used, 100'000 / 22);
}

// In each round of 1 000 ns, ten clients connect that use up their credit and leave.
TEST(FairQueue, ThoseThatComeAndLeaveDoNotStopOneThatStays) {
  Customer stays;
  std::deque<Customer> others;
  Shop shop;
  shop.send(stays, 10, 1'000'000);
  for (int round = 1; round <= 100; ++round) {
    for (int i = 0; i < 10; ++i) shop.send(others.emplace_back(), 10, 100);
    while (shop.now < std::int64_t{1'000} * round) {
      Customer* const served = shop.serve();
      if (served != &stays) shop.line.leave(*served);
    }
  }
  EXPECT_NEAR(static_cast<double>(stays.used), 50'000, 1'000);
  for (Customer& each : others) shop.line.leave(each);
}

TEST(FairQueue, WhatANewOneHasUsedCountsThoughItHasLeft) {
  Customer stays, leaves, comes;
  Shop shop;
  shop.send(stays, 100, 10);
  shop.serve();
  shop.send(stays, 100);
  shop.send(leaves, 100);
  EXPECT_EQ(shop.serve(), &stays);  // the first quantum of new ones was its own
  EXPECT_EQ(shop.line.next(), &leaves);
  shop.line.leave(leaves);
  shop.line.spent(leaves, 100);
  shop.send(comes, 100);
  EXPECT_EQ(shop.serve(), &stays);
  EXPECT_EQ(shop.serve(), &comes);
}

TEST(FairQueue, AMemberThatHasLeftIsNotServed) {
  Customer a, b;
  Shop shop;
  shop.send(a, 10, 100);
  shop.send(b, 10);
  EXPECT_EQ(shop.serve(), &a);
  shop.line.leave(a);
  shop.line.spent(a, 10);
  EXPECT_EQ(shop.serve(), &b);
  EXPECT_EQ(shop.serve(), nullptr);
  shop.line.leave(a);
  shop.line.leave(b);
}

TEST(FairQueue, JoiningTwiceIsJoiningOnce) {
  Customer a;
  Shop shop;
  shop.line.join(a);
  shop.line.join(a);
  EXPECT_EQ(shop.line.size(), 1u);
  EXPECT_EQ(shop.line.next(), &a);
  EXPECT_EQ(shop.line.size(), 0u);
  EXPECT_EQ(shop.line.next(), nullptr);
}

// Whatever the others do, a client that sends one short command at a time waits for at most one
// quantum and one command of another, and those that always have work get equal shares.
TEST(FairQueue, RandomHistories) {
  const std::uint64_t first = queue::seed_or(1);
  for (std::uint64_t seed = first; seed < first + 20; ++seed) {
    SCOPED_TRACE("CARILLON_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto below = [&random](std::uint64_t n) {
      return static_cast<std::int64_t>(random() % n);
    };
    std::vector<Customer> greedy(2 + random() % 30);
    Customer modest;
    Shop shop;
    constexpr std::int64_t kLongestCommand = 300;
    std::int64_t sent_at = -1;
    for (Customer& each : greedy) shop.send(each, kQuantum, 50);
    for (std::size_t i = 0; i < 2 * greedy.size(); ++i) shop.serve();  // they are new no more
    for (Customer& each : greedy) each.used = 0;
    const auto serve = [&] {
      for (Customer& each : greedy) {
        if (each.commands.empty()) shop.send(each, 1 + below(kLongestCommand), 50);
      }
      return shop.serve();
    };
    while (shop.now < 1'000'000) {
      if (sent_at < 0 && below(10) == 0) {
        shop.send(modest, 1 + below(10));
        sent_at = shop.now;
      }
      if (serve() != &modest) continue;
      ASSERT_LE(modest.answered.back() - sent_at, kQuantum + kLongestCommand + 10);
      sent_at = -1;
      // Before it sends again, the others have a round. One of them may have gone before that.
      for (std::size_t i = 0; i <= greedy.size(); ++i) serve();
    }
    const auto [least, most] =
        std::minmax_element(greedy.begin(), greedy.end(),
                            [](const Customer& a, const Customer& b) { return a.used < b.used; });
    EXPECT_LE(most->used - least->used, 3 * (kQuantum + kLongestCommand));
  }
}

}  // namespace
}  // namespace carillon::server
