#include "cluster/explorer.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace carillon::cluster::explorer {
namespace {

// All worlds that were found, in the order in which they were found, and the way to each.
class Worlds {
 public:
  // Adds it if it is new.
  void add(const World& world, std::size_t parent, std::size_t branch) {
    if (worlds_.size() * 2 >= slots_.size()) grow();
    const std::uint64_t hash = hash_of(world);
    const std::size_t at = find(world, hash);
    if (slots_[at].world != 0) return;
    worlds_.push_back(world);
    ways_.push_back({static_cast<std::uint32_t>(parent), static_cast<std::uint32_t>(branch)});
    slots_[at] = {tag(hash), static_cast<std::uint32_t>(worlds_.size())};
  }

  std::size_t size() const { return worlds_.size(); }
  const World& operator[](std::size_t index) const { return worlds_[index]; }

  // A world is branch number `branch` of its parent.
  struct Way {
    std::uint32_t parent;
    std::uint32_t branch;
  };
  const Way& way(std::size_t index) const { return ways_[index]; }

 private:
  struct Slot {
    std::uint32_t tag = 0;    // the upper half of the hash
    std::uint32_t world = 0;  // 1 + index; 0: empty
  };

  static std::uint64_t hash_of(const World& world) {
    return std::hash<std::string_view>{}({reinterpret_cast<const char*>(&world), sizeof world});
  }
  static std::uint32_t tag(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }

  // Returns the slot of this world, or the empty one that it would get.
  std::size_t find(const World& world, std::uint64_t hash) const {
    std::size_t at = hash & (slots_.size() - 1);
    for (; slots_[at].world != 0; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].tag != tag(hash)) continue;
      if (std::memcmp(&worlds_[slots_[at].world - 1], &world, sizeof world) == 0) break;
    }
    return at;
  }

  void grow() {
    slots_.assign(std::max<std::size_t>(1 << 16, 2 * slots_.size()), {});
    for (std::size_t i = 0; i < worlds_.size(); ++i) {
      const std::uint64_t hash = hash_of(worlds_[i]);
      std::size_t at = hash & (slots_.size() - 1);
      while (slots_[at].world != 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = {tag(hash), static_cast<std::uint32_t>(i + 1)};
    }
  }

  std::vector<World> worlds_;
  std::vector<Way> ways_;
  std::vector<Slot> slots_;
};

// The worlds that come after one.
class Branches {
 public:
  struct Branch {
    World world;
    std::vector<Step> steps;
  };

  Branches(Model& model, const World& world) : model_(model) {
    for (const Step& step : steps_of_log(model, world)) go({world, {}}, step);
    for (std::size_t n = 0; n < kNodes && fault.empty(); ++n) of_node(world, n);
  }

  std::vector<Branch> all;
  std::size_t steps = 0;
  std::size_t beyond = 0;
  std::string fault;  // what is violated in the last of `all`

 private:
  // Adds all ways to a step of this node that is noticed.
  void of_node(const World& world, std::size_t n) {
    std::vector<Branch> alone{{world, {}}};
    for (std::size_t i = 0; i < alone.size(); ++i) {
      for (const Step& step : steps_of(model_, alone[i].world, n)) {
        std::optional<Branch> next = go(alone[i], step);
        if (!fault.empty()) return;
        if (next && !is_among(alone, next->world)) alone.push_back(*std::move(next));
      }
    }
  }

  // Takes the step, and returns the world after it if nobody notices.
  std::optional<Branch> go(const Branch& from, const Step& step) {
    Branch next{from.world, {}};
    const Outcome outcome = take(model_, step, next.world);
    ++steps;
    if (outcome.beyond) {
      ++beyond;
      return {};
    }
    fault = outcome.fault;
    next.steps = from.steps;
    next.steps.push_back(step);
    // A cut takes away what could have been read, so before it no step is taken alone.
    const bool may_cut = from.world.cuts < model_.bounds.cuts;
    if (!outcome.seen && !may_cut && fault.empty() && is_alone(step.kind)) return next;
    all.push_back(std::move(next));
    return {};
  }

  static bool is_alone(Step::Kind kind) {
    return kind == Step::Kind::kRead || kind == Step::Kind::kAnswer || kind == Step::Kind::kBegin ||
           kind == Step::Kind::kFlush;
  }
  static bool is_among(const std::vector<Branch>& all, const World& world) {
    return std::any_of(all.begin(), all.end(), [&world](const Branch& one) {
      return std::memcmp(&one.world, &world, sizeof world) == 0;
    });
  }

  Model& model_;
};

std::string story_of(Model& model, const Worlds& worlds, std::size_t last,
                     const std::vector<Step>& steps) {
  std::vector<Step> all = steps;
  for (std::size_t i = last; i != 0; i = worlds.way(i).parent) {
    const auto [parent, branch] = worlds.way(i);
    const std::vector<Step> before = Branches(model, worlds[parent]).all[branch].steps;
    all.insert(all.begin(), before.begin(), before.end());
  }
  std::string story;
  World world = first_world(model);
  for (std::size_t i = 0; i < all.size(); ++i) {
    story += std::to_string(i + 1) + ". ";
    take(model, all[i], world, &story);
  }
  return story;
}

}  // namespace

Found explore(Model& model, std::size_t most) {
  Found found;
  Worlds worlds;
  worlds.add(first_world(model), 0, 0);
  std::size_t end_of_depth = 1;
  for (std::size_t i = 0; i < worlds.size() && worlds.size() <= most; ++i) {
    if (i == end_of_depth) {
      ++found.depth;
      end_of_depth = worlds.size();
    }
    const Branches next(model, worlds[i]);
    found.steps += next.steps;
    found.beyond += next.beyond;
    if (!next.fault.empty()) {
      found.worlds = worlds.size();
      found.fault = next.fault;
      found.story = story_of(model, worlds, i, next.all.back().steps);
      return found;
    }
    for (std::size_t k = 0; k < next.all.size(); ++k) worlds.add(next.all[k].world, i, k);
  }
  found.worlds = worlds.size();
  found.complete = worlds.size() <= most;
  return found;
}

}  // namespace carillon::cluster::explorer
