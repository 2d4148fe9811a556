// The fields of a schedule, and the messages for those that are not as they should be.

#include "queue/store/state/schedule_values.h"

#include <concepts>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "carillon/queue/store.h"
#include "queue/store/state/record_keys.h"
#include "queue/store/state/tagged_fields.h"

namespace carillon::queue {

namespace {

constexpr char kScheduleVersion = 2;

// Calls `field` with the tag of each field and a reference to it.
template <typename Record, typename Field>
void each_field(Record& record, Field&& field) {
  auto& schedule = record.schedule;
  field(1, schedule.tube);
  field(2, schedule.priority);
  field(3, schedule.ttr);
  field(4, schedule.body);
  field(5, schedule.cron);
  field(6, schedule.zone);
  field(7, schedule.run_after_gap);
  field(8, schedule.every);
  field(9, schedule.start);
  field(10, schedule.catch_up);
  field(11, schedule.catch_up_window);
  field(12, schedule.overlap);
  field(13, schedule.spread);
  field(14, record.paused);
  field(15, record.decided);
  field(16, record.spans);
  field(17, record.waiting);
  field(18, record.last_job);
  field(19, record.last_occurrence);
  field(20, record.fired);
  field(21, record.skipped);
  field(22, record.created);
  field(23, schedule.group);
  field(24, schedule.retry.max_attempts);
  field(25, schedule.retry.backoff);
  field(26, schedule.retry.backoff_max);
  field(27, schedule.retry.jitter);
  field(28, schedule.retry.lost_fails);
  field(29, schedule.attributes);
  field(30, schedule.expires_in);
  field(31, schedule.at_expiry);
  field(32, schedule.retry.counts_empty);
  field(33, record.since);
  field(34, record.last_tube);
}

constexpr std::uint64_t most(CatchUp) {
  return static_cast<std::uint64_t>(CatchUp::kAll);
}
constexpr std::uint64_t most(Overlap) {
  return static_cast<std::uint64_t>(Overlap::kQueue);
}
constexpr std::uint64_t most(AtExpiry) {
  return static_cast<std::uint64_t>(AtExpiry::kDead);
}
template <std::unsigned_integral Number>
constexpr std::uint64_t most(Number) {
  return std::numeric_limits<Number>::max();
}

template <typename Number>
void append_schedule_field(std::string& bytes, std::uint32_t tag, const Number& number) {
  append_number(bytes, tag, static_cast<std::uint64_t>(number));
}
void append_schedule_field(std::string& bytes, std::uint32_t tag,
                           const std::optional<UtcMs>& moment) {
  append_number(bytes, tag, moment.value_or(0));
}
void append_schedule_field(std::string& bytes, std::uint32_t tag, const std::string& text) {
  if (!text.empty()) append_bytes(bytes, tag, text);
}
void append_schedule_field(std::string& bytes, std::uint32_t tag,
                           const std::vector<FiredSpan>& spans) {
  std::string text;
  for (const FiredSpan& span : spans) {
    append_varint(text, span.first);
    append_varint(text, span.last - span.first);
  }
  append_schedule_field(bytes, tag, text);
}

class Reader {
 public:
  explicit Reader(std::string_view name) : name_(name) {}

  ScheduleRecord read(std::string_view value) const {
    if (value.empty()) fail("is empty");
    if (value.front() != kScheduleVersion)
      fail("has version " + std::to_string(static_cast<std::uint8_t>(value.front())));
    ScheduleRecord record{.name = std::string(name_), .schedule = {}};
    record.schedule.ttr = 0;
    record.schedule.catch_up = {};
    record.schedule.zone.clear();
    record.schedule.run_after_gap = false;
    std::string unknown;
    FieldReader fields(value.substr(1));
    while (fields.next()) {
      bool known = false;
      each_field(record, [&](std::uint32_t tag, auto& field) {
        if (tag != fields.tag()) return;
        set(field, fields);
        known = true;
      });
      if (!known) unknown.append(fields.encoded());
    }
    if (fields.broken()) fail("is broken");
    // A field that is 0 takes no byte: the schedule starts with the year 1970.
    if (record.schedule.every != 0 && !record.schedule.start) record.schedule.start = 0;
    record.newer = detail::Rare(std::move(unknown));
    return record;
  }

 private:
  template <typename Number>
  void set(Number& to, const FieldReader& from) const {
    if (from.is_bytes() || from.number() > most(to))
      fail("has a field " + std::to_string(from.tag()) + " that is no such number");
    to = static_cast<Number>(from.number());
  }
  void set(std::optional<UtcMs>& to, const FieldReader& from) const { set(to.emplace(), from); }
  void set(std::string& to, const FieldReader& from) const {
    if (!from.is_bytes()) fail("has a field " + std::to_string(from.tag()) + " that is a number");
    to = from.bytes();
  }
  void set(std::vector<FiredSpan>& to, const FieldReader& from) const {
    if (!from.is_bytes()) fail("has spans that are a number");
    std::string_view rest = from.bytes();
    while (!rest.empty()) {
      FiredSpan span;
      std::uint64_t length = 0;
      if (!take_varint(rest, span.first) || !take_varint(rest, length))
        fail("has spans that are cut short");
      span.last = span.first + length;
      to.push_back(span);
    }
  }

  [[noreturn]] void fail(const std::string& how) const {
    throw StoreDamage("the record of the schedule under the key " + hex(name_) +
                      " is damaged: it " + how);
  }

  std::string_view name_;
};

}  // namespace

void append_schedule_value(std::string& bytes, const ScheduleRecord& record) {
  bytes += kScheduleVersion;
  each_field(record, [&bytes](std::uint32_t tag, const auto& field) {
    append_schedule_field(bytes, tag, field);
  });
  bytes.append(*record.newer);
}

ScheduleRecord read_schedule_value(std::string_view name, std::string_view value) {
  return Reader(name).read(value);
}

}  // namespace carillon::queue
