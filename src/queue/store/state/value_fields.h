// How the fields of a record are appended to its value, and read from it (record_values.h).
//
//   const auto append = begin_value(bytes);
//   append(1, record.id);
//   ...
//   StoredValue value("the record of a key", key, bytes);   // throws StoreDamage, as read() does
//   value.read([&](auto&& field) { field(1, record.id); });
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "carillon/queue/batch_answer.h"
#include "carillon/queue/endpoint.h"
#include "carillon/queue/schedule.h"
#include "carillon/queue/store.h"
#include "queue/store/format_version.h"
#include "queue/store/state/record_keys.h"
#include "queue/store/state/tagged_fields.h"

namespace carillon::queue {

// --- Parts that are fields, and have fields themselves.

template <typename Of, typename Field>
requires std::same_as<std::remove_const_t<Of>, Attempt>
void each_field_of_part(Of& attempt, Field&& field) {
  field(1, attempt.at);
  field(2, attempt.ending);
  field(3, attempt.worker);
  field(4, attempt.error);
}

template <typename Of, typename Field>
requires std::same_as<std::remove_const_t<Of>, PutRun>
void each_field_of_part(Of& run, Field&& field) {
  field(1, run.result);
  field(2, run.first);
  field(3, run.jobs);
  field(4, run.owner);
}

template <typename Of, typename Field>
requires std::same_as<std::remove_const_t<Of>, ClockRise>
void each_field_of_part(Of& rise, Field&& field) {
  field(1, rise.shown);
  field(2, rise.to);
  field(3, rise.ahead);
  field(4, rise.noticed);
  field(5, rise.gained);
}

// --- The largest number of an enumeration. A record with a larger one is damaged.

constexpr CatchUp largest(CatchUp) {
  return CatchUp::kAll;
}
constexpr Overlap largest(Overlap) {
  return Overlap::kQueue;
}
constexpr AtExpiry largest(AtExpiry) {
  return AtExpiry::kDead;
}
constexpr Death largest(Death) {
  return Death::kExpired;
}
constexpr Endpoint::Format largest(Endpoint::Format) {
  return Endpoint::Format::kCloudEventsInJson;
}
constexpr Ending largest(Ending) {
  return Ending::kLost;
}

// --- Appending.

template <std::unsigned_integral Number>
void append_field(std::string& bytes, std::uint32_t tag, Number number) {
  append_number(bytes, tag, number);
}
template <typename Enum>
requires std::is_enum_v<Enum>
void append_field(std::string& bytes, std::uint32_t tag, Enum value) {
  append_number(bytes, tag, static_cast<std::underlying_type_t<Enum>>(value));
}
inline void append_field(std::string& bytes, std::uint32_t tag, const std::string& text) {
  if (!text.empty()) append_bytes(bytes, tag, text);
}
// A lead: 1, 2, 3, 4, ... stand for 0, -1, 1, -2, ...; a missing field stands for kNoLead.
inline void append_field(std::string& bytes, std::uint32_t tag, std::int64_t lead) {
  if (lead == kNoLead) return;
  const auto sign = static_cast<std::uint64_t>(lead >> 63);
  append_number(bytes, tag, ((static_cast<std::uint64_t>(lead) << 1) ^ sign) + 1);
}

inline void append_field(std::string& bytes, std::uint32_t tag,
                         const std::optional<UtcMs>& moment) {
  append_number(bytes, tag, moment.value_or(0));
}
inline void append_field(std::string& bytes, std::uint32_t tag,
                         const std::vector<FiredSpan>& spans) {
  std::string text;
  for (const FiredSpan& span : spans) {
    append_varint(text, span.first);
    append_varint(text, span.last - span.first);
  }
  append_field(bytes, tag, text);
}

// Each text, header and part is a field of its own.
inline void append_field(std::string& bytes, std::uint32_t tag,
                         const std::vector<std::string>& texts) {
  for (const std::string& text : texts) append_bytes(bytes, tag, text);
}
inline void append_field(std::string& bytes, std::uint32_t tag,
                         const std::vector<std::pair<std::string, std::string>>& headers) {
  for (const auto& [name, value] : headers) {
    std::string header;
    append_varint(header, name.size());
    append_bytes(bytes, tag, header.append(name).append(value));
  }
}
template <typename Part>
void append_field(std::string& bytes, std::uint32_t tag, const std::vector<Part>& parts) {
  std::string fields;
  for (const Part& part : parts) {
    fields.clear();
    each_field_of_part(part, [&fields](std::uint32_t inner, const auto& field) {
      append_field(fields, inner, field);
    });
    append_bytes(bytes, tag, fields);
  }
}

// Begins a value. Returns what appends its fields.
inline auto begin_value(std::string& bytes) {
  bytes += static_cast<char>(kFormatVersion);
  return [&bytes](std::uint32_t tag, const auto& field) { append_field(bytes, tag, field); };
}

// --- Reading.

// Sets the fields of a record from its value.
class StoredValue {
 public:
  StoredValue(const char* what, std::string_view key, std::string_view value)
      : what_(what), key_(key), value_(value) {
    if (value_.empty()) fail("is empty");
    if (value_.front() != kFormatVersion)
      fail("has version " + std::to_string(static_cast<std::uint8_t>(value_.front())));
  }

  // `each_field` calls its argument with each field of the record. Returns the fields that nobody
  // knows, as their bytes.
  template <typename EachField>
  std::string read(EachField&& each_field) const {
    return read_fields(value_.substr(1), each_field);
  }

  [[noreturn]] void fail(const std::string& how) const {
    throw StoreDamage(std::string(what_) + " under the key " + hex(key_) + " is damaged: it " +
                      how);
  }

 private:
  template <typename EachField>
  std::string read_fields(std::string_view bytes, EachField&& each_field) const {
    std::string unknown;
    FieldReader fields(bytes);
    while (fields.next()) {
      bool known = false;
      each_field([&](std::uint32_t tag, auto& field) {
        if (tag != fields.tag()) return;
        set(field, fields);
        known = true;
      });
      if (!known) unknown.append(fields.encoded());
    }
    if (fields.broken()) fail("is broken");
    return unknown;
  }

  template <typename Enum>
  requires std::is_enum_v<Enum>
  void set(Enum& to, const FieldReader& from) const {
    std::underlying_type_t<Enum> number = 0;
    set(number, from);
    to = static_cast<Enum>(number);
    if (to > largest(to)) fail_number(from);
  }
  template <typename Part>
  void set(std::vector<Part>& to, const FieldReader& from) const {
    read_fields(bytes_of(from),
                [&part = to.emplace_back()](auto&& field) { each_field_of_part(part, field); });
  }
  template <std::integral Number>
  void set(Number& to, const FieldReader& from) const {
    if (from.is_bytes() || from.number() > std::numeric_limits<Number>::max()) fail_number(from);
    to = static_cast<Number>(from.number());
  }
  void set(std::optional<UtcMs>& to, const FieldReader& from) const { set(to.emplace(), from); }
  void set(std::string& to, const FieldReader& from) const { to = bytes_of(from); }
  void set(std::vector<std::string>& to, const FieldReader& from) const {
    to.emplace_back(bytes_of(from));
  }
  void set(std::vector<std::pair<std::string, std::string>>& to, const FieldReader& from) const {
    std::string_view rest = bytes_of(from);
    std::uint64_t size = 0;
    if (!take_varint(rest, size) || size > rest.size()) fail("has a header that is cut short");
    to.emplace_back(rest.substr(0, size), rest.substr(size));
  }
  void set(std::vector<FiredSpan>& to, const FieldReader& from) const {
    for (std::string_view rest = bytes_of(from); !rest.empty();) {
      FiredSpan span;
      std::uint64_t length = 0;
      if (!take_varint(rest, span.first) || !take_varint(rest, length))
        fail("has spans that are cut short");
      span.last = span.first + length;
      to.push_back(span);
    }
  }

  void set(std::int64_t& to, const FieldReader& from) const {
    std::uint64_t number = 0;
    set(number, from);
    if (number == 0) fail("has a field " + std::to_string(from.tag()) + " that is no lead");
    const std::uint64_t lead = number - 1;
    to = static_cast<std::int64_t>((lead >> 1) ^ (0 - (lead & 1)));
  }

  std::string_view bytes_of(const FieldReader& field) const {
    if (!field.is_bytes()) fail("has a field " + std::to_string(field.tag()) + " that is a number");
    return field.bytes();
  }
  [[noreturn]] void fail_number(const FieldReader& field) const {
    fail("has a field " + std::to_string(field.tag()) + " that is no such number");
  }

  const char* what_;
  std::string_view key_;
  std::string_view value_;
};

}  // namespace carillon::queue
