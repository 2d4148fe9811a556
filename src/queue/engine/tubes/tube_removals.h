// Remembers the last tubes that were forgotten, while lists of all tubes are being read
// (tubes.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "carillon/require.h"
#include "queue/engine/tubes/tube.h"

namespace carillon::queue {

class TubeRemovals {
 public:
  // A tube that was forgotten, and the last one in the order, which has taken its position.
  struct Removal {
    struct Of {
      explicit Of(const Tube& tube)
          : position(tube.position), made(tube.made), name(tube.record.name) {}
      std::size_t position;
      std::uint64_t made;
      std::string name;
    };
    Of gone;
    Of moved;
  };

  void begin_listing() { ++listings_; }
  // REQUIRES: a list was begun.
  void end_listing() {
    CARILLON_REQUIRE(listings_ > 0);
    if (--listings_ > 0) return;
    dropped_ += noted_.size();
    noted_.clear();
  }

  // The tube will be forgotten. Does nothing unless a list is being read.
  void note(const Tube& gone, const Tube& last) {
    constexpr std::size_t kMost = 16'384;
    if (listings_ == 0) return;
    noted_.push_back({Removal::Of(gone), Removal::Of(last)});
    if (noted_.size() <= kMost) return;
    noted_.pop_front();
    ++dropped_;
  }

  // Removals have numbers from 0. Those from `first` on, and before `end`, are known.
  std::uint64_t first() const { return dropped_; }
  std::uint64_t end() const { return dropped_ + noted_.size(); }
  const Removal& numbered(std::uint64_t number) const { return noted_[number - dropped_]; }

 private:
  std::deque<Removal> noted_;
  std::uint64_t dropped_ = 0;  // the removals before the first noted one
  std::size_t listings_ = 0;
};

}  // namespace carillon::queue
