// The gateway of the load program: passes messages between the users that are logged in, and drops
// connections that send nothing for a time-out. (The one-page example is examples/gateway.cpp.)
//
// carillon::IdleTracker is its list of connections. A packet is a complete frame, and costs one
// touch. One Asio timer waits for next_wakeup(), however many connections there are. A connection
// that advance() hands over is closed.
//
// Never early: a packet is stamped with the end of the tick in which it was read. And before the
// gateway drops a connection it reads the socket once more: a packet that it finds there, not read
// yet because this process did not run in time, counts.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "carillon/idle/idle_tracker.h"
#include "channel.h"
#include "process.h"

namespace gateway {

class Session;

struct GatewayOptions {
  std::uint16_t port = 0;  // on 127.0.0.1; 0: the system chooses one
  std::chrono::milliseconds timeout{30'000};
  std::chrono::milliseconds tick{100};
};

struct GatewayStats {
  std::uint64_t accepted = 0;
  std::uint64_t dropped = 0;    // connections closed because they were idle
  std::uint64_t ended = 0;      // connections closed by the client, or for a wrong frame
  std::uint64_t packets = 0;    // frames read
  std::uint64_t forwarded = 0;  // messages passed on
  std::uint64_t reprieved = 0;  // connections found idle, but kept: a packet was not read yet
  std::uint64_t wakeups = 0;    // of the tracker's timer
  std::size_t peak = 0;         // most connections at the same time
  Clock::duration latest{0};    // the latest that a wake-up of the tracker's timer came
};

// Thread safety: none; everything happens in the one thread that runs `io`.
class Gateway {
 public:
  // Listens at once. Throws boost::system::system_error if the port is taken.
  Gateway(boost::asio::io_context& io, const GatewayOptions& options);
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  const GatewayStats& stats() const { return stats_; }
  std::size_t connections() const { return tracker_.size(); }
  std::size_t tracker_bytes() const { return tracker_.allocated_bytes(); }

 private:
  friend class Session;
  using Acceptor = boost::asio::basic_socket_acceptor<Tcp, boost::asio::io_context::executor_type>;
  using Timer = boost::asio::basic_waitable_timer<Clock, boost::asio::wait_traits<Clock>,
                                                  boost::asio::io_context::executor_type>;

  void accept();
  void add(Socket socket);
  void handle(Session& session, const Frame& frame);
  void log_in(Session& session, const Frame& frame);
  void forward(Session& session, const Frame& frame);
  void forget(Session& session);

  carillon::Tick current_tick() const {
    return static_cast<carillon::Tick>((Clock::now() - start_) / options_.tick);
  }
  void find_idle();
  void on_idle(const std::shared_ptr<Session>& session);
  void arm();

  const GatewayOptions options_;
  const Clock::time_point start_ = Clock::now();
  const carillon::Ticks timeout_;
  Acceptor acceptor_;
  Timer pause_;   // before accepting again, if no descriptor was free
  Timer wakeup_;  // of the tracker
  std::optional<carillon::Tick> armed_for_;
  carillon::IdleTracker<std::shared_ptr<Session>> tracker_;
  std::unordered_map<std::uint64_t, Session*> users_;
  GatewayStats stats_;
};

}  // namespace gateway
