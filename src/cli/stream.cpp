// Runs the coroutines of a ClientConnection to their ends, one at a time (stream.h).

// GCC 12 finds a 0 as a null pointer in the frames of coroutines that it writes itself.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"

#include "cli/stream.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/system/system_error.hpp>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <utility>

#include "cli/exit_status.h"
#include "server/net/client_connection.h"
#include "server/text/duration.h"

namespace carillon::cli {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using boost::system::system_error;
using Endpoint = server::ClientConnection::Endpoint;

constexpr std::chrono::seconds kConnectLimit{5};
constexpr std::size_t kLongestAnswer = (1 << 30) + (1 << 20);  // the largest body, and a little

// A worker may wait for hours in a reserve. Keep-alive detects within 60 s that the server's
// machine is gone.
void watch_for_its_end(int fd) {
  const auto set = [fd](int level, int option, int value) {
    ::setsockopt(fd, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

// The words of the system begin with a capital letter.
std::string text_of(const error_code& error) {
  return error == boost::beast::error::timeout ? error_text(ETIMEDOUT)
                                               : lower_first(error.message());
}

bool is_on_this_machine(const server::Address& address) {
  if (address.is_unix() || address.host == "localhost") return true;
  error_code error;
  const auto numeric = asio::ip::make_address(address.host, error);
  return !error && numeric.is_loopback();
}

std::string how_to_start(const server::Address& address, const std::string& flags = {}) {
  if (!is_on_this_machine(address)) return "";
  const std::string name = server::to_string(address);
  const bool is_usual = name == fmt::format("127.0.0.1:{}", server::kBeanstalkPort);
  const std::string listen = is_usual ? "" : " --listen " + name;
  return "; start one with: carillon serve" + (flags.empty() ? listen : flags);
}

std::string file_in(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr ? value : "";
}

// Sets the certificates that may have signed that of the server.
void trust(asio::ssl::context& context, const std::optional<std::string>& ca_file) {
  error_code error;
  if (!ca_file) {
    context.set_default_verify_paths(error);
    return;
  }
  errno = 0;
  if (!std::ifstream(*ca_file))
    throw Failure(fmt::format("cannot read {}: {}", *ca_file, error_text(errno)));
  if (context.load_verify_file(*ca_file, error))
    throw Failure(
        fmt::format("{} has no certificate in PEM (-----BEGIN CERTIFICATE-----)", *ca_file));
}

// The client's own certificate, if it has one.
void show_certificate(asio::ssl::context& context) {
  const std::string certificate = file_in("CARILLON_TLS_CERT");
  const std::string key = file_in("CARILLON_TLS_KEY");
  if (certificate.empty() && key.empty()) return;
  if (certificate.empty() || key.empty())
    throw Failure("the variables CARILLON_TLS_CERT and CARILLON_TLS_KEY go together");
  error_code error;
  context.set_password_callback([](std::size_t, auto) { return std::string(); }, error);
  if (context.use_certificate_chain_file(certificate, error))
    throw Failure(
        fmt::format("the certificate in {} cannot be used: {}", certificate, error.message()));
  if (context.use_private_key_file(key, asio::ssl::context::pem, error))
    throw Failure(fmt::format("the key in {} cannot be used: {}", key, error.message()));
}

asio::ssl::context new_context(const std::optional<std::string>& ca_file) {
  asio::ssl::context context(asio::ssl::context::tls_client);
  context.set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1);
  trust(context, ca_file);
  show_certificate(context);
  return context;
}

// The other end has closed the connection.
bool is_end(const error_code& error) {
  return error == asio::error::eof || error == asio::ssl::error::stream_truncated ||
         error == boost::beast::http::error::end_of_stream ||
         error == boost::beast::http::error::partial_message;
}

bool is_no_http(const error_code& error) {
  const error_code any = boost::beast::http::error::bad_version;
  return error.category() == any.category() && !is_end(error);
}

asio::awaitable<void> read_into(server::ClientConnection& connection, asio::mutable_buffer buffer,
                                std::size_t& count) {
  count = co_await connection.read_some(buffer);
}

asio::awaitable<void> ask_into(server::ClientConnection& connection,
                               const server::HttpRequest& request, const server::HttpLimits& limits,
                               server::HttpAnswer& answer) {
  answer = co_await connection.ask(request, limits);
}

}  // namespace

struct Stream::Link {
  asio::io_context io{1};
  std::optional<asio::ssl::context> tls;
  std::unique_ptr<server::ClientConnection> connection;
  asio::posix::stream_descriptor interrupt{io};
  int watched = -1;
  bool interrupted = false;

  ~Link() { watch(-1); }

  // The descriptor belongs to the caller.
  void watch(int fd) {
    if (interrupt.is_open()) interrupt.release();
    interrupted = false;
    watched = fd;
    if (fd < 0) return;
    interrupt.assign(fd);
    interrupt.async_wait(asio::posix::stream_descriptor::wait_read,
                         [this](const error_code& error) {
                           if (error) return;
                           interrupted = true;
                           if (connection) connection->close();
                         });
  }

  void run(asio::awaitable<void> step) {
    bool done = false;
    std::exception_ptr failed;
    asio::co_spawn(io, std::move(step), [&](const std::exception_ptr& why) {
      done = true;
      failed = why;
    });
    io.restart();
    while (!done) io.run_one();
    if (interrupted) throw Interrupted();
    if (failed) std::rethrow_exception(failed);
  }
};

namespace {

// The name of an address, and the advice if nobody answers there, for messages.
struct Place {
  std::string name;
  const std::function<std::string()>& advice;
};

[[noreturn]] void cannot_connect(const Place& place, int error, std::string_view text) {
  const bool nobody = error == ECONNREFUSED || error == ENOENT;
  throw Unavailable(
      fmt::format("cannot connect to {}: {}{}", place.name, text, nobody ? place.advice() : ""));
}

std::vector<Endpoint> endpoints_of(const server::Address& address, const Place& place) {
  if (address.is_unix()) return {asio::local::stream_protocol::endpoint(address.path)};
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &found);
  if (failed != 0) cannot_connect(place, 0, lower_first(::gai_strerror(failed)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  std::vector<Endpoint> all;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next)
    all.emplace_back(one->ai_addr, one->ai_addrlen, one->ai_protocol);
  return all;
}

}  // namespace

Stream::Stream(std::string peer) : link_(std::make_unique<Link>()), peer_(std::move(peer)) {}
Stream::~Stream() = default;
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;

Stream::Stream(base::FileDescriptor fd, std::string peer) : Stream(std::move(peer)) {
  link_->connection =
      std::make_unique<server::ClientConnection>(link_->io.get_executor(), fd.release());
}

void Stream::connect_to(const server::Address& address, const Advice& advice, int interrupt_fd) {
  const Place place{peer_, advice};
  link_->watch(interrupt_fd);
  error_code error;
  for (const Endpoint& to : endpoints_of(address, place)) {
    link_->connection = std::make_unique<server::ClientConnection>(link_->io.get_executor());
    link_->connection->set_patience(kConnectLimit);
    try {
      link_->run(link_->connection->connect(to));
      if (!address.is_unix()) watch_for_its_end(link_->connection->descriptor());
      return;
    } catch (const system_error& failed) {
      error = failed.code();
    }
  }
  cannot_connect(place, error.value(), text_of(error));
}

Stream Stream::connect(const server::Address& address, int interrupt_fd) {
  const std::string name = server::to_string(address);
  Stream stream(name);
  stream.connect_to(
      address, [&] { return how_to_start(address); }, interrupt_fd);
  return stream;
}

Stream Stream::connect(const ServerAddress& server, int interrupt_fd) {
  const auto token = server.token();
  const server::Address& address = server;
  Stream stream = connect(address, interrupt_fd);
  if (server.uses_tls()) stream.begin_tls(server.host, server.ca_file());
  if (!token) return stream;
  stream.send("auth " + *token + "\r\n");
  const std::string reply = stream.read_line();
  if (reply == "AUTHENTICATED") return stream;
  if (reply == "NOT_AUTHENTICATED")
    throw Failure(fmt::format("{} does not know the token", stream.peer()));
  throw Failure(
      fmt::format("{} takes no tokens: it answered {}", stream.peer(), reply.substr(0, 60)));
}

Stream Stream::connect_http(const ServerAddress& server, int interrupt_fd) {
  const server::Address address = server.http_address();
  const std::string name = server::to_string(address);
  // The server may be there, and answer HTTP nowhere or at another address.
  const auto advice = [&] {
    try {
      connect(static_cast<const server::Address&>(server), interrupt_fd);
    } catch (const Unavailable&) {
      return server.http ? how_to_start(address, " --http " + name) : how_to_start(server);
    }
    return fmt::format(
        "; the server at {} answers, but nothing answers HTTP there: see carillon serve --http, "
        "and name its address by --http or CARILLON_HTTP",
        server::to_string(server));
  };
  Stream stream(name + " (HTTP)");
  stream.connect_to(address, advice, interrupt_fd);
  if (server.uses_tls()) stream.begin_tls(address.host, server.ca_file());
  return stream;
}

void Stream::begin_tls(const std::string& host, const std::optional<std::string>& ca_file) {
  const auto failed = [this](std::string_view why) {
    return Failure(fmt::format("{}: {}", peer_, why));
  };
  server::ClientConnection& connection = *link_->connection;
  try {
    link_->tls.emplace(new_context(ca_file));
    connection.set_patience(kPatience);
    link_->run(connection.start_tls(*link_->tls, host));
  } catch (const system_error& error) {
    const std::string wrong = connection.wrong_certificate();
    if (!wrong.empty())
      throw failed(
          fmt::format("its certificate is refused: {} (see --tls-ca)", lower_first(wrong)));
    if (server::speaks_no_tls(error.code()))
      throw failed("it speaks no TLS: leave out --tls, --tls-ca and CARILLON_TLS");
    throw_lost(error.code(), kPatience);
  } catch (const Failure& error) {
    throw failed(error.what());
  }
}

// Throws what a failed step means.
void Stream::throw_lost(const error_code& error, Patience patience) {
  if (error == boost::beast::error::timeout) {
    throw Unavailable(
        fmt::format("{} has not answered for {}", peer_, server::short_duration(*patience)));
  }
  if (server::wants_certificate(error)) {
    throw Failure(
        fmt::format("{}: it asks for a certificate of the client: {} (see the variables "
                    "CARILLON_TLS_CERT and CARILLON_TLS_KEY)",
                    peer_, error.message()));
  }
  if (error.category() == asio::error::get_ssl_category())
    throw Failure(fmt::format("{}: TLS failed: {}", peer_, error.message()));
  if (is_no_http(error))
    throw Failure(fmt::format("{} does not speak HTTP: {}", peer_, error.message()));
  throw Unavailable(fmt::format("lost the connection to {}: {}", peer_,
                                is_end(error)                          ? "closed by the server"
                                : error == asio::error::bad_descriptor ? "it is closed"
                                                                       : text_of(error)));
}

template <class Step>
void Stream::run(Patience patience, Step step) {
  // A longer wait could overflow the clock, whose range is 292 years.
  if (patience && *patience >= std::chrono::years(100)) patience.reset();
  link_->connection->set_patience(patience);
  try {
    link_->run(step(*link_->connection));
  } catch (const system_error& error) {
    link_->connection->close();  // Asio would wait for ever for what comes behind the end
    throw_lost(error.code(), patience);
  }
}

void Stream::interrupt_on(int fd) {
  link_->watch(fd);
}

void Stream::rest(std::chrono::milliseconds time) {
  wait_for(-1, 0, time, link_->watched);
}

void Stream::send(std::string_view bytes) {
  run(kPatience, [&](auto& connection) { return connection.write(asio::buffer(bytes)); });
}

void Stream::receive_more(Patience patience) {
  // A descriptor that is readable by now ends the wait, whatever the server has sent.
  if (link_->watched >= 0) wait_for(-1, 0, std::chrono::milliseconds(0), link_->watched);
  std::array<char, 65'536> buffer;
  std::size_t count = 0;
  run(patience, [&](server::ClientConnection& connection) {
    return read_into(connection, asio::buffer(buffer), count);
  });
  received_.append(buffer.data(), count);
}

std::string Stream::read_line(Patience patience) {
  std::size_t end = 0;
  while ((end = received_.find("\r\n")) == std::string::npos) {
    if (received_.size() > kMaxLine) {
      throw Failure(fmt::format(
          "{} does not speak the beanstalk protocol: it sent {} bytes without a line end", peer_,
          received_.size()));
    }
    receive_more(patience);
  }
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 2);
  return line;
}

std::string Stream::read_exactly(std::size_t count) {
  while (received_.size() < count) receive_more(kPatience);
  std::string bytes = received_.substr(0, count);
  received_.erase(0, count);
  return bytes;
}

bool Stream::is_open() {
  return link_->connection->is_open() && link_->connection->is_quiet();
}

server::HttpAnswer Stream::ask(const server::HttpRequest& request, Patience patience) {
  constexpr server::HttpLimits kLimits{.body = kLongestAnswer + 1};
  server::HttpAnswer answer;
  run(patience, [&](server::ClientConnection& connection) {
    return ask_into(connection, request, kLimits, answer);
  });
  if (answer.body.size() <= kLongestAnswer) return answer;
  throw Failure(fmt::format("{} answered more than {} bytes", peer_, kLongestAnswer));
}

}  // namespace carillon::cli
