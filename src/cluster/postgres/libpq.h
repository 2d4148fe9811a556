// PostgreSQL's client library, loaded when a cluster first asks for it.
//
//   const Libpq& pq = libpq();                     // throws StartError if it is not installed
//   PGconn* const connection = pq.connect(names, values, 1);
//
// The program is not linked to it: a server without --cluster neither needs nor loads it (decision
// 0218).
//
// Thread safety: any thread may call libpq().
#pragma once

#include <libpq-fe.h>

namespace carillon::cluster::postgres {

// Each member is the function of libpq-fe.h that its name says.
struct Libpq {
  decltype(&PQconninfoParse) parse_url;
  decltype(&PQconninfoFree) free_options;
  decltype(&PQconnectdbParams) connect;
  decltype(&PQfinish) finish;
  decltype(&PQstatus) status;
  decltype(&PQtransactionStatus) transaction_status;
  decltype(&PQerrorMessage) error_message;
  decltype(&PQserverVersion) server_version;
  decltype(&PQhost) host;
  decltype(&PQport) port;
  decltype(&PQdb) database;
  decltype(&PQuser) user;
  decltype(&PQpass) password;
  decltype(&PQsocket) socket;
  decltype(&PQsetnonblocking) set_nonblocking;
  decltype(&PQsetErrorVerbosity) set_verbosity;
  decltype(&PQsetNoticeReceiver) set_notice_receiver;
  decltype(&PQsendQuery) send_script;
  decltype(&PQsendPrepare) send_prepare;
  decltype(&PQsendQueryParams) send_statement;
  decltype(&PQsendQueryPrepared) send_prepared;
  decltype(&PQflush) flush;
  decltype(&PQconsumeInput) consume_input;
  decltype(&PQisBusy) is_busy;
  decltype(&PQgetResult) get_result;
  decltype(&PQresultStatus) result_status;
  decltype(&PQresultErrorField) error_field;
  decltype(&PQclear) clear;
  decltype(&PQntuples) rows;
  decltype(&PQgetisnull) is_null;
  decltype(&PQgetvalue) value;
  decltype(&PQgetlength) length;
};

// Returns the library. It stays loaded. Throws StartError (base/start_error.h) if libpq.so.5 is not
// there or too old.
const Libpq& libpq();

}  // namespace carillon::cluster::postgres
