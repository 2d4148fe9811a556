// What a server may do to a client's connection, over a pair of sockets.

// Within coroutines g++ 12 takes a literal of the compiler's own for one of the source.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"

#include "server/net/client_connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <exception>
#include <string>
#include <string_view>
#include <thread>

namespace carillon::server {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

struct Asked {
  HttpAnswer answer;
  boost::system::error_code error;
};

class ClientConnections : public testing::Test {
 protected:
  // Asks, while `serve` plays the server with the other end.
  template <class Serve>
  Asked ask(const HttpRequest& request, milliseconds patience, Serve serve) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    server_ = ends[1];
    asio::io_context io;
    ClientConnection connection(io.get_executor(), ends[0]);
    connection.set_patience(patience);
    Asked asked;
    const auto talk = [&]() -> asio::awaitable<void> {
      asked.answer = co_await connection.ask(request, {});
    };
    asio::co_spawn(io, talk, [&](const std::exception_ptr& failed) {
      try {
        if (failed) std::rethrow_exception(failed);
      } catch (const boost::system::system_error& error) {
        asked.error = error.code();
      }
      connection.close();  // so that the server's thread ends
    });
    std::thread server(serve);
    io.run();
    server.join();
    ::close(server_);
    return asked;
  }

  // Returns false if the client is gone.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(server_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // Reads the request up to the end of its body.
  std::string take(std::size_t body) {
    std::string all;
    std::array<char, 4'096> piece{};
    for (std::size_t end = 0; end == 0 || all.size() < end + body;) {
      const auto got = ::recv(server_, piece.data(), piece.size(), 0);
      if (got <= 0) break;
      all.append(piece.data(), static_cast<std::size_t>(got));
      if (const auto at = all.find("\r\n\r\n"); at != std::string::npos) end = at + 4;
    }
    return all;
  }

 private:
  int server_ = -1;  // the server's end
};

constexpr milliseconds kLong{60'000};

TEST_F(ClientConnections, SendASmallAndALargeBodyWhole) {
  for (const std::size_t size : {0U, 1U, 4'096U, 4'097U, 1'000'000U}) {
    const std::string body(size, 'b');
    std::string got;
    const Asked asked = ask(
        {.method = "POST", .target = "/a", .headers = {{"Host", "h"}}, .body = body}, kLong, [&] {
          got = take(size);
          send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        });
    EXPECT_FALSE(asked.error) << asked.error.message();
    EXPECT_EQ(asked.answer.body, "ok");
    EXPECT_EQ(got.substr(0, got.find("\r\n")), "POST /a HTTP/1.1");
    EXPECT_NE(got.find("Content-Length: " + std::to_string(size) + "\r\n"), std::string::npos);
    EXPECT_EQ(got.substr(got.find("\r\n\r\n") + 4), body);
  }
}

// The time is for the whole header: a byte does not begin it anew.
TEST_F(ClientConnections, GiveUpAHeaderThatDrips) {
  int bytes = 0;
  const Asked asked = ask({.method = "GET", .target = "/"}, milliseconds(200), [&] {
    while (send("H") && bytes < 1'000) {
      ++bytes;
      std::this_thread::sleep_for(milliseconds(20));
    }
  });
  EXPECT_EQ(asked.error, boost::beast::error::timeout);
  EXPECT_LT(bytes, 1'000);
}

TEST_F(ClientConnections, GiveUpAChunkThatDrips) {
  int bytes = 0;
  const Asked asked = ask({.method = "GET", .target = "/"}, milliseconds(200), [&] {
    send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;");
    while (send("a") && bytes < 1'000) {
      ++bytes;
      std::this_thread::sleep_for(milliseconds(20));
    }
  });
  EXPECT_EQ(asked.error, boost::beast::error::timeout);
  EXPECT_LT(bytes, 1'000);
}

// Neither what stands in front of a chunk nor the trailers take memory without a bound.
TEST_F(ClientConnections, RefuseALineOfAChunkOrTrailersWithoutAnEnd) {
  const std::string more(64 << 10, 'a');
  for (const std::string_view begin : {"2;", "0\r\nX: "}) {
    std::size_t sent = 0;
    const Asked asked = ask({.method = "GET", .target = "/"}, kLong, [&] {
      send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
      send(begin);
      while (sent < (100 << 20) && send(more)) sent += more.size();
    });
    EXPECT_EQ(asked.error, boost::beast::http::error::header_limit) << begin;
    EXPECT_LT(sent, 8 << 20) << begin;
  }
}

}  // namespace
}  // namespace carillon::server
