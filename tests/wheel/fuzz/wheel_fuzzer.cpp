// The fuzzer of the wheels: plays one stream of bytes on every model, and on pools. Nothing may
// crash, and no contract may be broken.
//
//   cmake --preset fuzz && cmake --build build/fuzz --target wheel_fuzzer
//   build/fuzz/wheel_fuzzer -max_len=300 -max_total_time=300
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "wheel/any_set.h"
#include "wheel/byte_history.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const carillon::testing::AnySetMaker& maker : carillon::testing::all_sets()) {
    try {
      carillon::testing::play({data, size}, maker);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s\n", maker.name.c_str(), error.what());
      std::abort();
    }
  }
  return 0;
}
