#include "cluster/postgres/libpq.h"

#include <dlfcn.h>

#include <string>

#include "base/start_error.h"

namespace carillon::cluster::postgres {
namespace {

constexpr const char* kFile = "libpq.so.5";

// Returns what dlopen() or dlsym() has to say.
std::string reason() {
  const char* const text = ::dlerror();
  return text != nullptr ? text : "the reason is not known";
}

template <typename Function>
void find(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function != nullptr) return;
  throw base::StartError(std::string("PostgreSQL's client library ") + kFile + " is too old: " +
                         reason() + "; install libpq 13 or newer (Debian: apt install libpq5)");
}

Libpq load() {
  void* const library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw base::StartError(
        "a cluster in PostgreSQL needs its client library, and it cannot be loaded: " + reason() +
        "; install it (Debian: apt install libpq5)");
  }
  Libpq pq = {};
  find(library, pq.parse_url, "PQconninfoParse");
  find(library, pq.free_options, "PQconninfoFree");
  find(library, pq.connect, "PQconnectdbParams");
  find(library, pq.finish, "PQfinish");
  find(library, pq.status, "PQstatus");
  find(library, pq.transaction_status, "PQtransactionStatus");
  find(library, pq.error_message, "PQerrorMessage");
  find(library, pq.server_version, "PQserverVersion");
  find(library, pq.host, "PQhost");
  find(library, pq.port, "PQport");
  find(library, pq.database, "PQdb");
  find(library, pq.user, "PQuser");
  find(library, pq.password, "PQpass");
  find(library, pq.socket, "PQsocket");
  find(library, pq.set_nonblocking, "PQsetnonblocking");
  find(library, pq.set_verbosity, "PQsetErrorVerbosity");
  find(library, pq.set_notice_receiver, "PQsetNoticeReceiver");
  find(library, pq.send_script, "PQsendQuery");
  find(library, pq.send_prepare, "PQsendPrepare");
  find(library, pq.send_statement, "PQsendQueryParams");
  find(library, pq.send_prepared, "PQsendQueryPrepared");
  find(library, pq.flush, "PQflush");
  find(library, pq.consume_input, "PQconsumeInput");
  find(library, pq.is_busy, "PQisBusy");
  find(library, pq.get_result, "PQgetResult");
  find(library, pq.result_status, "PQresultStatus");
  find(library, pq.error_field, "PQresultErrorField");
  find(library, pq.clear, "PQclear");
  find(library, pq.rows, "PQntuples");
  find(library, pq.is_null, "PQgetisnull");
  find(library, pq.value, "PQgetvalue");
  find(library, pq.length, "PQgetlength");
  return pq;
}

}  // namespace

const Libpq& libpq() {
  static const Libpq loaded = load();
  return loaded;
}

}  // namespace carillon::cluster::postgres
