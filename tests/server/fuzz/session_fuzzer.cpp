// Feeds arbitrary bytes, cut into pieces, to a session of the beanstalk protocol
// (session_target.h). `make fuzz` builds and runs it.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "session_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(data, data + size);
  const std::string wrong = carillon::server::beanstalk::wrong_with_session(input);
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "%s\n", wrong.c_str());
  std::abort();
}
