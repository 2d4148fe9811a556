// TlsContext: the files of the certificates, and what TLS is allowed to do (tls_context.h).
#include "server/net/tls_context.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <utility>

#include "base/start_error.h"
#include "server/text/timestamp.h"

namespace carillon::server {
namespace {

using Clock = std::chrono::system_clock;

// The ciphers of TLS 1.2. All ciphers of TLS 1.3 are good.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  ERR_clear_error();
  throw base::StartError(fmt::format("TLS: {}: {}", path, why));
}

// OpenSSL's text for the last error.
std::string reason() {
  const char* const text = ERR_reason_error_string(ERR_peek_last_error());
  return text != nullptr ? text : "unknown error";
}

void require_readable(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) fail(path, std::strerror(errno));
  if (!S_ISREG(file.st_mode)) fail(path, "it is not a file");
  errno = 0;
  if (!std::ifstream(path)) fail(path, std::strerror(errno));
}

void use_certificate(SSL_CTX* context, const std::string& path) {
  require_readable(path);
  if (SSL_CTX_use_certificate_chain_file(context, path.c_str()) == 1) return;
  const unsigned long error = ERR_peek_error();
  const bool has_none =
      ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  fail(path, has_none ? "it has no certificate in PEM (-----BEGIN CERTIFICATE-----)"
                      : fmt::format("its certificate cannot be used: {}", reason()));
}

// Notes that OpenSSL asked for a password, and gives an empty one.
int give_no_password(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

void use_key(SSL_CTX* context, const TlsFiles& files) {
  require_readable(files.key);
  const std::unique_ptr<BIO, int (*)(BIO*)> file(BIO_new_file(files.key.c_str(), "r"), &BIO_free);
  bool asked = false;
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(
      file ? PEM_read_bio_PrivateKey(file.get(), nullptr, give_no_password, &asked) : nullptr,
      &EVP_PKEY_free);
  if (asked) {
    fail(files.key,
         "the key has a password, which nobody could type at a start: write it without "
         "one, by openssl pkey -in FILE -out FILE");
  }
  if (!key) fail(files.key, "it has no private key in PEM (-----BEGIN PRIVATE KEY-----)");
  if (SSL_CTX_use_PrivateKey(context, key.get()) == 1 && SSL_CTX_check_private_key(context) == 1)
    return;
  const unsigned long error = ERR_peek_last_error();
  const bool is_other = ERR_GET_LIB(error) == ERR_LIB_X509;
  fail(files.key,
       is_other ? fmt::format("the key does not belong to the certificate in {}", files.certificate)
                : fmt::format("the key cannot be used: {}", reason()));
}

void ask_clients(SSL_CTX* context, const std::string& path) {
  require_readable(path);
  STACK_OF(X509_NAME)* const names = SSL_load_client_CA_file(path.c_str());
  if (names == nullptr || SSL_CTX_load_verify_file(context, path.c_str()) != 1)
    fail(path, "it has no certificate in PEM (-----BEGIN CERTIFICATE-----)");
  SSL_CTX_set_client_CA_list(context, names);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
}

void set_rules(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(context, kCiphers);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // Replies may be sent in parts, and move in memory between two tries. Empty buffers are freed, so
  // an idle connection has no buffers.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  // One system call for a record instead of two.
  SSL_CTX_set_read_ahead(context, 1);
}

Clock::time_point time_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return {};
  return Clock::from_time_t(::timegm(&parts));
}

std::string shown(Clock::time_point time) {
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch());
  return format_timestamp(static_cast<std::uint64_t>(since.count()));
}

}  // namespace

TlsContext::TlsContext(TlsFiles files) : files_(std::move(files)), context_(load(files_)) {}

TlsContext::Context TlsContext::load(const TlsFiles& files) {
  Context context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  if (!context) throw base::StartError("TLS: " + reason());
  set_rules(context.get());
  use_certificate(context.get(), files.certificate);
  use_key(context.get(), files);
  if (files.client_ca) ask_clients(context.get(), *files.client_ca);
  ERR_clear_error();
  return context;
}

void TlsContext::reload() {
  context_ = load(files_);
}

std::unique_ptr<TlsStream> TlsContext::accept(int fd) const {
  SSL* const ssl = SSL_new(context_.get());
  if (ssl == nullptr) return nullptr;
  auto stream = std::make_unique<TlsStream>(ssl);
  return SSL_set_fd(ssl, fd) == 1 ? std::move(stream) : nullptr;
}

Clock::time_point TlsContext::not_after() const {
  return time_of(X509_get0_notAfter(SSL_CTX_get0_certificate(context_.get())));
}

Clock::time_point TlsContext::not_before() const {
  return time_of(X509_get0_notBefore(SSL_CTX_get0_certificate(context_.get())));
}

std::string key_exposure(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0 || (file.st_mode & S_IRWXO) == 0) return {};
  return fmt::format(
      "the mode of {} is {:04o}: every user may use the key; use chmod 600, or 640 "
      "for a group of its own",
      path, file.st_mode & 07777);
}

void log_certificate(const TlsContext& tls) {
  const std::string& path = tls.files().certificate;
  spdlog::info("TLS: the certificate in {} holds until {}", path, shown(tls.not_after()));
  if (tls.not_after() < Clock::now())
    spdlog::warn("TLS: the certificate in {} has ended: clients refuse it", path);
  if (tls.not_before() > Clock::now()) {
    spdlog::warn("TLS: the certificate in {} holds from {} on: until then clients refuse it", path,
                 shown(tls.not_before()));
  }
  if (const std::string why = key_exposure(tls.files().key); !why.empty())
    spdlog::warn("TLS: {}", why);
}

}  // namespace carillon::server
