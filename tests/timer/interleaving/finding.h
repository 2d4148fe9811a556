// Expectations of the tests: a search finds no fault, or it finds a fault that was made on purpose.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>

#include "timer/interleaving/model_atomic.h"

namespace carillon::interleaving {

// Expects that the search finds no fault, and prints how much it has explored.
template <class Program>
void expect_no_fault() {
  const Report report = explore<Program>();
  EXPECT_EQ(report.fault, "");
  std::printf("[ explored ] %llu schedules, %llu states\n",
              static_cast<unsigned long long>(report.schedules),
              static_cast<unsigned long long>(report.states));
  ::testing::Test::RecordProperty("schedules", std::to_string(report.schedules));
}

// Expects that the search finds a fault that begins with `what`, which shows that it can find one.
template <class Program>
void expect_fault(const char* what) {
  const Report report = explore<Program>();
  EXPECT_EQ(report.fault.substr(0, std::string(what).size()), what)
      << "after " << report.schedules << " schedules";
}

}  // namespace carillon::interleaving
