// FireCall: keeps the function that advance() calls for each timer, where the callback of an event
// loop finds it. Allocates nothing.
#pragma once

#include "workloads.h"

namespace carillon::bench {

template <class Timer>
class FireCall {
 public:
  // REQUIRES: `fire` lives as long as timers may fire.
  template <class Fire>
  void set(Fire& fire) {
    with_ = &fire;
    call_ = [](const void* with, Timer& timer) {
      (*static_cast<const Fire*>(with))(timer, timer.payload);
    };
  }

  void operator()(Timer& timer) const { call_(with_, timer); }

 private:
  void (*call_)(const void*, Timer&) = nullptr;
  const void* with_ = nullptr;
};

}  // namespace carillon::bench
