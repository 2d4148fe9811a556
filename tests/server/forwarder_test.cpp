// A node that follows passes its clients on to the node that serves.
#include "server/net/forwarder.h"

#include <gtest/gtest.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <string>
#include <string_view>
#include <thread>

namespace carillon::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// A server that is driven by the test.
class Serving {
 public:
  explicit Serving(asio::io_context& io)
      : acceptor_(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {}

  Address address() const { return {"127.0.0.1", acceptor_.local_endpoint().port(), {}}; }
  tcp::socket accept() { return acceptor_.accept(); }

 private:
  tcp::acceptor acceptor_;
};

class ForwarderTest : public testing::Test {
 protected:
  ForwarderTest() : sockets_(listen_on({"127.0.0.1", 0, {}})) { forwarder_.start(sockets_); }

  tcp::socket client() {
    tcp::socket socket(io_);
    socket.connect({asio::ip::address_v4::loopback(), sockets_[0].bound().port});
    return socket;
  }
  static void send(tcp::socket& to, std::string_view text) { asio::write(to, asio::buffer(text)); }
  static std::string receive(tcp::socket& from, std::size_t size) {
    std::string text(size, '\0');
    boost::system::error_code error;
    text.resize(asio::read(from, asio::buffer(text), error));
    return text;
  }

  asio::io_context io_;
  Serving one_{io_};
  Serving other_{io_};
  std::vector<ListeningSocket> sockets_;
  Forwarder forwarder_{2};
};

TEST_F(ForwarderTest, PassesBytesBothWaysUntilOneEnds) {
  forwarder_.lead_to(Forwarder::Destination{one_.address(), {}});
  tcp::socket client = this->client();
  tcp::socket server = one_.accept();
  send(client, "put");
  EXPECT_EQ(receive(server, 3), "put");
  const std::string large(1'000'000, 'x');
  std::thread writes([&] { send(server, large); });
  EXPECT_EQ(receive(client, large.size()), large);
  writes.join();
  client.shutdown(tcp::socket::shutdown_send);
  EXPECT_EQ(receive(server, 1), "") << "the end of the client has arrived";
  send(server, "bye");
  server.close();
  EXPECT_EQ(receive(client, 4), "bye");
}

TEST_F(ForwarderTest, AClientWaitsUntilSomebodyServes) {
  tcp::socket client = this->client();
  send(client, "put");
  forwarder_.lead_to(Forwarder::Destination{one_.address(), {}});
  tcp::socket server = one_.accept();
  EXPECT_EQ(receive(server, 3), "put");
}

TEST_F(ForwarderTest, WhenAnotherNodeServesAllConnectionsAreClosed) {
  forwarder_.lead_to(Forwarder::Destination{one_.address(), {}});
  tcp::socket client = this->client();
  tcp::socket server = one_.accept();
  send(client, "put");
  EXPECT_EQ(receive(server, 3), "put");
  forwarder_.lead_to(Forwarder::Destination{other_.address(), {}});
  EXPECT_EQ(receive(client, 1), "");
  EXPECT_EQ(receive(server, 1), "");
  tcp::socket next = this->client();
  send(next, "put");
  tcp::socket there = other_.accept();
  EXPECT_EQ(receive(there, 3), "put");
}

TEST_F(ForwarderTest, MoreClientsThanAllowedAreClosed) {
  forwarder_.lead_to(Forwarder::Destination{one_.address(), {}});
  tcp::socket a = client();
  tcp::socket b = client();
  tcp::socket at_a = one_.accept();
  tcp::socket at_b = one_.accept();
  tcp::socket c = client();
  EXPECT_EQ(receive(c, 1), "");
  a.close();
  EXPECT_EQ(receive(at_a, 1), "");
}

TEST_F(ForwarderTest, TheSocketsAreLeftAsTheyWere) {
  forwarder_.lead_to(Forwarder::Destination{one_.address(), {}});
  tcp::socket before = client();
  tcp::socket server = one_.accept();
  forwarder_.stop();
  EXPECT_EQ(receive(before, 1), "");
  tcp::socket later = client();  // it is in the queue of the socket
  forwarder_.start(sockets_);
  forwarder_.lead_to(Forwarder::Destination{one_.address(), {}});
  tcp::socket next = one_.accept();
  send(later, "put");
  EXPECT_EQ(receive(next, 3), "put");
}

}  // namespace
}  // namespace carillon::server
