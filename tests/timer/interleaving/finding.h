// What tests say of a search: how much was explored, that nothing was found, or that what was
// broken on purpose was.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>

#include "timer/interleaving/model_atomic.h"

namespace carillon::interleaving {

template <class Program>
void expect_no_fault() {
  const Report report = explore<Program>();
  EXPECT_EQ(report.fault, "");
  std::printf("[ explored ] %llu schedules, %llu states\n",
              static_cast<unsigned long long>(report.schedules),
              static_cast<unsigned long long>(report.states));
  ::testing::Test::RecordProperty("schedules", std::to_string(report.schedules));
}

// The search can fail: it finds what is wrong with a program that is broken.
template <class Program>
void expect_fault(const char* what) {
  const Report report = explore<Program>();
  EXPECT_EQ(report.fault.substr(0, std::string(what).size()), what)
      << "after " << report.schedules << " schedules";
}

}  // namespace carillon::interleaving
