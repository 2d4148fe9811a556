// Whose turn it is among the groups of a tube, and what the replies to commands about groups may
// say (model.h).

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/model.h"
#include "simulator/requests.h"
#include "simulator/talker_words.h"

namespace carillon::simulator {

using queue::JobId;
using queue::Priority;

// --- Groups that are there.

bool Model::group_exists(const std::string& tube, const std::string& group) const {
  return group.empty() || history_.find_tube(tube, group) != nullptr ||
         schedules_.groups().contains({tube, group});
}

queue::GroupSettings Model::group_settings(const std::string& tube,
                                           const std::string& group) const {
  const queue::TubeRecord* const found = group.empty() ? nullptr : history_.find_tube(tube, group);
  if (found == nullptr) return {};
  return {.weight = found->settings->weight, .limits = found->settings->limits};
}

bool Model::may_refuse_groups(const Case& c) const {
  const std::string& tube = c.client.tube_in_use;
  std::set<std::string> made;
  const auto look = [&](const Command& put) {
    if (!group_exists(tube, put.group)) made.insert(put.group);
  };
  look(c.command);
  for (const Command& job : c.command.jobs) look(job);
  return !made.empty() && tubes_and_watches() + made.size() > limits_.tubes;
}

// The move would have made the tube, or groups there, for some of the jobs that are left.
bool Model::may_refuse_lanes_of_move(const Case& c) const {
  const std::string& to = c.command.to;
  std::set<std::string> made;
  for (const JobId id : jobs_in(c.command.tube)) {
    const std::string& group = jobs_.at(id).group;
    if (!group_exists(to, group)) made.insert(group);
  }
  return tubes_and_watches() + made.size() + (exists(to) ? 0U : 1U) > limits_.tubes;
}

// The put has made the group, if the job is its only one and no job has left it by the same append.
// One of a batch may replace the only job of a group, and the next one be put into that group.
void Model::expect_room_for_group(const Case& c, const Job& job) const {
  if (job.group.empty()) return;
  const std::uint32_t lane = history_.find_tube(job.tube, job.group)->number;
  const std::set<JobId>& changed = history_.changed();
  const auto was_there = [&](JobId id) {
    const auto before = history_.before(id);
    return before && before->tube == lane;
  };
  if (std::any_of(changed.begin(), changed.end(), was_there)) return;
  const std::set<JobId>& jobs = jobs_in(job.tube);
  const auto many = std::count_if(jobs.begin(), jobs.end(),
                                  [&](JobId id) { return jobs_.at(id).group == job.group; });
  const bool is_new = many == 1 && !schedules_.groups().contains({job.tube, job.group}) &&
                      group_settings(job.tube, job.group) == queue::GroupSettings();
  if (is_new && tubes_and_watches() > limits_.tubes) fail(c, "there are too many tubes");
}

// The limits of the group, beside those of its tube.
bool Model::is_open(const std::string& tube, const std::string& group, queue::Now now) const {
  if (group.empty()) return true;
  const std::string lane = LimitsModel::lane(tube, group);
  if (tube_limits_.of(lane) == queue::Limits()) return true;
  return !may_be_gathered(tube) &&
         tube_limits_.lets_start(lane, running(tube, group, now).second, now, kSlack);
}

// --- Turns.

// Those groups take turns whose first ready job has the lowest priority of all.
void Model::expect_turn(const Case& c, const std::string& tube, const Job& job, JobId id) const {
  if (!is_open(tube, c.now)) return;
  using Rank = std::pair<Priority, JobId>;
  struct First {
    std::optional<Rank> at_last;  // its first job is this one, or comes before it
    std::vector<Rank> maybe;
  };
  std::map<std::string, First> groups;
  for (const JobId other : jobs_in(tube)) {
    const Job& that = jobs_.at(other);
    const Is is_ready = ready(that, c.now);
    const Rank rank(that.priority, other);
    First& first = groups[that.group];
    if (is_ready == Is::kYes) first.at_last = std::min(rank, first.at_last.value_or(rank));
    if (is_ready == Is::kMaybe) first.maybe.push_back(rank);
  }
  const Rank own(job.priority, id);
  std::optional<Priority> lowest;
  for (const auto& [group, first] : groups) {
    if (first.at_last && is_open(tube, group, c.now))
      lowest = std::min(first.at_last->first, lowest.value_or(first.at_last->first));
  }
  const auto refuse = [&](const Rank& first) {
    fail(c, "first comes " + text_of(first.second, jobs_.at(first.second), c.now));
  };
  Rank last;
  for (const auto& [group, first] : groups) {
    if (job.tube == tube && group == job.group && first.at_last && *first.at_last < own)
      refuse(*first.at_last);
    if (!lowest) continue;
    if (first.at_last && first.at_last->first <= *lowest) {
      last = std::max(last, *first.at_last);
    } else {
      for (const Rank& rank : first.maybe) {
        if (rank.first <= *lowest) last = std::max(last, rank);
      }
    }
  }
  // Whichever of these has its turn.
  if (lowest && (job.tube == tube ? *lowest < own.first : last < own)) refuse(last);
}

// A job goes out in its turn. What the groups get is compared while it is certain that they have
// been taking turns.
void Model::follow_turn(const Case& c, const Job& job, bool is_known) {
  const std::set<JobId>& jobs = jobs_in(job.tube);
  const bool has_groups = std::any_of(jobs.begin(), jobs.end(),
                                      [this](JobId id) { return !jobs_.at(id).group.empty(); });
  if (!has_groups || !is_known) return turns_.forget(job.tube);
  std::map<std::string, Priority> firsts;
  for (const JobId id : jobs) {
    const Job& that = jobs_.at(id);
    if (ready(that, c.now) == Is::kNo) continue;
    const auto [first, is_new] = firsts.try_emplace(that.group, that.priority);
    first->second = std::min(first->second, that.priority);
  }
  const auto is_witness = [&](const Job& that) {
    return that.tube == job.tube && ready(that, c.now) == Is::kYes &&
           that.priority == firsts.at(that.group);
  };
  TurnsModel::Groups groups;
  for (const JobId id : jobs) {
    const Job& that = jobs_.at(id);
    if (!is_witness(that)) continue;
    const queue::GroupSettings settings = group_settings(job.tube, that.group);
    if (settings.limits == queue::Limits())
      groups[that.group] = {{that.priority, settings.weight}, {id, that.change}};
  }
  for (auto& [group, is] : groups) {
    const auto before = turns_.witness(job.tube, group);
    const Job* const witness = before ? find(before->id) : nullptr;
    const bool stays = witness != nullptr && witness->change == before->change &&
                       witness->group == group && is_witness(*witness);
    if (stays) is.witness = *before;
    if (!stays) turns_.forget(job.tube, group);
  }
  const std::string unfair = turns_.follow(job.tube, groups);
  if (!unfair.empty()) fail(c, unfair);
  turns_.give(job.tube, job.group);
}

// Its priority is the new one.
void Model::note_change(Job& job) {
  job.change = ++order_;
  turns_.job_has_changed(job.tube, job.group, job.priority);
}

// --- Commands.

void Model::judge_set_group(const Case& c) {
  const std::string& tube = c.command.tube;
  const std::string& group = c.command.group;
  if (c.reply.word != "OK") fail(c, "that is no answer to it");
  expect_changed({});
  const std::string lane = LimitsModel::lane(tube, group);
  const queue::GroupSettings settings = group_settings(tube, group);
  queue::Limits limits = tube_limits_.of(lane);
  c.command.limits.apply(limits);
  tube_limits_.set(lane, limits, c.since, c.now);
  if (settings.limits != limits) fail(c, "other limits are stored");
  if (c.command.weight && settings.weight != *c.command.weight) fail(c, "another weight is stored");
  const bool has_jobs = std::any_of(jobs_in(tube).begin(), jobs_in(tube).end(),
                                    [&](JobId id) { return jobs_.at(id).group == group; });
  const bool has_record = history_.find_tube(tube, group) != nullptr;
  if (has_record != (has_jobs || settings != queue::GroupSettings()))
    fail(c, "there is a record of the group, or none");
  turns_.forget(tube, group);
}

void Model::judge_stats_group(const Case& c) {
  expect_changed({});
  const bool is_there = group_exists(c.command.tube, c.command.group);
  if ((c.reply.line == "NOT_FOUND") == is_there) fail(c, "it is the other way round");
  if (!is_there) return;
  if (c.reply.word != "OK") fail(c, "that is no answer to it");
  expect_group(c, c.command.group, object_of(c.reply));
}

void Model::expect_group(const Case& c, const std::string& group,
                         const boost::json::object& shown) const {
  const queue::GroupSettings settings = group_settings(c.command.tube, group);
  if (text_in(shown, "name") != group || number_in(shown, "weight") != settings.weight)
    fail(c, "the group " + group + " has another weight");
  const boost::json::object& limits = shown.at("limits").as_object();
  const boost::json::value* const rate = limits.if_contains("rate");
  const boost::json::object told =
      rate != nullptr && rate->is_object() ? rate->as_object() : boost::json::object();
  const std::string period = settings.limits.rate == 0 ? "" : duration(settings.limits.period);
  if (number_in(limits, "max_running") != settings.limits.max_running ||
      number_in(told, "jobs") != settings.limits.rate ||
      number_in(told, "burst") != settings.limits.burst || text_in(told, "per") != period)
    fail(c, "the group " + group + " has other limits");
  const boost::json::object& jobs = shown.at("jobs").as_object();
  expect_counts(c, group,
                {number_in(jobs, "ready"), number_in(jobs, "reserved"), number_in(jobs, "delayed"),
                 number_in(jobs, "buried")});
}

void Model::judge_list_groups(const Case& c) {
  expect_changed({});
  if (c.reply.line == "NOT_FOUND") {
    if (exists(c.command.tube)) fail(c, "the tube is there");
    return;
  }
  if (c.reply.word != "OK" || !exists(c.command.tube)) fail(c, "that is no answer to it");
  const boost::json::object page = object_of(c.reply);
  std::set<std::string> told;
  for (const boost::json::value& one : page.at("groups").as_array()) {
    const std::string group = text_in(one.as_object(), "name");
    if (!told.insert(group).second) fail(c, group + " comes twice");
    if (!group_exists(c.command.tube, group)) fail(c, "there is no group " + group);
    if (history_.changed().empty()) expect_group(c, group, one.as_object());
  }
  if (told.size() > c.command.bound) fail(c, "these are too many");
  if (!next_page_of(page).empty()) return;
  for (const auto& [number, tube] : history_.state().tubes) {
    if (tube.head != 0 && history_.state().tubes.at(tube.head).name == c.command.tube &&
        !told.contains(tube.name))
      fail(c, "it leaves out " + tube.name);
  }
}

}  // namespace carillon::simulator
