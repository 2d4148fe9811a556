// Which connections to endpoints are kept, taken and closed, with a server of this process.

#include "server/push/kept_connections.h"

#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <string>

namespace carillon::server::push {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::milliseconds;

// Answers 204 to each request, and may send more then that nobody has asked for.
class Peer {
 public:
  explicit Peer(asio::io_context& io) : acceptor_(io, {asio::ip::make_address("127.0.0.1"), 0}) {
    accept();
  }

  TargetUrl url(const std::string& path) const {
    return parse_target("http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()) +
                        path);
  }

  // What comes behind each answer from now on, as a second write. "" turns it off.
  void send_more(const std::string& text) { more_ = text; }

 private:
  struct Client {
    explicit Client(tcp::socket accepted) : socket(std::move(accepted)) {}
    tcp::socket socket;
    asio::streambuf input;
  };

  void accept() {
    acceptor_.async_accept([this](boost::system::error_code error, tcp::socket socket) {
      if (error) return;
      serve(std::make_shared<Client>(std::move(socket)));
      accept();
    });
  }
  void serve(const std::shared_ptr<Client>& client) {
    asio::async_read_until(client->socket, client->input, "\r\n\r\n",
                           [this, client](boost::system::error_code error, std::size_t bytes) {
                             if (error) return;
                             client->input.consume(bytes);
                             static const std::string kAnswer = "HTTP/1.1 204 No Content\r\n\r\n";
                             asio::async_write(
                                 client->socket, asio::buffer(kAnswer),
                                 [this, client](boost::system::error_code failed, std::size_t) {
                                   if (!failed) serve(client);
                                   if (!more_.empty()) client->socket.send(asio::buffer(more_));
                                 });
                           });
  }

  tcp::acceptor acceptor_;
  std::string more_;
};

class KeptConnectionsTest : public testing::Test {
 protected:
  // Returns a connection over which a request has been answered.
  std::shared_ptr<PostConnection> opened(const std::string& path) {
    auto connection = std::make_shared<PostConnection>(io, guard, tls, peer.url(path));
    post(*connection);
    return connection;
  }
  void post(PostConnection& connection) {
    unsigned status = 0;
    connection.post({}, std::chrono::seconds(60), [&](const PostResult& result) {
      status = result.status;
      EXPECT_EQ(result.error, "");
    });
    while (status == 0 && io.run_one() > 0) continue;
    EXPECT_EQ(status, 204u);
  }

  asio::io_context io;
  Peer peer{io};
  const AddressGuard guard{{parse_network("127.0.0.1")}};
  asio::ssl::context tls{asio::ssl::context::tls_client};
  MemoryPool pool{1 << 20};
};

TEST_F(KeptConnectionsTest, TheOneThatWasUsedLastIsTakenAgain) {
  KeptConnections kept(io, pool, 8);
  EXPECT_EQ(kept.take(peer.url("/a")), nullptr);
  const auto first = opened("/a");
  const auto second = opened("/a");
  kept.keep(first);
  kept.keep(second);
  EXPECT_EQ(pool.used(), 2 * KeptConnections::kBytesOfOne);
  EXPECT_EQ(kept.take(peer.url("/b")), nullptr);
  EXPECT_EQ(kept.take(peer.url("/a")), second);
  post(*second);
  EXPECT_EQ(kept.take(peer.url("/a")), first);
  EXPECT_EQ(kept.take(peer.url("/a")), nullptr);
  EXPECT_EQ(pool.used(), 0u);
}

TEST_F(KeptConnectionsTest, TheOldestIsClosedForOneTooMany) {
  KeptConnections kept(io, pool, 2);
  const auto first = opened("/a");
  const auto second = opened("/b");
  const auto third = opened("/c");
  kept.keep(first);
  kept.keep(second);
  kept.keep(third);
  EXPECT_EQ(kept.size(), 2u);
  EXPECT_FALSE(first->is_open());
  EXPECT_TRUE(second->is_open());
  kept.close(peer.url("/b"));
  EXPECT_FALSE(second->is_open());
  EXPECT_EQ(kept.size(), 1u);
  kept.close_all();
  EXPECT_FALSE(third->is_open());
}

TEST_F(KeptConnectionsTest, WithoutRoomOrMemoryNoneIsKept) {
  KeptConnections none(io, pool, 0);
  const auto first = opened("/a");
  none.keep(first);
  EXPECT_FALSE(first->is_open());
  MemoryPool small(KeptConnections::kBytesOfOne);
  KeptConnections kept(io, small, 8);
  const auto second = opened("/a");
  const auto third = opened("/a");
  kept.keep(second);
  kept.keep(third);
  EXPECT_TRUE(second->is_open());
  EXPECT_FALSE(third->is_open());
}

TEST_F(KeptConnectionsTest, EachIsClosedAfterItsTime) {
  KeptConnections kept(io, pool, 8, milliseconds(30));
  const auto first = opened("/a");
  kept.keep(first);
  const auto second = opened("/b");
  kept.keep(second);
  while (kept.size() > 0 && io.run_one() > 0) continue;
  EXPECT_FALSE(first->is_open());
  EXPECT_FALSE(second->is_open());
  EXPECT_EQ(pool.used(), 0u);
  kept.keep(opened("/a"));  // and again
  while (kept.size() > 0 && io.run_one() > 0) continue;
  EXPECT_EQ(pool.used(), 0u);
}

TEST_F(KeptConnectionsTest, OneThatHasClosedIsNotKept) {
  KeptConnections kept(io, pool, 8);
  const auto connection = opened("/a");
  connection->abort();
  kept.keep(connection);
  EXPECT_EQ(kept.size(), 0u);
}

TEST_F(KeptConnectionsTest, OneOnWhichTheServerHasSpokenUnaskedIsNotTaken) {
  KeptConnections kept(io, pool, 8);
  kept.keep(opened("/a"));
  const auto other = opened("/a");
  peer.send_more("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
  post(*other);
  while (other->is_open() && other->is_quiet()) io.run_one_for(milliseconds(1));
  if (other->is_open()) kept.keep(other);
  ASSERT_NE(kept.take(peer.url("/a")), nullptr);
  EXPECT_EQ(kept.take(peer.url("/a")), nullptr);
  EXPECT_FALSE(other->is_open());
}

TEST_F(KeptConnectionsTest, AnAttemptMayBeAbortedBeforeAnyOfItsSteps) {
  bool has_ended = false;
  for (int steps = 0; !has_ended; ++steps) {
    const auto connection = std::make_shared<PostConnection>(io, guard, tls, peer.url("/a"));
    connection->post({}, std::chrono::seconds(60), [&](const PostResult&) { has_ended = true; });
    for (int step = 0; step < steps && !has_ended; ++step) io.run_one();
    connection->abort();
    io.poll();
  }
}

}  // namespace
}  // namespace carillon::server::push
