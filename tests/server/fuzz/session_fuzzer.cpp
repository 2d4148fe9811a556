// Feeds arbitrary bytes, cut into pieces, to a session on a store in memory. Nothing may crash, and
// the answer must not depend on the cuts.
//
//   cmake -S . -B build/fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++-14 -DCARILLON_FUZZ=ON
//   cmake --build build/fuzz --target session_fuzzer
//   build/fuzz/session_fuzzer -dict=tests/server/fuzz/beanstalk.dict

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "../test_server.h"

namespace {

using carillon::server::beanstalk::Client;
using carillon::server::beanstalk::TestServer;

// Returns the replies to `bytes`, sent in pieces of `piece` bytes.
std::string answer(std::string_view bytes, std::size_t piece) {
  TestServer server({.max_job_size = 100});
  server.reading_takes_ns = 1;
  server.turn_ns = 7;
  Client client(server);
  std::string replies;
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    replies += client.say(bytes.substr(at, piece));
  replies += client.end_input();
  server.engine.check_invariants();
  return replies;
}

// The answer to `stats` has the CPU time and a random id, which differ between two runs.
bool is_comparable(std::string_view bytes) {
  return bytes.find("stats\r\n") == std::string_view::npos;
}

}  // namespace

// The first byte of the input is the size of the pieces, less one, modulo 32.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = answer(bytes, bytes.size());
  const std::string cut = answer(bytes, data[0] % 32 + std::size_t{1});
  if (is_comparable(bytes) && whole != cut) {
    std::fprintf(stderr, "the answer depends on how the bytes are cut:\n%s\n--- cut\n%s\n",
                 whole.c_str(), cut.c_str());
    std::abort();
  }
  return 0;
}
