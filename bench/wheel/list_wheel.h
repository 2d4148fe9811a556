// ListWheel: the classic cascading wheel, to compare with: five wheels of 256, 64, 64, 64 and 64
// slots. Each slot is a linked list.
//
// It has the shape of Linux's timers before 4.8, on Boost.Intrusive lists. Scheduling links a node
// into the list of its slot, cancelling unlinks it, each tick fires the list of one slot, and each
// 256th tick cascades a slot of a wider wheel. Delays up to 2^32 - 1 ticks.
#pragma once

#include <array>
#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>

namespace carillon::bench {

struct ListNode
    : boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
  std::uint64_t expiry = 0;
};

class ListWheel {
 public:
  void schedule(ListNode& node, std::uint64_t expiry) {
    node.expiry = expiry;
    slot_of(expiry).push_back(node);
  }

  void cancel(ListNode& node) { node.unlink(); }

  void reschedule(ListNode& node, std::uint64_t expiry) {
    node.unlink();
    schedule(node, expiry);
  }

  template <class OnExpire>
  void advance(std::uint64_t to, OnExpire&& on_expire) {
    while (now_ < to) {
      ++now_;
      if (now_ % 256 == 0) cascade();
      List& due = near_[now_ % 256];
      while (!due.empty()) {
        ListNode& node = due.front();
        due.pop_front();
        on_expire(node);
      }
    }
  }

 private:
  using List = boost::intrusive::list<ListNode, boost::intrusive::constant_time_size<false>>;

  List& slot_of(std::uint64_t expiry) {
    const std::uint64_t delay = expiry - now_;
    if (delay < 256) return near_[expiry % 256];
    for (std::size_t wheel = 0; wheel < 3; ++wheel) {
      if (delay < std::uint64_t{1} << (14 + 6 * wheel))
        return far_[wheel][expiry >> (8 + 6 * wheel) & 63];
    }
    return far_[3][expiry >> 26 & 63];
  }

  void cascade() {
    for (std::size_t wheel = 0; wheel < 4; ++wheel) {
      const std::size_t slot = now_ >> (8 + 6 * wheel) & 63;
      List moving;
      moving.swap(far_[wheel][slot]);
      while (!moving.empty()) {
        ListNode& node = moving.front();
        moving.pop_front();
        slot_of(node.expiry).push_back(node);
      }
      if (slot != 0) return;
    }
  }

  std::uint64_t now_ = 0;
  std::array<List, 256> near_;
  std::array<std::array<List, 64>, 4> far_;
};

}  // namespace carillon::bench
