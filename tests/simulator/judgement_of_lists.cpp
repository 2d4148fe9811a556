// What lists, a job and due counts may tell (model.h).

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "server/text/timestamp.h"
#include "simulator/model.h"
#include "simulator/requests.h"

namespace carillon::simulator {

using queue::JobId;

void Model::judge_list(const Case& c) {
  // A job, or an attempt, may have ended by itself in the same turn, after the list had read it.
  const std::set<JobId> changed = history_.changed();
  expect_changed({});
  const bool is_whole = !std::exchange(c.client.bulk_in_parts, false);
  if (c.reply.word == "NOT_FOUND") {
    if (exists(c.command.tube) && is_whole) fail(c, "the tube is there");
    return;
  }
  if (c.reply.word != "OK") fail(c, "that is no answer to it");
  const boost::json::object page = object_of(c.reply);
  std::set<JobId> told;
  for (const boost::json::value& one : page.at("jobs").as_array()) {
    const boost::json::object& shown = one.as_object();
    const JobId id = number_in(shown, "id");
    const Job* const job = find(id);
    const std::string what = "its job " + std::to_string(id) + ": ";
    const bool is_new = told.insert(id).second;
    if (!is_whole || changed.contains(id)) continue;
    if (!is_new) fail(c, what + "it comes twice");
    if (job == nullptr || job->tube != c.command.tube) fail(c, what + "that is no such job");
    if (is_meant(*job, history_.state().jobs.at(id).record, c) == Is::kNo)
      fail(c, what + "it was not meant: " + text_of(id, *job, c.now));
    expect_shown(c, *job, shown);
  }
  if (told.size() > c.command.bound) fail(c, "these are too many");
  const std::string next = next_page_of(page);
  const bool is_all = next.empty();
  if (!is_all) keep_next_page(c, next, told, is_whole);
  if (!is_all || !is_whole || c.excuses.fails) return;
  if (c.command.goes_on) {
    // While nothing changes, the pages together have all jobs, whatever their states are.
    const bool is_known = c.command.listed_at == history_.last() && clock_steps_ == 0 &&
                          c.command.filter.states == queue::kAllStates;
    if (!is_known) return;
    told.insert(c.command.listed.begin(), c.command.listed.end());
  }
  for (const JobId id : jobs_in(c.command.tube)) {
    const Job& job = jobs_.at(id);
    const bool is_meant_now = is_meant(job, history_.state().jobs.at(id).record, c) == Is::kYes;
    if (is_meant_now && !told.contains(id) && !changed.contains(id))
      fail(c, "it leaves out " + text_of(id, job, c.now));
  }
}

void Model::keep_next_page(const Case& c, std::string_view next, const std::set<JobId>& told,
                           bool is_whole) {
  Command page = from_there_on(c.command, next);
  const bool is_known = is_whole && (!c.command.goes_on || c.command.listed_at == history_.last());
  page.listed_at = is_known ? history_.last() : 0;
  page.listed.insert(told.begin(), told.end());
  next_page_ = std::move(page);
}

// What a list and the job itself show.
void Model::expect_shown(const Case& c, const Job& job, const boost::json::object& shown) const {
  const bool is_same = number_in(shown, "priority") == job.priority &&
                       number_in(shown, "failed_attempts") == job.attempts &&
                       number_in(shown, "body_bytes") == job.record.body_bytes &&
                       text_in(shown, "tube") == job.tube && text_in(shown, "key") == job.key &&
                       text_in(shown, "group") == job.group;
  if (!is_same) fail(c, "it shows another job: " + boost::json::serialize(shown));
}

void Model::judge_show_job(const Case& c) {
  expect_changed({});
  if (!c.command.key.empty()) c.client.tube_in_use = c.command.tube;
  const std::optional<JobId> id = named(c);
  if (c.reply.line == "NOT_FOUND") {
    if (id) fail(c, "it is there");
    return;
  }
  if (c.reply.word != "OK" || !id) fail(c, "that is no answer to it");
  const boost::json::object shown = object_of(c.reply);
  const Job& job = jobs_.at(*id);
  if (number_in(shown, "id") != *id) fail(c, "that is another job");
  expect_shown(c, job, shown);
  const std::string& body = history_.state().jobs.at(*id).body;
  if (body.size() <= queue::kBodyPiece && text_in(shown, "body") != body)
    fail(c, "it has another body");
  constexpr std::array<const char*, 4> kEndings = {"", "failed", "timed_out", "lost"};
  const boost::json::array& story = shown.at("attempts").as_array();
  bool is_same = story.size() == job.story.size();
  for (std::size_t n = 0; is_same && n < story.size(); ++n) {
    const boost::json::object& attempt = story[n].as_object();
    const queue::Attempt& known = job.story[n];
    is_same = text_in(attempt, "at") == server::format_timestamp(known.at) &&
              text_in(attempt, "ended") == kEndings.at(static_cast<std::size_t>(known.ending)) &&
              text_in(attempt, "worker") == known.worker &&
              text_in(attempt, "error") == known.error;
  }
  if (!is_same) fail(c, "that is not its story");
}

void Model::judge_due_counts(const Case& c) {
  expect_changed({});
  const bool is_whole = !std::exchange(c.client.bulk_in_parts, false);
  if (c.reply.word == "NOT_FOUND") {
    if (exists(c.command.tube) && is_whole) fail(c, "the tube is there");
    return;
  }
  if (c.reply.word != "OK") fail(c, "that is no answer to it");
  const boost::json::object told = object_of(c.reply);
  const std::uint64_t delayed_jobs = number_in(told, "delayed");
  const std::uint64_t buried = number_in(told, "buried");
  std::uint64_t sum = number_in(told, "later");
  for (const boost::json::value& span : told.at("spans").as_array())
    sum += number_in(span.as_object(), "jobs");
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  std::uint64_t all_buried = 0;
  for (const JobId id : jobs_in(c.command.tube)) {
    const Is is = delayed(jobs_.at(id), c);
    least += is == Is::kYes ? 1U : 0U;
    most += is != Is::kNo ? 1U : 0U;
    all_buried += jobs_.at(id).burial != 0 ? 1U : 0U;
  }
  // Jobs may have ended by themselves since it began, and schedules may have put some; and some may
  // have become ready.
  const std::uint64_t others = history_.changed().size();
  const std::uint64_t moved = others + most - least;
  const bool adds_up = (sum <= delayed_jobs + moved && sum + moved >= delayed_jobs) ||
                       (may_call_ready(c) && sum > delayed_jobs);
  if (is_whole && !adds_up) fail(c, "the spans have " + std::to_string(sum) + " jobs together");
  if (!is_whole || c.excuses.fails) return;
  if (!may_call_ready(c) && (delayed_jobs + others < least || delayed_jobs > most + others)) {
    fail(c, "it tells of " + std::to_string(delayed_jobs) + ", and there are " +
                std::to_string(least) + " to " + std::to_string(most));
  }
  if (buried + others < all_buried || buried > all_buried + others)
    fail(c, "there are " + std::to_string(all_buried) + " buried ones");
}

}  // namespace carillon::simulator
