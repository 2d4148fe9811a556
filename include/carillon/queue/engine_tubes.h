// The part of the engine for tubes and their groups: pauses, settings, rates, and lists of tubes.
//
//   engine.set_tube(now, "mail", {.limits = {.max_running = 10}, .retention = kDay});
//   engine.set_group(now, "mail", "customer-7", {.weight = 3});
//   engine.pause(now, "mail", 60'000);
//   for (const std::string& name : engine.tubes()) ...
//
// A tube exists while it has jobs, settings, or clients that use or watch it. engine.h has the
// contracts that all methods keep. REQUIRES: the name of a tube has 1 to 200 bytes, the name of a
// group 1 to kMaxGroup.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/commands.h"
#include "carillon/queue/engine_stats.h"
#include "carillon/queue/job.h"
#include "carillon/queue/now.h"

namespace carillon::queue {

struct EngineState;  // private

class EngineTubes {
 public:
  // For `duration` ms no job of the tube is reserved, except by `reserve_job`. 0 ends a pause. A
  // pause is not stored: a restart ends it. Returns false if there is no such tube.
  bool pause(Now now, std::string_view tube, Millis duration);

  // Changes the settings of a tube, and makes the tube if it does not exist. It stays as long as it
  // has settings. Throws std::invalid_argument if a setting is out of its range. Returns the
  // append.
  Sequence set_tube(Now now, std::string_view tube, const TubeSettings& settings);
  // Returns the settings; nothing for a tube that does not exist.
  TubeSettings tube_settings(std::string_view tube) const;
  // The same for a group of a tube (PutOrder::group). Throws OverLimit, too. REQUIRES: the name of
  // a group has 1 to kMaxGroup bytes.
  Sequence set_group(Now now, std::string_view tube, std::string_view group,
                     const GroupSettings& settings);
  // Returns how fast clients may put jobs into the tube now; none if nothing bounds that.
  std::optional<PutRate> put_rate(Now now, std::string_view tube);

  // Returns the names of all tubes. O(tubes).
  std::vector<std::string> tubes() const;
  // The same in steps, so that the owner can serve others in between. `list_tubes` begins, and
  // returns how long the list will be; each call of `next_tubes` returns some of the names:
  //
  //   const TubeListSize size = engine.list_tubes(client);
  //   for (std::uint64_t got = 0; got < size.tubes;) {
  //     const auto names = engine.next_tubes(client);       // perhaps none of them
  //     if (!names) break;                                  // the list is lost
  //     got += names->size();
  //   }
  //
  // The list has the tubes that there were when it began, also those that are forgotten meanwhile;
  // the others are in the order of `tubes`. It is lost if more than 16 384 tubes were forgotten
  // between two calls. A client has one list at a time: the next one ends the one before.
  TubeListSize list_tubes(ClientId client);
  // REQUIRES: names are left.
  std::optional<std::vector<std::string>> next_tubes(ClientId client);
  void end_tube_list(ClientId client);  // does nothing if it has no list

  // Returns up to `limit` groups of a tube, from the one with the number `from` on, or the next
  // one; 0: from the first. A group keeps its number while it has jobs or settings, even over
  // restarts. So a list in pages has each group that is there all the time exactly once. Returns
  // none if there is no such tube. O(limit + log groups).
  std::optional<GroupPage> list_groups(Now now, std::string_view tube, std::uint32_t from,
                                       std::size_t limit);

 protected:
  explicit EngineTubes(EngineState& state) : state_(state) {}
  ~EngineTubes() = default;

 private:
  EngineState& state_;
};

}  // namespace carillon::queue
