// Tubes and groups as JSON (tube_fields.h).
#include "server/http/tube_fields.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <string>
#include <utility>

#include "server/http/counts.h"
#include "server/http/job_fields.h"

namespace carillon::server::http {

namespace json = boost::json;

namespace {

json::object json_of_rate(const queue::Limits& limits) {
  return {{"jobs", limits.rate}, {"per", shown_duration(limits.period)}, {"burst", limits.burst}};
}

json::object json_of(const queue::Limits& limits) {
  json::object shown;
  if (limits.max_running > 0) shown["max_running"] = limits.max_running;
  if (limits.rate > 0) shown["rate"] = json_of_rate(limits);
  return shown;
}

json::object limits_of(const queue::TubeSettings& settings) {
  json::object shown = json_of(settings.limits);
  if (settings.put_rate.rate > 0) shown["put_rate"] = json_of_rate(settings.put_rate);
  return shown;
}

// {"jobs":100,"per":"1m","burst":5}. What is not named stays, if there is a rate; null stands for
// what holds without the field (RFC 7396).
void read_rate(const json::object& object, const std::string& at, FieldFaults& faults,
               queue::Limits& limits) {
  Fields fields(object, at, faults);
  const bool has_one = limits.rate > 0;
  const auto jobs = fields.number("jobs", 1, queue::kMostTokens);
  const auto per = fields.duration("per");
  const auto burst = fields.number("burst", 1, queue::kMostTokens);
  if (!jobs && (!has_one || fields.is_null("jobs")))
    fields.fault("jobs", "how many jobs in each period?");
  if (!per && (!has_one || fields.is_null("per"))) fields.fault("per", "how long is a period?");
  if (per && (*per == 0 || *per > queue::kLongestPeriod))
    fields.fault("per", fmt::format("{} ms: a period has 1 to {} ms", *per, queue::kLongestPeriod));
  limits.rate = jobs.value_or(limits.rate);
  limits.period = per.value_or(limits.period);
  limits.burst = burst.value_or(has_one && !fields.is_null("burst") ? limits.burst : 1);
  fields.finish();
}

void read_rate_of(Fields& fields, std::string_view name, FieldFaults& faults,
                  queue::Limits& limits) {
  if (fields.is_null(name)) limits.rate = limits.period = limits.burst = 0;
  if (const json::object* const rate = fields.object(name))
    read_rate(*rate, fields.pointer(name), faults, limits);
}

// {"max_running":10,"rate":{...},"put_rate":{...}}; a group has no `put_rate`.
void read_limits(Fields& of, FieldFaults& faults, queue::Limits& limits, queue::Limits* put_rate) {
  if (of.is_null("limits")) limits = {};
  if (of.is_null("limits") && put_rate != nullptr) *put_rate = {};
  const json::object* const object = of.object("limits");
  if (object == nullptr) return;
  Fields fields(*object, of.pointer("limits"), faults);
  if (fields.is_null("max_running")) limits.max_running = 0;
  if (const auto running = fields.number("max_running", 1, UINT32_MAX))
    limits.max_running = *running;
  read_rate_of(fields, "rate", faults, limits);
  if (put_rate != nullptr) read_rate_of(fields, "put_rate", faults, *put_rate);
  fields.finish();
}

}  // namespace

json::object json_of(const queue::TubeStats& stats) {
  json::object tube{{"name", stats.name},
                    {"jobs", json_of(stats.jobs)},
                    {"groups", stats.groups},
                    {"using", stats.using_},
                    {"watching", stats.watching},
                    {"waiting", stats.waiting},
                    {"paused", stats.pause > 0},
                    {"draining", stats.settings.refuses_puts},
                    {"limits", limits_of(stats.settings)}};
  if (stats.pause > 0) tube["pause_left_ms"] = stats.pause_left;
  if (stats.settings.retry != queue::RetryPolicy()) tube["retry"] = json_of(stats.settings.retry);
  if (stats.settings.retention > 0) tube["retention"] = shown_duration(stats.settings.retention);
  return tube;
}

json::object json_of(std::string_view tube, std::string_view group,
                     const queue::GroupStats& stats) {
  json::object told{{"tube", tube},
                    {"jobs", json_of(stats.jobs)},
                    {"weight", stats.settings.weight},
                    {"limits", json_of(stats.settings.limits)}};
  set_text(told, "name", group);
  return told;
}

void read_settings(const json::object& object, FieldFaults& faults, queue::TubeSettings& settings) {
  Fields fields(object, "", faults);
  read_limits(fields, faults, settings.limits, &settings.put_rate);
  if (fields.is_null("retry")) settings.retry = {};
  if (const json::object* const retry = fields.object("retry"))
    read_retry(*retry, fields.pointer("retry"), faults, settings.retry);
  const bool stays = settings.refuses_puts && !fields.is_null("draining");
  settings.refuses_puts = fields.flag("draining").value_or(stays);
  if (fields.is_null("retention")) settings.retention = 0;
  if (const auto kept = fields.duration("retention")) {
    if (*kept == 0 || *kept > queue::kLongestRetention)
      fields.fault("retention",
                   fmt::format("{} ms: dead jobs are kept for 1 to {} ms; null is for ever", *kept,
                               queue::kLongestRetention));
    settings.retention = *kept;
  }
  fields.finish();
}

void read_settings(const json::object& object, FieldFaults& faults,
                   queue::GroupSettings& settings) {
  Fields fields(object, "", faults);
  read_limits(fields, faults, settings.limits, nullptr);
  if (fields.is_null("weight")) settings.weight = queue::GroupSettings().weight;
  if (const auto weight = fields.number("weight", 1, queue::kMostWeight))
    settings.weight = static_cast<std::uint32_t>(*weight);
  fields.finish();
}

}  // namespace carillon::server::http
