// The load: opens connections to a gateway, sends packets on them, lets some of them fall silent,
// and judges whether the gateway dropped the right ones in time.
//
// The connections send in turn, so each sends a packet every (connections / rate) seconds. Some of
// them send a last packet at a random moment, then nothing, and the gateway must close them. When
// the load sees a connection closed, the time since that connection's last packet decides:
//   - less than the time-out: it was dropped although it was alive (`wrong`);
//   - more than time-out + tick + slack: it was kept too long (`overdue`). The slack is for the
//     time that scheduling two processes may add.
// A silent connection that is never closed counts as `overdue` too. If this process was held up, so
// that two packets of a connection were a time-out apart, closing the connection was right. Such
// connections are counted separately (`starved`).
#pragma once

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "channel.h"
#include "process.h"

namespace gateway {

class Client;

struct LoadOptions {
  std::uint16_t port = 0;
  std::size_t connections = 1000;
  double rate = 100;      // packets per second, of all connections together
  double messages = 0.5;  // share of packets that are messages; the others are keepalives
  double silent = 0.01;   // share of the connections that fall silent
  double duration = 60;   // seconds of traffic once all are connected
  double slack = 0.25;    // seconds
  double patience = 120;  // seconds for all to connect and log in, and for the go
  // Connections come from this many addresses, 127.0.0.2 and up, each with its own ephemeral ports.
  unsigned sources = 8;
  std::uint64_t first_user = 1;
  std::uint64_t seed = 1;    // for the silences and the messages
  bool wait_for_go = false;  // the duration begins when a byte comes on standard input
};

struct LoadReport {
  std::string failure;  // why the load could not run to its end; empty if it could
  std::size_t connected = 0;
  double connect_seconds = 0;
  Clock::duration timeout{0}, tick{0};  // from the gateway's welcome
  double traffic_seconds = 0;           // from the go, when all were connected, to the end
  std::uint64_t packets = 0;            // in traffic_seconds
  std::uint64_t sent = 0, delivered = 0, absent = 0;  // messages
  std::size_t silent = 0;                             // connections that fell silent
  std::size_t wrong = 0, overdue = 0, starved = 0;    // connections
  // For each silent connection, the seconds from its last packet to its close; sorted.
  std::vector<double> kept;
  Clock::duration latest{0};  // the latest that a turn of this process came in traffic_seconds

  std::uint64_t lost() const { return sent - std::min(sent, delivered + absent); }
  bool good() const {
    return failure.empty() && wrong == 0 && overdue == 0 && (lost() == 0 || starved > 0);
  }
};

// Thread safety: none; everything happens in the one thread that runs `io`. The load stops `io` at
// its end.
class Load {
 public:
  Load(boost::asio::io_context& io, const LoadOptions& options);
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  ~Load();

  void start();

  std::size_t connected() const { return report_.connected; }
  bool is_up() const { return report_.connected == options_.connections; }
  std::size_t closed() const { return report_.kept.size(); }
  std::uint64_t packets() const { return all_packets_; }
  const LoadReport& report() const { return report_; }

 private:
  friend class Client;
  using Timer = boost::asio::basic_waitable_timer<Clock, boost::asio::wait_traits<Clock>,
                                                  boost::asio::io_context::executor_type>;

  void connect_more();
  void on_connected(std::size_t index, Socket socket);
  void on_frame(Client& client, const Frame& frame);
  void on_welcome(Client& client, const Frame& frame);
  void on_end(Client& client);
  void await_go();
  void go();
  void turn();
  void send_packets();
  void send_packet(Client& client);
  void finish();
  void fail(const std::string& why);

  boost::asio::io_context& io_;
  const LoadOptions options_;
  std::mt19937_64 random_;
  Timer timer_;
  boost::asio::posix::stream_descriptor input_;
  std::vector<std::shared_ptr<Client>> clients_;
  std::vector<Client*> talking_;  // the clients that send, in turn
  std::size_t next_ = 0;          // index in talking_ of the client whose turn it is
  // The clients that will fall silent, the first of them at the back.
  std::vector<Client*> falling_;
  std::size_t begun_ = 0;  // connections that were begun
  std::size_t connecting_ = 0;
  double owed_ = 0;  // packets that are due by now, but not sent
  std::uint64_t all_packets_ = 0;
  std::uint64_t packets_at_go_ = 0;
  Clock::time_point began_, last_turn_, due_, went_, ends_;
  bool going_ = false;
  bool ended_ = false;
  LoadReport report_;
};

}  // namespace gateway
