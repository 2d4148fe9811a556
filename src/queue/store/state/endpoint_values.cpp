// The fields of an endpoint (endpoint_values.h).

#include "queue/store/state/endpoint_values.h"

#include "carillon/queue/store.h"
#include "queue/store/state/record_keys.h"
#include "queue/store/state/tagged_fields.h"

namespace carillon::queue {

namespace {

constexpr char kEndpointVersion = 1;

enum Tag : std::uint32_t {
  kUrl = 1,
  kTube,
  kSecret,
  kHeader,
  kBodyFormat,
  kConcurrency,
  kTimeout,
  kDisabled,
  kCreated,
  kOtherSecretsUntil,
  kPaused
};

[[noreturn]] void fail(std::string_view name, const char* how) {
  throw StoreDamage("the record of the endpoint under the key " + hex(name) +
                    " is damaged: " + how);
}

std::pair<std::string, std::string> read_header(std::string_view name, std::string_view bytes) {
  std::uint64_t size = 0;
  if (!take_varint(bytes, size) || size > bytes.size()) fail(name, "a header is cut short");
  return {std::string(bytes.substr(0, size)), std::string(bytes.substr(size))};
}

// Returns false if the field is not known.
bool read_field(std::string_view name, const FieldReader& field, Endpoint& endpoint) {
  const bool has_bytes = field.tag() <= kHeader || field.tag() == kDisabled;
  if (field.tag() <= kPaused && field.is_bytes() != has_bytes)
    fail(name, "a field is of another kind");
  const std::string text(field.bytes());
  switch (field.tag()) {
    case kUrl:
      endpoint.url = text;
      return true;
    case kTube:
      endpoint.tube = text;
      return true;
    case kSecret:
      endpoint.secrets.push_back(text);
      return true;
    case kHeader:
      endpoint.headers.push_back(read_header(name, text));
      return true;
    case kBodyFormat:
      if (field.number() > static_cast<std::uint64_t>(Endpoint::Format::kCloudEventsInJson))
        fail(name, "its format is not known");
      endpoint.format = static_cast<Endpoint::Format>(field.number());
      return true;
    case kConcurrency:
      endpoint.concurrency = static_cast<std::uint32_t>(field.number());
      return true;
    case kTimeout:
      endpoint.timeout = field.number();
      return true;
    case kDisabled:
      endpoint.disabled = text;
      return true;
    case kCreated:
      endpoint.created = field.number();
      return true;
    case kOtherSecretsUntil:
      endpoint.other_secrets_until = field.number();
      return true;
    case kPaused:
      endpoint.paused = field.number() != 0;
      return true;
    default:
      return false;
  }
}

}  // namespace

void append_endpoint_value(std::string& bytes, const Endpoint& endpoint) {
  bytes += kEndpointVersion;
  append_bytes(bytes, kUrl, endpoint.url);
  append_bytes(bytes, kTube, endpoint.tube);
  for (const std::string& secret : endpoint.secrets) append_bytes(bytes, kSecret, secret);
  for (const auto& [name, value] : endpoint.headers) {
    std::string header;
    append_varint(header, name.size());
    append_bytes(bytes, kHeader, header.append(name).append(value));
  }
  append_number(bytes, kBodyFormat, static_cast<std::uint64_t>(endpoint.format));
  append_number(bytes, kConcurrency, endpoint.concurrency);
  append_number(bytes, kTimeout, endpoint.timeout);
  if (!endpoint.disabled.empty()) append_bytes(bytes, kDisabled, endpoint.disabled);
  append_number(bytes, kCreated, endpoint.created);
  append_number(bytes, kOtherSecretsUntil, endpoint.other_secrets_until);
  append_number(bytes, kPaused, endpoint.paused ? 1 : 0);
  bytes.append(*endpoint.newer);
}

Endpoint read_endpoint_value(std::string_view name, std::string_view value) {
  if (value.empty() || value.front() != kEndpointVersion) fail(name, "its version is not known");
  Endpoint endpoint;
  std::string unknown;
  FieldReader fields(value.substr(1));
  while (fields.next())
    if (!read_field(name, fields, endpoint)) unknown.append(fields.encoded());
  if (fields.broken()) fail(name, "its fields are broken");
  if (endpoint.concurrency == 0 || endpoint.tube.empty()) fail(name, "a field is missing");
  endpoint.newer = detail::Rare(std::move(unknown));
  return endpoint;
}

}  // namespace carillon::queue
