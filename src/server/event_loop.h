// The event loop: the one thread that owns the sockets, the engine, and the replies that wait for
// their sync. run_server() makes one and runs it.
//
// It works in turns. A turn reads from the sockets that have input, carries out the commands of the
// connections in line, lets the engine do what is due, requests a sync of all that was appended,
// and sends the replies that may leave. So one sync serves many commands, and one write carries
// many replies. A connection whose input is all used rests until the end of the turn
// (connection.h). When all of them rest or stand in line, the turn goes on without polling for more
// input.
//
// Time. Each part of a turn whose work grows with the number of clients or jobs has a budget: a
// time (at the top of event_loop.cpp) or a number (stall_watch.h). It leaves the rest to the next
// turn. Nothing in a turn visits all connections. So a new command is carried out after some
// milliseconds, whatever the others ask for, and no part starves another. The FairQueue decides
// which client is served first, and for how long (fair_queue.h).
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/log_throttle.h"
#include "carillon/queue/disk_store.h"
#include "carillon/queue/engine.h"
#include "carillon/queue/group_commit.h"
#include "carillon/queue/store.h"
#include "carillon/require.h"
#include "server/alarm.h"
#include "server/loop_warnings.h"
#include "server/net/acceptor.h"
#include "server/net/body_thread.h"
#include "server/net/connection.h"
#include "server/net/fair_queue.h"
#include "server/net/hang_up_watch.h"
#include "server/net/stall_watch.h"
#include "server/net/tls_context.h"
#include "server/push/pusher.h"
#include "server/server.h"
#include "server/service.h"

namespace carillon::server {

// The connections that want the same thing of the event loop in its turn (to be flushed, or read),
// each once, in the order in which they asked.
class ConnectionList {
 public:
  // `listed` is the member of Connection that is true while the connection is in this list.
  explicit ConnectionList(bool Connection::*listed) : listed_(listed) {}

  bool empty() const { return connections_.empty(); }
  std::size_t size() const { return connections_.size(); }

  // Does nothing if the connection is in the list already. O(1).
  void add(Connection& connection) {
    if (std::exchange(connection.*listed_, true)) return;
    connections_.push_back(connection.shared_from_this());
  }

  // Takes the first connection out. REQUIRES: there is one.
  std::shared_ptr<Connection> take_first() {
    CARILLON_REQUIRE(!connections_.empty());
    std::shared_ptr<Connection> first = std::move(connections_.front());
    connections_.pop_front();
    (*first).*listed_ = false;
    return first;
  }

 private:
  bool Connection::*const listed_;
  std::deque<std::shared_ptr<Connection>> connections_;
};

class EventLoop final : private Connection::Owner {
 public:
  // Loads what the store holds. run() will serve `sockets`. Checkpoints are made of `on_disk`,
  // which is the store itself, or null if the store is in memory. TCP ports speak TLS if `tls` is
  // not null. `tokens` and `tls` are reloaded at SIGHUP; if both are null, SIGHUP ends the loop.
  // Throws queue::StoreError.
  EventLoop(queue::Store& store, std::vector<ListeningSocket> sockets, const ServerOptions& options,
            queue::DiskStore* on_disk = nullptr, Tokens* tokens = nullptr,
            TlsContext* tls = nullptr);
  virtual ~EventLoop();

  const queue::Engine& engine() const { return engine_; }

  // Why it has ended.
  enum class End {
    kSignal,       // every reply has left, as far as clients read and the log was available
    kStoreFailed,  // the store has failed: what the disk holds is unknown
    kDeposed,      // another server owns the shared log: the store must be opened anew
  };
  // Serves until then.
  End run();
  // Returns true if a signal has told it to end.
  bool stopping() const { return stopping_; }

 private:
  // From Connection::Owner:
  queue::Sequence durable() const override { return commit_.acknowledgeable(); }
  void has_replies(Connection& connection) override;
  void wants_turn(Connection& connection) override { line_.join(connection); }
  void wants_room(Connection& connection) override { waiting_for_store_.add(connection); }
  void read_after_flush(Connection& connection) override { resting_.add(connection); }
  void watch_hang_up(Connection& connection, int fd) override;
  void active(Connection& connection) override;
  void shakes_hands(Connection& connection) override { shaking_.add(connection); }
  void turned_away(Connection& connection, RejectReason reason) override;
  void closed(Connection& connection) override;

  queue::EngineOptions engine_options(const ServerOptions& options);
  void turn();
  void take_input();
  bool take_more_input(std::uint64_t until_ns);
  void look_for_room();
  void serve_line(std::uint64_t until_ns);
  bool engine_has_work() const;
  bool operations_have_work();
  void operate(std::uint64_t until_ns);
  void run_engine(std::uint64_t until_ns);
  void shake_hands(std::uint64_t until_ns);
  void close_stalled();
  void deliver(std::uint64_t until_ns);
  void poll_checkpoint();
  void tell_listeners();
  void commit();
  void look_for_durable();
  void flush(std::uint64_t until_ns);
  void flush(const std::shared_ptr<Connection>& connection);
  void read_on(std::uint64_t until_ns);
  std::optional<std::uint64_t> next_wakeup() const;

  void append_barrier();
  void look_at_store();
  void fail(const std::string& why);
  void depose(const std::string& why);
  void on_unavailable(const std::string& why);
  void on_available();
  void on_report(const queue::CommitReport& report);
  void on_bodies();
  void on_socket(Acceptor::Socket socket, Speaks protocol, bool has_tls);
  std::unique_ptr<Protocol> session_of(Speaks protocol);
  void on_hang_up(queue::ClientId client);
  void on_stalled(Connection& connection, Awaits what);
  void await_signal();
  void on_signal(int signal);
  void reload();
  void reload_tokens();

  void end();
  void close_engine();
  void refuse_what_is_not_durable();
  void hang_up(std::chrono::milliseconds patience);
  std::vector<std::shared_ptr<Connection>> open_connections() const;
  std::shared_ptr<Connection> connection_of(queue::ClientId client) const;

  boost::asio::io_context io_;
  queue::Store& store_;
  queue::Engine engine_;
  BodyThread bodies_;
  Service service_;
  Tokens* tokens_;
  TlsContext* tls_;
  boost::asio::signal_set signals_;
  Alarm alarm_;
  WallClockWatch wall_clock_;
  HangUpWatch hang_ups_;
  StallWatch::Timeouts timeouts_;
  StallWatch stalls_;
  std::size_t max_connections_;
  std::vector<std::string> http_names_;
  const bool beats_;  // it is a node of a cluster
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  std::unordered_map<queue::ClientId, std::shared_ptr<Connection>> connections_;
  // Connections that have commands to be carried out.
  FairQueue line_;
  // What the engine has delivered and connections have not got yet.
  std::deque<queue::Delivery> deliveries_;
  // Connections that have replies to send.
  ConnectionList replying_{&Connection::has_replies_queued};
  ConnectionList long_replies_{&Connection::has_long_replies};
  // Connections whose replies wait until a change is durable, the first change first.
  struct Held {
    queue::Sequence waits_for;
    std::shared_ptr<Connection> connection;
    bool operator<(const Held& other) const { return waits_for > other.waits_for; }
  };
  std::priority_queue<Held> held_;
  // Connections whose next step appends, and that wait until the store has room.
  ConnectionList waiting_for_store_{&Connection::is_waiting_for_store};
  // Connections that read again at the end of the turn.
  ConnectionList resting_{&Connection::is_resting};
  // Connections whose handshake goes on when there is time.
  ConnectionList shaking_{&Connection::is_shaking_hands};
  bool stopping_ = false;
  bool failed_ = false;
  bool deposed_ = false;
  base::LogThrottle refusals_;
  base::LogThrottle engine_failures_;
  base::LogThrottle barrier_failures_;
  base::LogThrottle stalled_;
  base::LogThrottle idle_;
  std::array<base::LogThrottle, kRejectReasons> rejections_;  // by RejectReason
  SlowSyncs slow_syncs_;
  ClockSteps clock_steps_;
  ScheduleLog schedule_log_;
  MemoryWarnings memory_warnings_;
  push::Pusher pusher_;
  queue::Sequence requested_ = 0;  // a sync was requested up to here
  // In a cluster an append is due then, whatever clients do.
  std::uint64_t next_beat_ns_ = UINT64_MAX;
  // The last member: its thread calls back until it is destroyed.
  queue::GroupCommit commit_;
};

}  // namespace carillon::server
