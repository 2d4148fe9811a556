// The fields of an endpoint (endpoint_values.h).

#include "queue/store/state/endpoint_values.h"

#include "carillon/queue/store.h"
#include "queue/store/state/value_fields.h"

namespace carillon::queue {

namespace {

// Calls `field` with the tag of each field and a reference to it.
template <typename Of, typename Field>
void each_field_of_endpoint(Of& endpoint, Field&& field) {
  field(1, endpoint.url);
  field(2, endpoint.tube);
  field(3, endpoint.secrets);
  field(4, endpoint.headers);
  field(5, endpoint.format);
  field(6, endpoint.concurrency);
  field(7, endpoint.timeout);
  field(8, endpoint.disabled);
  field(9, endpoint.created);
  field(10, endpoint.other_secrets_until);
  field(11, endpoint.paused);
}

}  // namespace

void append_endpoint_value(std::string& bytes, const Endpoint& endpoint) {
  each_field_of_endpoint(endpoint, begin_value(bytes));
  bytes.append(*endpoint.newer);
}

Endpoint read_endpoint_value(std::string_view name, std::string_view bytes) {
  const StoredValue value("the record of the endpoint", name, bytes);
  Endpoint endpoint;
  endpoint.newer = detail::Rare(
      value.read([&endpoint](auto&& field) { each_field_of_endpoint(endpoint, field); }));
  if (endpoint.concurrency == 0 || endpoint.tube.empty()) value.fail("lacks a field");
  return endpoint;
}

}  // namespace carillon::queue
