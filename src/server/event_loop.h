// The thread that does everything: sockets, the engine, and the replies that wait for their sync.
//
// It goes in turns. Each reads what some sockets have and carries out the commands, lets the engine
// do what is due, asks for a sync of all that was appended, and sends the replies that may leave:
// so there is one sync for many commands, and one write for many replies. A connection that was
// read to its end rests until then; when all of them rest, the turn looks for nothing more before
// the sync.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "carillon/queue/engine.h"
#include "carillon/queue/group_commit.h"
#include "carillon/queue/store.h"
#include "server/acceptor.h"
#include "server/alarm.h"
#include "server/beanstalk/service.h"
#include "server/connection.h"
#include "server/connection_list.h"
#include "server/hang_up_watch.h"
#include "server/log_throttle.h"
#include "server/server.h"
#include "server/slow_syncs.h"
#include "server/stall_watch.h"

namespace carillon::server {

class EventLoop final : private Connection::Owner {
 public:
  // Takes up what the store holds, and has the addresses of `sockets` served by run(). Throws
  // queue::StoreError.
  EventLoop(queue::Store& store, std::vector<ListeningSocket> sockets,
            const ServerOptions& options);
  virtual ~EventLoop() = default;

  const queue::Engine& engine() const { return engine_; }

  // Serves until a signal or a failed sync. Returns the exit code of the process.
  int run();

 private:
  // Connection::Owner
  queue::Sequence durable() const override { return commit_.acknowledgeable(); }
  void has_replies(Connection& connection) override { replying_.add(connection); }
  void wants_turn(Connection& connection) override { turns_.add(connection); }
  void rests(Connection& connection) override { resting_.add(connection); }
  void watch_hang_up(Connection& connection, int fd) override;
  void active(Connection& connection) override;
  void closed(Connection& connection) override;

  void turn();
  void run_engine();
  void on_clock_set();
  void tell_of_clock();
  void close_stalled();
  void deliver();
  void commit();
  void flush();
  std::optional<std::uint64_t> next_wakeup() const;

  void on_report(const queue::CommitReport& report);
  void on_socket(Acceptor::Socket socket);
  void on_hang_up(queue::ClientId client);
  void on_stalled(Connection& connection, Awaits what);
  void await_signal();
  void on_signal(int signal);

  void close_engine();
  void refuse_what_is_not_durable();
  void hang_up(std::chrono::milliseconds patience);
  std::vector<std::shared_ptr<Connection>> open_connections() const;

  boost::asio::io_context io_;
  queue::Engine engine_;
  beanstalk::Service service_;
  boost::asio::signal_set signals_;
  Alarm alarm_;
  WallClockWatch wall_clock_;
  HangUpWatch hang_ups_;
  StallWatch::Timeouts timeouts_;
  StallWatch stalls_;
  std::size_t max_connections_;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  std::unordered_map<queue::ClientId, std::shared_ptr<Connection>> connections_;
  ConnectionList turns_{
      &Connection::has_turn_queued};  // have more to carry out than fitted into one turn
  ConnectionList replying_{&Connection::has_replies_queued};  // have replies that were not sent yet
  ConnectionList resting_{&Connection::is_resting};  // do not read before the end of the turn
  std::chrono::milliseconds told_ahead_{0};          // of the wall clock, by the engine's
  bool stopping_ = false;
  bool failed_ = false;
  LogThrottle refusals_;
  LogThrottle engine_failures_;
  LogThrottle stalled_;
  LogThrottle idle_;
  SlowSyncs slow_syncs_;
  queue::Sequence requested_ = 0;  // up to here a sync was asked for
  queue::GroupCommit commit_;      // the last member: until it is gone its thread calls back
};

}  // namespace carillon::server
