// The records of tubes: counted anew, and made anew where they are lost.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "queue/store/damage/salvage.h"
#include "queue/store/state/endpoint_values.h"
#include "queue/store/state/record_values.h"
#include "queue/store/state/schedule_values.h"

namespace carillon::queue {

namespace {

// What schedules and endpoints say about the names of tubes. A schedule may have got another tube
// since it put its last job, so a name is only a hint.
struct TubeHints {
  std::map<std::uint32_t, std::string> by_number;
  std::map<std::string, std::string> who;  // "the schedule 'nightly'", by the tube's name

  void add_schedule(std::string_view name, std::string_view value) {
    const ScheduleRecord record = read_schedule_value(name, value);
    const std::string its_name = "the schedule '" + std::string(name) + "'";
    who.emplace(record.schedule.tube, its_name);
    if (record.last_tube == 0) return;
    by_number[record.last_tube] += "; " + its_name + " put its last job there, and puts the next " +
                                   "one into '" + record.schedule.tube + "'";
  }
  void add_endpoint(std::string_view name, std::string_view value) {
    who.emplace(read_endpoint_value(name, value).tube, "the endpoint '" + std::string(name) + "'");
  }
};

constexpr const char* kSettings = "its settings (max-running, rates, retries, retention, groups)";

}  // namespace

std::string Salvage::name_of(std::uint32_t tube) const {
  const auto value = to_.get(kMeta, view(tube_key(tube)));
  if (!value) return "";
  try {
    return read_tube_value(tube, *value).name;
  } catch (const StoreDamage&) {
    return "";
  }
}

std::map<std::uint32_t, TubeRecord> Salvage::tubes() {
  std::map<std::uint32_t, TubeRecord> tubes;
  each(kMeta, [&](std::string_view key, std::string_view value) {
    if (!key.starts_with(kTubeKeys)) return;
    try {
      const std::uint32_t number = tube_of_key(key);
      tubes[number] = read_tube_value(number, value);
    } catch (const StoreDamage&) {
      erase(kMeta, key);
    }
  });
  return tubes;
}

void Salvage::count_tubes() {
  std::map<std::uint32_t, TubeRecord> tubes = this->tubes();
  const auto stays = [this](const TubeRecord& tube) {
    const Counts& counts = counts_[tube.number];
    return counts.scheduled + counts.buried + counts.ended_keys > 0 || tube.settings;
  };
  for (const auto& [number, tube] : tubes) {
    if (tube.head != 0 && stays(tube)) ++counts_[tube.head].lanes;
  }
  name_lost_tubes(tubes);
  for (auto& [number, tube] : tubes) {
    const Counts& counts = counts_[number];
    tube.scheduled = counts.scheduled;
    tube.buried = counts.buried;
    tube.ended_keys = counts.ended_keys;
    tube.lanes = counts.lanes;
    const TubeKey key = tube_key(number);
    if (tube.empty()) {
      erase(kMeta, view(key));
      continue;
    }
    std::string value;
    append_tube_value(value, tube);
    put(kMeta, view(key), value);
    if (old_tubes_.count(number) == 0) continue;
    left_out_.push_back("the record of the tube '" + tube.name + "' may be old: check " +
                        kSettings);
  }
}

// Adds records for the tubes that have jobs or lanes, but no record.
void Salvage::name_lost_tubes(std::map<std::uint32_t, TubeRecord>& tubes) {
  TubeHints hints;
  const auto add = [](const auto& read) {
    try {
      read();
    } catch (const StoreDamage&) {
      // It says nothing then.
    }
  };
  each(kSchedules, [&](std::string_view key, std::string_view value) {
    add([&] { hints.add_schedule(key, value); });
  });
  each(kMeta, [&](std::string_view key, std::string_view value) {
    if (key.starts_with(kEndpointKeys))
      add([&] { hints.add_endpoint(key.substr(kEndpointKeys.size()), value); });
  });
  for (const auto& [number, tube] : tubes) {
    if (tube.head == 0) hints.who.erase(tube.name);
  }
  bool is_any_lost = false;
  for (const auto& [number, counts] : counts_) {
    if (tubes.count(number) > 0) continue;
    is_any_lost = true;
    const std::string name = "salvaged-" + std::to_string(number);
    tubes[number] = {.number = number, .name = name};
    left_out_.push_back(
        "the record of tube number " + std::to_string(number) + " is lost: " + kSettings +
        " are gone, and so is its name. Its jobs are in '" + name +
        "': check them, and put them with move-jobs where they belong" + hints.by_number[number]);
  }
  if (!is_any_lost) return;
  for (const auto& [name, who] : hints.who) {
    std::string line = "the tube '";
    line.append(name).append("', which ").append(who);
    line += " names, has no record: it may be one of those whose names are lost";
    left_out_.push_back(std::move(line));
  }
}

}  // namespace carillon::queue
