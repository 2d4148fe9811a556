// TlsClient (tls_client.h).
#include "cli/tls_client.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "cli/error_text.h"
#include "cli/exit_status.h"

namespace carillon::cli {
namespace {

std::string reason() {
  const char* const text = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return text != nullptr ? text : "unknown error";
}

void trust(SSL_CTX* context, const std::optional<std::string>& ca_file) {
  if (!ca_file) {
    SSL_CTX_set_default_verify_paths(context);
    return;
  }
  errno = 0;
  if (!std::ifstream(*ca_file))
    throw Failure(fmt::format("cannot read {}: {}", *ca_file, error_text(errno)));
  if (SSL_CTX_load_verify_file(context, ca_file->c_str()) == 1) return;
  ERR_clear_error();
  throw Failure(
      fmt::format("{} has no certificate in PEM (-----BEGIN CERTIFICATE-----)", *ca_file));
}

std::string file_in(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr ? value : "";
}

int give_no_password(char*, int, int, void*) {
  return -1;
}

// The client's own certificate, if it has one.
void show_certificate(SSL_CTX* context) {
  const std::string certificate = file_in("CARILLON_TLS_CERT");
  const std::string key = file_in("CARILLON_TLS_KEY");
  if (certificate.empty() && key.empty()) return;
  if (certificate.empty() || key.empty())
    throw Failure("the variables CARILLON_TLS_CERT and CARILLON_TLS_KEY go together");
  SSL_CTX_set_default_passwd_cb(context, give_no_password);
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1)
    throw Failure(fmt::format("the certificate in {} cannot be used: {}", certificate, reason()));
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1)
    throw Failure(fmt::format("the key in {} cannot be used: {}", key, reason()));
}

// The server has asked for a certificate, and has got none that it takes.
bool is_refused() {
  const int why = ERR_GET_REASON(ERR_peek_last_error());
  return why == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED || why == SSL_R_TLSV1_ALERT_UNKNOWN_CA ||
         why == SSL_R_SSLV3_ALERT_BAD_CERTIFICATE;
}

}  // namespace

TlsClient::TlsClient(const std::string& host, const std::optional<std::string>& ca_file)
    : context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free), ssl_(nullptr, &SSL_free) {
  if (!context_) throw Failure("TLS: " + reason());
  SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  trust(context_.get(), ca_file);
  show_certificate(context_.get());
  ssl_.reset(SSL_new(context_.get()));
  input_ = BIO_new(BIO_s_mem());
  output_ = BIO_new(BIO_s_mem());
  if (!ssl_ || input_ == nullptr || output_ == nullptr) throw Failure("TLS: " + reason());
  SSL_set_bio(ssl_.get(), input_, output_);
  SSL_set_connect_state(ssl_.get());
  X509_VERIFY_PARAM* const wanted = SSL_get0_param(ssl_.get());
  if (X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str()) == 1) return;
  ERR_clear_error();
  // What the macro SSL_set_tlsext_host_name does: it has a cast of C.
  std::string name = host;
  const long told =
      SSL_ctrl(ssl_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
  if (told != 1 || SSL_set1_host(ssl_.get(), host.c_str()) != 1)
    throw Failure(fmt::format("TLS: \"{}\" is no name of a server", host));
}

bool TlsClient::shake_hands() {
  ERR_clear_error();
  const int returned = SSL_do_handshake(ssl_.get());
  if (returned == 1) return true;
  const int error = SSL_get_error(ssl_.get(), returned);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return false;
  const long verified = SSL_get_verify_result(ssl_.get());
  if (verified != X509_V_OK) {
    throw Failure(fmt::format("its certificate is refused: {} (see --tls-ca)",
                              lower_first(X509_verify_cert_error_string(verified))));
  }
  if (ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_WRONG_VERSION_NUMBER)
    throw Failure("it speaks no TLS");
  throw Failure("TLS failed: " + reason());
}

// The memory takes all of it at once.
void TlsClient::encrypt(std::string_view bytes) {
  ERR_clear_error();
  std::size_t written = 0;
  if (!bytes.empty() && SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written) != 1)
    throw Failure("TLS failed: " + reason());
}

bool TlsClient::decrypt(std::string& to) {
  std::array<char, 16'384> buffer;
  while (true) {
    ERR_clear_error();
    std::size_t bytes = 0;
    const int returned = SSL_read_ex(ssl_.get(), buffer.data(), buffer.size(), &bytes);
    if (returned == 1) {
      to.append(buffer.data(), bytes);
      continue;
    }
    const int error = SSL_get_error(ssl_.get(), returned);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return true;
    if (error == SSL_ERROR_ZERO_RETURN) return false;
    if (is_refused()) {
      throw Failure(
          fmt::format("it asks for a certificate of the client: {} (see the variables "
                      "CARILLON_TLS_CERT and CARILLON_TLS_KEY)",
                      reason()));
    }
    throw Failure("TLS failed: " + reason());
  }
}

void TlsClient::add_input(std::string_view bytes) {
  std::size_t written = 0;
  if (!bytes.empty() && BIO_write_ex(input_, bytes.data(), bytes.size(), &written) != 1)
    throw Failure("TLS: there is no memory");
}

std::string TlsClient::take_output() {
  std::string bytes(BIO_ctrl_pending(output_), '\0');
  std::size_t read = 0;
  if (!bytes.empty()) BIO_read_ex(output_, bytes.data(), bytes.size(), &read);
  bytes.resize(read);
  return bytes;
}

}  // namespace carillon::cli
