// What the fuzzer of the beanstalk protocol does with an input: bytes go to a session on a store in
// memory. Nothing may crash, and the answer must not depend on how the bytes are cut. The fuzzer
// (session_fuzzer.cpp) passes what libFuzzer makes up; corpus_test.cpp passes the corpus and
// changes of it in each run of the tests.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "../test_server.h"

namespace carillon::server::beanstalk {

// Returns the replies to `bytes`, sent in pieces of `piece` bytes.
inline std::string answer_session(std::string_view bytes, std::size_t piece) {
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

// The first byte is the size of the pieces, less one, modulo 32. Returns what is wrong, or an empty
// text.
inline std::string wrong_with_session(std::string_view input) {
  if (input.size() < 2) return {};
  const std::string_view bytes = input.substr(1);
  const std::string whole = answer_session(bytes, bytes.size());
  const std::string cut =
      answer_session(bytes, static_cast<unsigned char>(input[0]) % 32 + std::size_t{1});
  // The answer to `stats` has the CPU time and a random id, which differ between two runs.
  if (whole == cut || bytes.find("stats\r\n") != std::string_view::npos) return {};
  return "the answer depends on how the bytes are cut:\n" + whole + "\n--- cut\n" + cut;
}

}  // namespace carillon::server::beanstalk
