// One life of the server: the code of the real one without its sockets, from opening the store to
// the moment when it dies.
//
//   Server server(options, history, model, random);      // throws StoreError as the real one does
//   while (!server.failed() && !disk.stopped()) server.turn();
//   server.stop();                                       // SIGTERM; else it is destroyed: it died
//
// A turn is like that of the event loop (src/server/event_loop.cpp): some connections bring bytes,
// the sessions carry out commands, the engine does what is due, waiting clients get their jobs, a
// sync is requested, and what may leave is sent. Real are the sessions, the service, the engine,
// the group commit with its thread, and the store; simulated are the connections and their clients.
//
// Each reply is judged at the moment when it is made (model.h), though it may leave later or never.
// When it leaves, the history (history.h) is told what the client knows now.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "carillon/queue/engine.h"
#include "carillon/queue/group_commit.h"
#include "carillon/queue/memory_store.h"
#include "server/net/body_thread.h"
#include "server/net/fair_queue.h"
#include "server/net/memory_reserve.h"
#include "server/service.h"
#include "simulator/connection.h"
#include "simulator/disk.h"
#include "simulator/history.h"
#include "simulator/model.h"

namespace carillon::simulator {

// A store in memory that outlives the servers which use it, one after another. Each counts its
// appends from 1, as with a store on disk.
class KeptStore final : public queue::MemoryStore {
 public:
  void begin_life() { before_ = MemoryStore::sync(); }
  queue::Sequence append(const queue::Changes& changes) override {
    return MemoryStore::append(changes) - before_;
  }
  queue::Sequence sync() override { return MemoryStore::sync() - before_; }

 private:
  queue::Sequence before_ = 0;
};

struct ServerOptions {
  KeptStore* kept = nullptr;  // instead of a store on disk
  queue::DiskStoreOptions store;
  queue::EngineOptions engine;
  queue::SyncPolicy sync;
  std::uint64_t min_free_disk = 0;
  std::size_t clients = 8;
  std::uint32_t max_job_size = kMaxJobSize;
  std::size_t memory = SIZE_MAX;   // bytes of all connections
  bool memory_gets_short = false;  // the system gives no more, now and then
  bool quick_disk = true;          // syncs take microseconds, not milliseconds
  bool sets_clock = false;
};

inline constexpr const char* kDirectory = "/simulated/data";

// Returns true once in `many` times.
inline bool once_in(Random& random, std::uint64_t many) {
  return random() % many == 0;
}

class Server {
 public:
  Server(const ServerOptions& options, HistoryStore& history, Model& model, Random& random);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Returns how many steps it took: commands that were carried out, and other events.
  std::uint64_t turn();
  bool failed() const { return failed_; }
  void stop();

  // The longest time that a client which asks for one thing at a time has waited for its answer,
  // while the server worked: for that client and for others.
  std::uint64_t longest_wait_ns() const { return longest_wait_ns_; }
  // The digest of all replies, in the order in which they were made.
  std::uint64_t digest() const { return digest_; }

 private:
  // Knows whether a body is being read.
  struct Bodies final : server::BodyQueue {
    explicit Bodies(const queue::Store& store) : thread(store, [] {}) {}
    virtual ~Bodies() = default;
    void read(queue::ClientId client, server::BodyName name) override {
      ++asked;
      thread.read(client, name);
    }
    void forget(queue::ClientId client) noexcept override { thread.forget(client); }

    std::uint64_t asked = 0;
    server::BodyThread thread;
  };

  // Something that the engine does when it is due. If the store has no room then, the engine tries
  // again a second later; the other threads have run now and then, so it has room soon.
  class Overdue {
   public:
    // To be called in every turn. Returns true if it was late in more than 20 attempts in
    // a row.
    bool for_long(bool is_late);

   private:
    int times_ = 0;  // that it was late in a row, counted once for each attempt
    std::uint64_t last_ns_ = 0;
  };

  Model::Excuses excuses() const;
  void let_clients_act();
  void pass_time();
  void let_memory_get_short();
  queue::EngineOptions engine_options();
  void arrive(Connection& connection);
  void join_line(Connection& connection);
  bool look_for_room(Connection& connection);
  void serve_line();
  bool serve(Connection& connection, std::uint64_t until_ns);
  bool carry_out(Connection& connection, std::uint64_t until_ns);
  std::uint64_t busy_ns() const;
  void let_pass(std::uint64_t ns);
  void set_wall_clock();
  void finish_commands(Connection& connection);
  std::optional<Reply> take_reply_of(Connection& connection, std::string_view& bytes);
  void go_on_with_body(Connection& connection, std::string_view& bytes);
  void look_at_end(const Connection& connection);
  void expect_no_remains() const;
  void expect_invariants() const;
  void expect_no_old_keys();
  void expect_no_old_ends();
  void expect_no_old_occurrences();
  void expect_memory_given_back();
  bool hand_out_bodies();
  bool gathers_more(const Connection& connection) const;
  queue::Now read_clocks();
  void look_at_wait(const Connection& connection);
  bool was_changed_since(const Reply& reply) const;
  std::uint64_t append_of(const Connection& connection, const Command& command,
                          const Reply& reply) const;
  void note_reply(Connection& connection, const Command& command, const Reply& reply,
                  std::size_t behind);
  void deliver();
  void catch_up();
  void run_engine();
  void commit();
  void flush(Connection& connection);
  void flush_all();
  void look_at_store();
  void poll_checkpoint();
  void go_on_with_changes();
  void look_at_checkpoint(const queue::Checkpoint& checkpoint);
  void expect_no_checkpoints() const;
  void close(Connection& connection);
  bool died() const { return Disk::mounted()->stopped(); }

  const ServerOptions options_;
  HistoryStore& history_;
  Model& model_;
  Random& random_;
  const std::uint64_t failed_calls_before_;
  std::optional<queue::DiskStore> on_disk_;
  queue::Store& store_;
  std::optional<server::MemoryReserve> reserve_;
  queue::Engine engine_;
  Bodies bodies_;
  server::Service service_;
  std::vector<std::unique_ptr<Connection>> connections_;
  ClientNumber last_client_ = 0;
  Model::Times times_;  // for the command that is carried out, or for what was due last
  bool new_times_ = true;
  queue::Sequence requested_ = 0;
  bool failed_ = false;
  std::deque<std::uint64_t> long_changes_;  // that go on; the first one is next
  std::uint64_t checkpoint_from_ = 0;       // the append before the checkpoint that is made
  int checkpoint_polls_ = 0;
  Overdue old_keys_;
  Overdue old_ends_;
  Overdue old_occurrences_;
  std::uint64_t steps_ = 0;
  std::uint64_t longest_wait_ns_ = 0;
  std::uint64_t idle_ns_ = 0;  // the time so far in which the server had nothing to do
  server::FairQueue line_;
  std::uint64_t digest_ = 0;
  queue::GroupCommit commit_;
};

}  // namespace carillon::simulator
