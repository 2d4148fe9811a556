// How endpoints are written as values (record_values.h: how other records are): a version byte
// (format_version.h) and tagged fields (tagged_fields.h).
//
//    1 url (bytes)     2 tube (bytes)     3 secret (bytes)*    4 header (bytes)*
//    5 format          6 concurrency      7 timeout            8 disabled (bytes)    9 created
//   10 other_secrets_until               11 paused
//
// A field with an asterisk comes once for each. header := varint(size of name) name value. The key
// has the name. Fields that this version does not know are kept, and written again with the record.
//
// Reading throws StoreDamage, which names the endpoint, if a value is not as written above.
#pragma once

#include <string>
#include <string_view>

#include "carillon/queue/endpoint.h"

namespace carillon::queue {

void append_endpoint_value(std::string& bytes, const Endpoint& endpoint);
Endpoint read_endpoint_value(std::string_view name, std::string_view value);

}  // namespace carillon::queue
