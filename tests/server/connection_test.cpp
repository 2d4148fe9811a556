// One connection on a socket pair. The test takes the place of the event loop: it decides when the
// connection is served, reads on, and sends its replies.

#include "server/net/connection.h"

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/session.h"
#include "test_server.h"

namespace carillon::server {
namespace {

// Counts what the connection has asked for.
struct CountingOwner final : Connection::Owner {
  virtual ~CountingOwner() = default;
  queue::Sequence durable() const override { return durable_until; }
  void has_replies(Connection&) override {}
  void wants_turn(Connection&) override { ++turns; }
  void wants_room(Connection&) override { ++waits_for_room; }
  void read_after_flush(Connection&) override { ++rests_asked; }
  void watch_hang_up(Connection&, int) override { ++watches; }
  void active(Connection&) override {}
  void shakes_hands(Connection&) override {}
  void turned_away(Connection&, RejectReason) override {}
  void closed(Connection&) override {}

  queue::Sequence durable_until = UINT64_MAX;
  int turns = 0;
  int rests_asked = 0;
  int watches = 0;
  int waits_for_room = 0;
};

// The client's end of a socket pair, and the server's connection.
class Pair {
 public:
  Pair(boost::asio::io_context& io, Service& service, Connection::Owner& owner)
      : Pair(io, service, owner, std::make_unique<beanstalk::Session>(service)) {}
  Pair(boost::asio::io_context& io, Service& service, Connection::Owner& owner,
       std::unique_ptr<Protocol> session) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    client_ = ends[0];
    server_ = ends[1];
    connection = std::make_shared<Connection>(
        Connection::Socket(io, boost::asio::generic::stream_protocol(AF_UNIX, 0), server_), service,
        owner, std::move(session));
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  ~Pair() {
    connection->abort();
    ::close(client_);
  }

  void send(std::string_view bytes) const {
    EXPECT_EQ(::send(client_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  // Sets an option of both sockets.
  void set(int option, int value) const {
    for (const int end : {client_, server_})
      EXPECT_EQ(::setsockopt(end, SOL_SOCKET, option, &value, sizeof value), 0);
  }

  // Bytes that the client has sent and the server has not read.
  int unread() const {
    int bytes = 0;
    EXPECT_EQ(::ioctl(server_, FIONREAD, &bytes), 0);
    return bytes;
  }

  std::shared_ptr<Connection> connection;

 private:
  int client_ = -1;
  int server_ = -1;
};

class ConnectionTest : public ::testing::Test {
 protected:
  // Runs the handlers that can run by now, and those that they start.
  void poll() {
    io.restart();
    io.poll();
  }
  void serve(const Pair& pair) { pair.connection->process(UINT64_MAX); }

  beanstalk::TestServer server{{.memory = 400'000}};
  boost::asio::io_context io;
  CountingOwner owner;
};

TEST_F(ConnectionTest, WhileItLingersItReadsOnceATurn) {
  Pair pair(io, server.service, owner);
  pair.connection->read_on();
  pair.send("quit\r\n" + std::string(100'000, 'x'));
  poll();
  serve(pair);
  const int before = pair.unread();
  for (int turn = 1; turn <= 3; ++turn) {
    poll();
    EXPECT_EQ(owner.rests_asked, turn);
    pair.connection->read_on();
    EXPECT_EQ(pair.unread(), before - turn * 8'192);
  }
}

// While it rests, other connections take memory, until it has too many unsent replies to read on.
TEST_F(ConnectionTest, WhenItsRepliesHaveLeftItGoesOn) {
  Pair pair(io, server.service, owner);
  pair.connection->read_on();
  std::string commands;
  for (int i = 0; i < 10; ++i) commands += "stats\r\n";
  pair.send(commands);
  poll();
  serve(pair);
  ASSERT_EQ(owner.turns, 1);
  ASSERT_EQ(owner.rests_asked, 1);
  MemoryPool::Share others(server.service.memory());
  others.set(server.service.memory().free());
  pair.connection->read_on();
  pair.connection->flush();
  EXPECT_EQ(owner.turns, 2);
}

TEST_F(ConnectionTest, ItSendsNoMoreAtOnceThanOthersCanWaitFor) {
  Pair pair(io, server.service, owner);
  constexpr int kLarge = 1 << 20;
  for (const int option : {SO_SNDBUF, SO_RCVBUF}) pair.set(option, kLarge);
  ReplyQueue& replies = pair.connection->session().replies();
  replies.add(0, std::string_view(std::string(100'000, 'x')));
  EXPECT_TRUE(pair.connection->flush());
  EXPECT_EQ(replies.bytes(), 100'000 - Connection::kMostAtOnce);
  EXPECT_FALSE(pair.connection->flush());
  EXPECT_TRUE(replies.empty());
}

// Its buffer does not grow, because others have taken most of the memory. A read of no bytes would
// end at once, again and again, and never show that the client is gone.
TEST_F(ConnectionTest, WithAFullBufferAReserveThatWaitsReadsNothingAndIsWatched) {
  Pair pair(io, server.service, owner);
  MemoryPool::Share others(server.service.memory());
  others.set(server.service.memory().free());
  pair.connection->read_on();
  pair.send("reserve\r\n" + std::string(6'400, 'x'));
  for (int turn = 1; turn <= 2; ++turn) {  // the second one fills the buffer
    poll();
    EXPECT_EQ(owner.turns, turn);
    serve(pair);
  }
  EXPECT_EQ(pair.unread(), 6'409 - 4'096 - 9);
  EXPECT_EQ(owner.watches, 1);
  poll();
  EXPECT_EQ(owner.turns, 2);
}

// Memory is short here, too, but nothing of a request can be used before its whole header is there.
TEST_F(ConnectionTest, AHeaderThatFillsTheBufferIsReadToItsEnd) {
  const std::vector<std::string> names;
  Pair pair(io, server.service, owner, std::make_unique<http::Session>(server.service, names));
  MemoryPool::Share others(server.service.memory());
  others.set(server.service.memory().free());
  pair.connection->read_on();
  pair.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(10'000, 'x') +
            "\r\n\r\n");
  for (int turn = 0; turn < 5; ++turn) {
    poll();
    serve(pair);
  }
  EXPECT_TRUE(pair.connection->session().replies().sendable(0).starts_with("HTTP/1.1 200 OK"));
}

// A connection that is closed is owned by nobody, and in line it would be found after its end.
TEST_F(ConnectionTest, WhenTheStoreHasRoomAPutGoesOnUnlessItsClientIsGone) {
  Pair pair(io, server.service, owner);
  pair.connection->read_on();
  server.store.is_full = true;
  pair.send("put 0 0 60 1\r\nx\r\n");
  poll();
  serve(pair);
  ASSERT_EQ(owner.turns, 1);
  ASSERT_EQ(owner.waits_for_room, 1);
  server.store.is_full = false;
  pair.connection->store_has_room();
  EXPECT_EQ(owner.turns, 2);
  pair.connection->abort();
  pair.connection->store_has_room();
  EXPECT_EQ(owner.turns, 2);
}

}  // namespace
}  // namespace carillon::server
