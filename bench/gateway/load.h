// The load: connections to a gateway that send packets, some of which fall silent; and the
// judgement of what became of them.
//
// The connections send in turn, so each has a packet every (connections / rate) seconds. A share of
// them sends a last one at a random moment, then nothing, and must be closed by the gateway. For
// each close that is seen the time since that connection's last packet says:
//   less than the time-out: dropped though it was alive (`wrong`)
//   more than time-out + tick, and what scheduling two processes may add (`slack`): kept too long (`overdue`)
// So are those silent ones that were never closed. If this process itself was held up, so that two
// packets of a connection were a time-out apart, its close is right, and counted apart (`starved`).
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
  double rate = 100;  // packets per second of all together
  double messages =
      0.5;  // share of the packets that are messages to another connection; the others keep alive
  double silent = 0.01;   // share of the connections that fall silent
  double duration = 60;   // seconds of traffic once all are connected
  double slack = 0.25;    // seconds
  double patience = 120;  // seconds for all to connect and log in, and for the go
  unsigned sources =
      8;  // addresses from 127.0.0.2 up that the connections come from: each has its own ephemeral ports
  std::uint64_t first_user = 1;
  std::uint64_t seed = 1;    // of the silence and of the messages
  bool wait_for_go = false;  // the duration begins when something comes on standard input
};

struct LoadReport {
  std::string failure;  // why it could not be run to its end; else empty
  std::size_t connected = 0;
  double connect_seconds = 0;
  Clock::duration timeout{0}, tick{0};  // as the gateway says
  std::uint64_t packets = 0;            // while all were connected, in …
  double traffic_seconds = 0;
  std::uint64_t sent = 0, delivered = 0, absent = 0;  // messages
  std::size_t silent = 0;
  std::size_t wrong = 0, overdue = 0, starved = 0;
  std::vector<double> kept;   // seconds from the last packet of a silent one to its close, in order
  Clock::duration latest{0};  // this process's own turns in that time came late by this at the most

  std::uint64_t lost() const { return sent - std::min(sent, delivered + absent); }
  bool good() const {
    return failure.empty() && wrong == 0 && overdue == 0 && (lost() == 0 || starved > 0);
  }
};

// Thread safety: none; everything happens in the one thread that runs `io`, which it stops at its
// end.
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
  std::vector<Client*> talking_;  // those who send, in turn
  std::size_t next_ = 0;          // whose turn it is
  std::vector<Client*> falling_;  // those who will fall silent, the first one last
  std::size_t begun_ = 0;         // connections that were asked for
  std::size_t connecting_ = 0;
  double owed_ = 0;  // packets
  std::uint64_t all_packets_ = 0;
  std::uint64_t packets_at_go_ = 0;
  Clock::time_point began_, last_turn_, due_, went_, ends_;
  bool going_ = false;
  bool ended_ = false;
  LoadReport report_;
};

}  // namespace gateway
