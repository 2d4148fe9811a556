// StartError: why the server could not start, in one line that `carillon serve` prints. The line
// says what failed, with which value, and what to do.
#pragma once

#include <stdexcept>

namespace carillon::base {

class StartError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace carillon::base
