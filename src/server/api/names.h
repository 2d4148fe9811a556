// Which names are allowed, in every protocol. Tubes, schedules and endpoints follow one rule
// (is_tube_name). Keys of jobs and names of groups follow another one (is_key).
//
//   is_tube_name("mail.fast");   is_key("order 17") == false
//
// Thread safety: pure.
#pragma once

#include <cstddef>
#include <string_view>

#include "carillon/queue/job.h"

namespace carillon::server {

// In bytes; beanstalkd allows the same names.
using queue::kMaxTubeName;
// Returns true if the text may be the name of a tube, schedule or endpoint.
bool is_tube_name(std::string_view name);
// Returns true if such a name may contain the byte.
bool is_name_byte(char c);

// Returns true if it may be the key of a job, or the name of a group. A quote at the beginning
// would be that of an option's value.
bool is_key(std::string_view key);
// Returns true if a header Content-Type may have the text: printable ASCII.
bool is_content_type(std::string_view type);
// Returns true if the text has 1 to 200 bytes, and no space or control character.
bool is_word(std::string_view text);
// The rule of is_key(), for messages.
inline constexpr std::string_view kKeyRule =
    "1 to 200 bytes, no space or control character, and no quote at its beginning";
static_assert(queue::kMaxKey == 200 && queue::kMaxGroup == 200);

// The priority of a job if the request does not name one.
inline constexpr queue::Priority kUsualPriority = 65'536;

// One request covers at most this many jobs, and this many bytes in or out. So no request keeps
// others waiting for long.
inline constexpr std::size_t kMaxBatch = 1'000;
inline constexpr std::size_t kMaxBatchBytes = 1 << 20;

}  // namespace carillon::server
