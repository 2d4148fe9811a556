// Jobs as JSON, for `--json`: {"id":7,"tube":"mail","body":"hello"} on one line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/client.h"

namespace carillon::cli {

/// What was put: id, tube and "due", its UTC time by this machine's clock.
std::string put_json(std::uint64_t id, std::string_view tube, std::uint64_t due_ms);

/// A job with its body: in "body" if it is text (UTF-8), else in "body_base64" (RFC 4648), since
/// JSON knows no other bytes. An empty `state` is left out.
std::string job_json(const Job& job, std::string_view tube, std::string_view state);

/// Whether the bytes are UTF-8 as RFC 3629 defines it: shortest forms, no surrogates, nothing past
/// U+10FFFF.
bool is_utf8(std::string_view bytes);

/// RFC 4648, section 4, with padding.
std::string to_base64(std::string_view bytes);

}  // namespace carillon::cli
