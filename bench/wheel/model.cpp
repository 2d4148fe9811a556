// One of Carillon's models as a contestant. CMakeLists.txt compiles this file once per model, so
// that inlining in one model has no influence on another.
#include CARILLON_BENCH_HEADER

#include "carillon_systems.h"
#include "contestant.h"

namespace carillon::bench {
namespace {

const Registration<CARILLON_BENCH_SYSTEM> kRegistration({.name = CARILLON_BENCH_NAME,
                                                         .rank = CARILLON_BENCH_RANK,
                                                         .linear = CARILLON_BENCH_LINEAR,
                                                         .huge_pages = CARILLON_BENCH_HUGE_PAGES});

}  // namespace
}  // namespace carillon::bench
