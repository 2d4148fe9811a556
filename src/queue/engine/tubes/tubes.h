// Finds, makes and lists tubes, and forgets them when nothing refers to them any more.
//
//   Tube& mail = tubes.named("mail");                  // makes it if it does not exist
//   Tube& lane = tubes.lane_named(mail, "customer-7"); // groups.h
//   tubes.forget_if_unreferenced(mail);
//
// Owns all tubes and lanes, their order, and the tube `default`, which stays. Invariants: a tube is
// found by its name and by its number; each knows its position; each is referred to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/engine_options.h"
#include "carillon/queue/engine_stats.h"
#include "queue/engine/state/parts.h"
#include "queue/engine/tubes/tube.h"
#include "queue/engine/tubes/tube_directory.h"
#include "queue/engine/tubes/tube_removals.h"

namespace carillon::queue {

class Tubes {
 public:
  Tubes(const EngineOptions& options, EngineCounts& counts, Ripening& ripening, FarJobs& far,
        Retention& retention, Throttle& throttle)
      : options_(options),
        counts_(counts),
        ripening_(ripening),
        far_(far),
        retention_(retention),
        throttle_(throttle) {}
  // At the end, while the other parts are there: takes all timers and waiting clients out.
  void unlink_all();

  // --- One tube

  // These return nullptr if there is no such tube or lane.
  Tube* find(std::string_view name) const { return directory_.find(name); }
  Tube* find(std::uint32_t number) const { return directory_.find(number); }
  Tube* find(const Tube& head, std::string_view group) const {
    return directory_.find(head, group);
  }
  // Throws StoreError if it does not exist: the store is damaged, because each stored job has a
  // tube.
  Tube& numbered(std::uint32_t number) const;
  // Makes the tube if it does not exist. Throws OverLimit.
  Tube& named(std::string_view name);
  // The same for the lane of a group; without a group, returns the tube itself.
  Tube& lane_named(Tube& tube, std::string_view group);
  // The same two, but without a limit.
  Tube& made(std::string_view name);
  Tube& made_lane(Tube& tube, std::string_view group);
  Tube& default_tube() const { return *default_; }
  // Throws OverLimit if there may be no more tubes and watches than there are.
  void refuse_more() const;

  // Forgets a tube without jobs and clients. The tube `default` stays.
  void forget_if_unreferenced(Tube& tube) noexcept;
  void forget_if_unreferenced(std::uint32_t number) noexcept;
  void forget_lane(const Tube& tube, std::string_view group);  // does nothing if it is needed

  // --- All tubes

  // At a start: adds the stored tubes, and makes the tube `default`.
  void take_over(std::vector<TubeRecord> records);
  // In beanstalkd's order, and without lanes.
  const std::deque<Tube*>& in_order() const { return order_; }
  const std::deque<Tube*>& lanes() const { return lanes_; }
  // Calls `call` with each tube and each lane.
  template <class Call>
  void for_each(Call call) const {
    for (Tube* tube : order_) call(*tube);
    for (Tube* lane : lanes_) call(*lane);
  }

  // --- Lists of all tubes, in steps. A client has one at a time.

  TubeListSize begin_list(std::optional<TubeListing>& list);
  // REQUIRES: names are left.
  std::optional<std::vector<std::string>> next_of(std::optional<TubeListing>& list);
  void end_list(std::optional<TubeListing>& list);

  // Aborts if an invariant of the tube or lane is broken. For tests.
  void check_invariants(const Tube& tube) const;

 private:
  std::uint32_t free_number();  // for a new tube
  // Makes a tube, or a lane. REQUIRES: no tube has its name or number; it has its head.
  Tube& add(TubeRecord record);
  void cancel_timers(Tube& tube) noexcept;

  const EngineOptions& options_;
  EngineCounts& counts_;
  Ripening& ripening_;
  FarJobs& far_;
  Retention& retention_;
  Throttle& throttle_;
  TubeDirectory directory_;
  // When a tube goes, the last one takes its position. A vector would move all of them when it
  // grows.
  std::deque<Tube*> order_;
  std::deque<Tube*> lanes_;
  Tube* default_ = nullptr;
  std::uint32_t next_number_ = 1;
  std::uint64_t made_so_far_ = 0;
  std::uint64_t name_bytes_ = 0;
  TubeRemovals removals_;  // in use while lists of tubes are being read
};

}  // namespace carillon::queue
