// Tests of streams: lines, counted bytes, and the events that end a wait.

#include "cli/stream.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <string>
#include <thread>

#include "cli/scripted_server.h"

namespace carillon::cli {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

TEST(Stream, ReadsLinesAndBytesThatArriveInAnyPieces) {
  ScriptedServer server;
  Stream stream = server.stream();
  server.answer("FOUND 7 4\r\na\r\n");
  EXPECT_EQ(stream.read_line(), "FOUND 7 4");
  EXPECT_EQ(stream.read_exactly(1), "a");
  server.answer("b\r\nNEXT\r");
  EXPECT_EQ(stream.read_exactly(5), "\r\nb\r\n");
  server.answer("\n\r\n");
  EXPECT_EQ(stream.read_line(), "NEXT");
  EXPECT_EQ(stream.read_line(), "");
}

TEST(Stream, ACarriageReturnAloneDoesNotEndALine) {
  ScriptedServer server;
  Stream stream = server.stream();
  server.answer("a\rb\nc\r\n");
  EXPECT_EQ(stream.read_line(), "a\rb\nc");
}

TEST(Stream, SendsMoreThanTheSocketTakesAtOnce) {
  ScriptedServer server;
  Stream stream = server.stream();
  const std::string sent(4 << 20, 'x');
  std::string received;
  std::thread reader([&] {
    while (received.size() < sent.size()) received += server.received();
  });
  stream.send(sent);
  reader.join();
  EXPECT_EQ(received, sent);
}

TEST(Stream, AClosedConnectionIsUnavailable) {
  ScriptedServer server;
  Stream stream = server.stream();
  server.answer("half a li");
  server.close();
  EXPECT_EQ(failure_of([&] { stream.read_line(); }),
            "lost the connection to the server: closed by the server");
  EXPECT_THROW(stream.read_exactly(100), Unavailable);
  EXPECT_EQ(failure_of([&] { stream.send("x"); }),
            "lost the connection to the server: it is closed");
}

TEST(Stream, SilenceIsUnavailableAfterThePatience) {
  ScriptedServer server;
  Stream stream = server.stream();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(failure_of([&] { stream.read_line(50ms); }), "the server has not answered for 0.05s");
  EXPECT_GE(std::chrono::steady_clock::now() - start, 50ms);
}

TEST(Stream, AnEventEndsTheWait) {
  ScriptedServer server;
  Stream stream = server.stream();
  Event event;
  stream.interrupt_on(event.fd());
  std::thread later([&] {
    std::this_thread::sleep_for(20ms);
    event.set();
  });
  EXPECT_THROW(stream.read_line(std::nullopt), Interrupted);
  later.join();
  EXPECT_THROW(stream.read_line(std::nullopt), Interrupted);  // the event stays set
}

TEST(Stream, ALineWithoutEndIsNotTheProtocol) {
  ScriptedServer server;
  Stream stream = server.stream();
  server.answer(std::string(5000, 'x'));
  EXPECT_EQ(
      failure_of([&] { stream.read_line(); }),
      "the server does not speak the beanstalk protocol: it sent 5000 bytes without a line end");
}

// A TCP port of 127.0.0.1 on which nobody listens. It is bound, so that no other process can take
// it.
class UnusedPort {
 public:
  UnusedPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("no port");
    }
    number_ = ntohs(address.sin_port);
  }
  std::uint16_t number() const { return number_; }

 private:
  base::FileDescriptor fd_;
  std::uint16_t number_ = 0;
};

TEST(Stream, NobodyListening) {
  const UnusedPort port;
  const std::string name = "127.0.0.1:" + std::to_string(port.number());
  EXPECT_EQ(failure_of([&] { Stream::connect(server::parse_address(name)); }),
            "cannot connect to " + name +
                ": connection refused; start one with: carillon serve --listen " + name);
}

TEST(Stream, NoSuchSocketFile) {
  EXPECT_EQ(failure_of([] { Stream::connect(server::parse_address("unix:/nowhere/c.sock")); }),
            "cannot connect to unix:/nowhere/c.sock: no such file or directory; start one with: "
            "carillon serve --listen unix:/nowhere/c.sock");
}

TEST(Stream, NoSuchHost) {
  // RFC 6761 reserves .invalid: no host has such a name. The end of the text depends on whether
  // there is a name server.
  const std::string text =
      failure_of([] { Stream::connect(server::parse_address("host.invalid:11300")); });
  EXPECT_EQ(text.substr(0, 42), "cannot connect to host.invalid:11300: name") << text;
}

}  // namespace
}  // namespace carillon::cli
