// TestServer: a beanstalk server without sockets, for tests. It has an engine on a store in memory
// that can be told to fail, a clock that only the test moves, and clients whose bytes go straight
// into their sessions.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "carillon/queue/engine.h"
#include "carillon/queue/memory_store.h"
#include "server/beanstalk/session.h"
#include "server/service.h"
#include "server/text/calendar.h"

namespace carillon::server::beanstalk {

// A store whose appends, syncs, scans or reads fail, of records or of bodies, or whose bodies are
// not at hand, while the test says so. Or whose log is shared, unavailable, or another server's.
class BreakableStore : public queue::MemoryStore {
 public:
  bool appends_fail = false;
  int fail_after = -1;  // appends fail after this many more; -1: they do not
  bool scans_fail = false;
  bool records_fail = false;
  bool bodies_fail = false;
  bool bodies_are_damaged = false;
  bool bodies_are_on_disk = false;
  std::atomic<bool> is_full = false;  // it has no room; `asked` counts the questions
  std::atomic<int> asked = 0;
  std::atomic<bool> syncs_fail = false;  // atomic, because another thread may sync
  std::atomic<bool> syncs_wait = false;
  std::atomic<int> let = 0;          // how many waiting syncs may end
  std::atomic<int> syncs_begun = 0;  // each covers what was appended when it began
  // Other servers read its log.
  bool shared = false;
  std::atomic<bool> is_unavailable = false;
  std::atomic<bool> is_deposed = false;
  std::atomic<bool> append_deposes = false;

  // A write in the background fails.
  void fail() {
    failed_ = true;
    on_failure_();
  }

  queue::Sequence append(const queue::Changes& changes) override {
    if (append_deposes) throw queue::Deposed("node B has claimed epoch 2");
    if (appends_fail || fail_after == 0) throw queue::StoreError("no space left on device");
    if (fail_after > 0) --fail_after;
    return MemoryStore::append(changes);
  }
  bool has_room() override {
    ++asked;
    return !is_full;
  }
  queue::Sequence sync() override {
    const queue::Sequence covered = MemoryStore::sync();
    ++syncs_begun;
    while (syncs_wait && !may_end()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (syncs_fail) throw queue::StoreError("input/output error");
    if (is_unavailable) throw queue::LogUnavailable("no database");
    if (is_deposed) throw queue::Deposed("node B has claimed epoch 2");
    return covered;
  }
  bool is_shared() const override { return shared; }
  void write() override {
    if (syncs_fail) throw queue::StoreError("input/output error");
  }
  std::string failure() const override { return failed_ ? "a table cannot be written" : ""; }
  void on_failure(const std::function<void()>& call) override { on_failure_ = call; }
  std::optional<queue::JobRecord> find(queue::JobId id) const override {
    if (records_fail) throw queue::StoreError("input/output error");
    return MemoryStore::find(id);
  }
  std::string body(queue::JobId id, std::uint32_t piece = 0) const override {
    if (bodies_fail) throw queue::StoreError("input/output error");
    if (bodies_are_damaged) throw queue::StoreDamage("checksum mismatch");
    return MemoryStore::body(id, piece);
  }
  std::optional<std::string> body_at_hand(queue::JobId id, std::uint32_t piece = 0) const override {
    if (bodies_are_on_disk) return std::nullopt;
    return body(id, piece);
  }
  std::vector<queue::JobRecord> scan_due(std::uint32_t tube, queue::DueKey from,
                                         std::size_t limit) const override {
    if (scans_fail) throw queue::StoreError("input/output error");
    return MemoryStore::scan_due(tube, from, limit);
  }

 private:
  bool may_end() {
    int left = let;
    return left > 0 && let.compare_exchange_strong(left, left - 1);
  }

  std::atomic<bool> failed_ = false;
  std::function<void()> on_failure_;
};

// Reads the bodies that are not at hand when the test says so.
class HeldReads final : public BodyQueue {
 public:
  using Asked = std::vector<std::pair<queue::ClientId, BodyName>>;

  virtual ~HeldReads() = default;
  void read(queue::ClientId client, BodyName name) override { asked.emplace_back(client, name); }
  void forget(queue::ClientId client) noexcept override {
    std::erase_if(asked, [client](const auto& one) { return one.first == client; });
  }

  Asked asked;
};

class TestServer;

// A client whose bytes go to its session. The session's replies are kept until the client reads
// them.
class Client {
 public:
  explicit Client(TestServer& server);
  ~Client();

  // Sends bytes and returns the replies that may leave now; see `durable`.
  std::string say(std::string_view bytes);

  // Sends no more bytes, as after shutdown(SHUT_WR).
  std::string end_input();

  std::string read();
  Session& session() { return *session_; }
  void hang_up() { session_.reset(); }
  std::string_view unused() const { return unused_; }

  // Replies may leave that report changes up to this sequence number.
  queue::Sequence durable = UINT64_MAX;

 private:
  friend class TestServer;
  void process();

  TestServer& server_;
  std::unique_ptr<Session> session_;
  std::string unused_;
  bool ended_ = false;
};

class TestServer {
 public:
  // Checkpoints are made of `on_disk`, though the jobs are not there.
  explicit TestServer(ServiceOptions options = {}, queue::DiskStore* on_disk = nullptr)
      : service(
            engine, store, reads,
            [this] {
              now.utc_ns += reading_takes_ns;
              now.mono_ns += reading_takes_ns;
              return now;
            },
            options, {}, on_disk) {}

  // Moves both clocks on.
  void pass(queue::Millis ms) {
    now.utc_ns += ms * 1'000'000;
    now.mono_ns += ms * 1'000'000;
    engine.advance(now);
    deliver();
  }

  void deliver() {
    for (auto deliveries = engine.take_deliveries(); !deliveries.empty();
         deliveries = engine.take_deliveries()) {
      for (const queue::Delivery& delivery : deliveries) deliver(delivery);
    }
  }

  // Reads the bodies that sessions wait for by now, first come, first served.
  void read_bodies() {
    for (const auto& [id, name] : std::exchange(reads.asked, {})) {
      for (Client* client : clients_) {
        if (!client->session_ || client->session_->client() != id) continue;
        client->session_->body_read(read_body(store, name));
        client->process();
      }
    }
    deliver();
  }

  // Waits for the checkpoint that a client waits for.
  CheckpointResult finish_checkpoint() {
    while (true) {
      if (auto result = service.checkpoint().poll()) return *std::move(result);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  queue::Now now{.utc_ns = 1'700'000'000'000'000'000, .mono_ns = 5'000'000'000};
  // Each reading of the clock by a session moves it on by `reading_takes_ns`. A session takes turns
  // of `turn_ns`.
  std::uint64_t reading_takes_ns = 0;
  std::uint64_t turn_ns = 1'000;
  BreakableStore store;
  queue::Engine engine{store, {.calendar = cron_calendar()}, now};
  HeldReads reads;
  Service service;

 private:
  friend class Client;
  void deliver(const queue::Delivery& delivery) {
    for (Client* client : clients_) {
      if (!client->session_ || client->session_->client() != delivery.client) continue;
      client->session_->deliver(delivery);
      client->process();
    }
  }

  std::vector<Client*> clients_;
};

inline Client::Client(TestServer& server)
    : server_(server), session_(std::make_unique<Session>(server.service)) {
  server_.clients_.push_back(this);
}

inline Client::~Client() {
  std::erase(server_.clients_, this);
}

inline void Client::process() {
  do {
    unused_.erase(0, session_->receive(unused_, server_.now.mono_ns + server_.turn_ns));
  } while (session_->wants() == Session::Wants::kTurn);
  if (ended_ && session_->wants() == Session::Wants::kInput) session_->close();
}

inline std::string Client::say(std::string_view bytes) {
  unused_.append(bytes);
  process();
  server_.deliver();
  return read();
}

inline std::string Client::end_input() {
  ended_ = true;
  session_->end_of_input();
  process();
  server_.deliver();
  return read();
}

inline std::string Client::read() {
  const std::string bytes(session_->replies().sendable(durable));
  session_->replies().sent(bytes.size());
  return bytes;
}

}  // namespace carillon::server::beanstalk
