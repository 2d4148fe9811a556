// The text for Prometheus (routes.h). It is no row of the API, because it is not JSON.
#include <memory>

#include "server/http/routes.h"
#include "server/metrics/metrics.h"

namespace carillon::server::http {

namespace {

void go_on(RequestContext& x, const std::shared_ptr<metrics::Scrape>& scrape) {
  if (!scrape->look()) return x.later([scrape](RequestContext& then) { go_on(then, scrape); });
  x.answer({.type = metrics::Exposition::kContentType, .body = scrape->text()});
}

}  // namespace

void answer_metrics(RequestContext& x) {
  go_on(x, std::make_shared<metrics::Scrape>(x.service(), x.client()));
}

}  // namespace carillon::server::http
