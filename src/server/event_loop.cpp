// EventLoop: the turn, and the connections (event_loop.h). The end is in event_loop_end.cpp.
#include "server/event_loop.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <csignal>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/role.h"
#include "server/beanstalk/session.h"
#include "server/http/session.h"
#include "server/net/clock.h"
#include "server/second_signal.h"
#include "server/text/calendar.h"

namespace carillon::server {
namespace {

namespace asio = boost::asio;

// The budgets of a turn's parts, in ns; a part may take some steps longer. A longer turn has fewer
// syncs and system calls for the same commands; a shorter one lets a new command wait less.
constexpr std::uint64_t kInputBudget = 500'000;
constexpr std::uint64_t kLineBudget = 1'000'000;
constexpr std::uint64_t kEngineBudget = 500'000;
constexpr std::uint64_t kOperateBudget = 300'000;
constexpr std::uint64_t kDeliverBudget = 500'000;
constexpr std::uint64_t kFlushBudget = 500'000;
constexpr std::uint64_t kReadBudget = 500'000;
constexpr std::uint64_t kHandshakeBudget = 500'000;
// What a connection may use in each round of the line, and how long a round should take, in ns.
constexpr std::int64_t kQuantum = 300'000;
constexpr std::int64_t kRound = 5'000'000;
// While a checkpoint is made, or clients wait for room, the store is asked about it this often.
constexpr std::uint64_t kStorePollNs = 5'000'000;
constexpr std::uint64_t kBeatNs = cluster::Role::kBeat * 1'000'000;
// A log that lies elsewhere may take a second to say that it is unavailable.
constexpr queue::QuickSync kNeverInPlace{.alone = {}, .among = {}};
constexpr std::string_view kFull = "OUT_OF_MEMORY\r\n";
constexpr std::string_view kFullOfHttp =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
    "Connection: close\r\n\r\n";

bool is_ignored(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

std::string_view describe(RejectReason reason) {
  switch (reason) {
    case RejectReason::kNone:
      return "";
    case RejectReason::kHttp:
      return "sent an HTTP request";
    case RejectReason::kUnknownCommands:
      return "sent unknown commands alone";
    case RejectReason::kWrongToken:
      return "showed a wrong token";
    case RejectReason::kTls:
      return "speaks TLS to a port without it (see carillon serve --tls-cert)";
    case RejectReason::kPlainText:
      return "speaks no TLS to a port that does";
    case RejectReason::kNoTls:
      return "failed to begin with TLS";
  }
  return "";
}

}  // namespace

EventLoop::EventLoop(queue::Store& store, std::vector<ListeningSocket> sockets,
                     const ServerOptions& options, queue::DiskStore* on_disk, Tokens* tokens,
                     TlsContext* tls)
    // Only this thread runs the context and touches its sockets. The threads that sync and that
    // read bodies post to it.
    : io_(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO),
      store_(store),
      engine_(store, engine_options(options), read_clocks()),
      bodies_(store, [this] { asio::post(io_, [this] { on_bodies(); }); }),
      service_(engine_, store, bodies_, read_clocks, options.beanstalk,
               DiskSpace(options.data_dir, options.min_free_disk), on_disk),
      tokens_(tokens),
      tls_(tls),
      signals_(io_, SIGTERM, SIGINT, SIGUSR1),
      alarm_(io_),
      wall_clock_(io_, [this] { run_engine(0); }),
      hang_ups_(io_, [this](queue::ClientId client) { on_hang_up(client); }),
      timeouts_{.stall = options.stall_timeout, .idle = options.idle_timeout},
      stalls_(timeouts_, options.max_connections, read_mono),
      max_connections_(options.max_connections),
      http_names_(options.http_names),
      beats_(options.cluster.has_value()),
      line_(kQuantum, kRound),
      slow_syncs_(store.is_shared() ? "the shared log" : "the disk"),
      memory_warnings_(options.engine),
      pusher_(
          io_, service_, [this] { return durable(); }, options.push),
      commit_(
          store, store.is_shared() ? queue::SyncPolicy::always() : options.sync,
          [this](const queue::CommitReport& report) {
            asio::post(io_, [this, report] { on_report(report); });
          },
          store.is_shared() ? kNeverInPlace : queue::QuickSync()) {
  service_.set_pusher(&pusher_);
  service_.set_durable([this] { return durable(); });
  pusher_.on_tried([this](queue::ClientId client, const push::PostResult& result) {
    if (const auto connection = connection_of(client)) connection->tried(result);
  });
  end_at_second_signal();
  // Under nohup SIGHUP is ignored, and a handler that ends the loop would undo that.
  if (tokens_ != nullptr || tls_ != nullptr || !is_ignored(SIGHUP)) signals_.add(SIGHUP);
  for (ListeningSocket& socket : sockets) {
    const Speaks protocol = socket.speaks();
    const bool has_tls = tls_ != nullptr && !socket.is_unix();
    acceptors_.push_back(std::make_unique<Acceptor>(
        io_, std::move(socket), [this, protocol, has_tls](Acceptor::Socket accepted) {
          on_socket(std::move(accepted), protocol, has_tls);
        }));
  }
  store_.on_failure([this] { asio::post(io_, [] {}); });  // the loop wakes, and checks the store
}

queue::EngineOptions EventLoop::engine_options(const ServerOptions& options) {
  queue::EngineOptions engine = options.engine;
  engine.calendar = cron_calendar();
  // The engine asks while it runs, not while it starts: service_ is there by then.
  engine.refuses_puts = [this] { return service_.takes_no_jobs(); };
  return engine;
}

EventLoop::~EventLoop() {
  store_.on_failure({});
  // If an exception has left run(), connections are open. Handlers in io_ own them, and io_ is
  // destroyed after the engine, which an open session uses when it is destroyed.
  for (const auto& connection : open_connections()) connection->abort();
}

EventLoop::End EventLoop::run() {
  await_signal();
  service_.refuses_puts(read_clocks());  // logs it if the disk is nearly full
  if (beats_) next_beat_ns_ = read_mono();
  alarm_.set(next_wakeup());
  for (const auto& acceptor : acceptors_) acceptor->start();
  while (!failed_ && !deposed_ && (!stopping_ || !pusher_.is_idle())) turn();
  end();
  if (deposed_) return End::kDeposed;
  return failed_ ? End::kStoreFailed : End::kSignal;
}

// --- One turn.

void EventLoop::turn() {
  take_input();
  look_for_room();
  const std::uint64_t until = read_mono() + kLineBudget;
  serve_line(until);
  while (line_.empty() && take_more_input(until)) serve_line(until);
  shake_hands(read_mono() + kHandshakeBudget);
  if (engine_has_work()) run_engine(read_mono() + kEngineBudget);
  if (operations_have_work()) operate(read_mono() + kOperateBudget);
  close_stalled();
  service_.leases().look(service_.last_now());
  poll_checkpoint();
  service_.save_space(read_mono());
  tell_listeners();
  deliver(read_mono() + kDeliverBudget);
  pusher_.work();
  clock_steps_.observe(engine_);
  schedule_log_.observe(engine_, service_.last_now().mono_ns);
  append_barrier();
  commit();
  look_at_store();
  if (failed_ || deposed_) return;
  service_.renew_reserve();
  memory_warnings_.observe(read_mono(), engine_);
  look_for_durable();
  flush(read_mono() + kFlushBudget);
  // If a write has failed, its session was closed, and the engine has given its jobs to others.
  deliver(read_mono() + kDeliverBudget);
  read_on(read_mono() + kReadBudget);
  alarm_.set(next_wakeup());
}

// Runs handlers: they accept connections, take signals and read from sockets, and the connections
// get in line. If there is nothing else to do, sleeps until the first one can run. Then it polls
// for others only as long as there may be more commands for this turn's sync.
void EventLoop::take_input() {
  const bool busy = !line_.empty() || !replying_.empty() || !long_replies_.empty() ||
                    !deliveries_.empty() || !resting_.empty() || !shaking_.empty() ||
                    engine_has_work() || operations_have_work() || pusher_.has_more() ||
                    (!waiting_for_store_.empty() && service_.store_has_room());
  if (!busy) io_.run_one();
  const std::uint64_t until = read_mono() + kInputBudget;
  StepClock clock;
  while ((busy || resting_.size() + line_.size() < connections_.size()) && io_.poll_one() > 0 &&
         clock.is_before(until)) {
  }
}

// Takes what clients have sent meanwhile, because it can share this turn's sync. Returns false if
// there is nothing, or no time. Runs one handler at a time: each may start the next one, so poll()
// might not end.
bool EventLoop::take_more_input(std::uint64_t until_ns) {
  bool found = false;
  while (resting_.size() + line_.size() < connections_.size() && read_mono() < until_ns &&
         io_.poll_one() > 0)
    found = true;
  return found;
}

void EventLoop::look_for_room() {
  if (waiting_for_store_.empty() || !service_.store_has_room()) return;
  while (!waiting_for_store_.empty()) waiting_for_store_.take_first()->store_has_room();
}

void EventLoop::serve_line(std::uint64_t until_ns) {
  for (std::uint64_t now = read_mono(); now < until_ns;) {
    FairQueue::Member* const next = line_.next();
    if (next == nullptr) return;
    const std::shared_ptr<Connection> connection =
        static_cast<Connection*>(next)->shared_from_this();
    connection->process(now + static_cast<std::uint64_t>(next->credit()));
    const std::uint64_t after = read_mono();
    line_.spent(*connection, static_cast<std::int64_t>(after - now));
    now = after;
  }
}

bool EventLoop::engine_has_work() const {
  const auto wakeup = engine_.next_wakeup();
  return wakeup && *wakeup <= read_mono();
}

std::optional<std::uint64_t> EventLoop::next_wakeup() const {
  const auto engine = engine_.next_wakeup();
  const auto stalls = stalls_.next_wakeup();
  const std::uint64_t soonest =
      std::min({engine.value_or(UINT64_MAX), stalls.value_or(UINT64_MAX),
                service_.feed().next_wakeup(), service_.next_save(), next_beat_ns_});
  const Barrier* const barrier = service_.barrier();
  const bool waits_for_store = !waiting_for_store_.empty() || service_.long_changes().has_work() ||
                               pusher_.has_work() || (barrier != nullptr && barrier->is_wanted());
  if (!service_.checkpoint().pending() && !waits_for_store) return soonest;
  return std::min(read_mono() + kStorePollNs, soonest);
}

void EventLoop::run_engine(std::uint64_t until_ns) {
  try {
    do engine_.advance(read_clocks());
    while (engine_has_work() && read_mono() < until_ns);
  } catch (const queue::Deposed& error) {
    depose(error.what());
  } catch (const queue::StoreError& error) {
    // No client's command failed, so no client is told. The engine tries again by itself.
    if (engine_failures_.pass(read_mono()))
      spdlog::error("something that is due has met an error: {}", error.what());
  }
}

bool EventLoop::operations_have_work() {
  return service_.long_changes().has_work() && store_.has_room();
}

void EventLoop::operate(std::uint64_t until_ns) {
  do service_.long_changes().work(read_clocks());
  while (operations_have_work() && read_mono() < until_ns);
}

// Runs before deliver(), because the jobs that the closed connections held are ready again.
void EventLoop::close_stalled() {
  stalls_.look([this](Watched& watched, Awaits what) {
    on_stalled(static_cast<Connection&>(watched), what);
  });
}

void EventLoop::poll_checkpoint() {
  const auto result = service_.checkpoint().poll();
  if (!result) return;
  if (const auto connection = connection_of(result->client)) connection->checkpoint_made(*result);
}

// Gives each waiting connection the end of its wait.
void EventLoop::deliver(std::uint64_t until_ns) {
  for (queue::Delivery& delivery : engine_.take_deliveries())
    deliveries_.push_back(std::move(delivery));
  for (std::uint64_t now = 0; !deliveries_.empty() && now < until_ns; now = read_mono()) {
    const queue::Delivery& delivery = deliveries_.front();
    if (const auto connection = connection_of(service_.leases().asker_of(delivery.client))) {
      connection->deliver(delivery);
    } else {
      pusher_.deliver(delivery);
    }
    deliveries_.pop_front();
  }
}

// Runs when the commands of the turn have run. In a cluster it is also the beat by which the other
// nodes know that this one lives.
void EventLoop::append_barrier() {
  const Barrier* const barrier = service_.barrier();
  if (barrier == nullptr) return;
  const std::uint64_t now = read_mono();
  const bool is_quiet = engine_.last_sequence() == requested_;
  if (beats_ && !is_quiet) next_beat_ns_ = now + kBeatNs;
  const bool beat_is_due = beats_ && is_quiet && now >= next_beat_ns_;
  if (!barrier->is_wanted() && !beat_is_due) return;
  if (beats_) next_beat_ns_ = now + kBeatNs;
  try {
    engine_.append_barrier();
  } catch (const queue::Deposed& error) {
    depose(error.what());
  } catch (const queue::StoreError& error) {
    // The replies wait, and the next turn tries again.
    if (barrier_failures_.pass(read_mono()))
      spdlog::error("replies wait, because the store takes nothing: {}", error.what());
  }
}

void EventLoop::commit() {
  const queue::Sequence last = engine_.last_sequence();
  using Waiting = queue::GroupCommit::Waiting;
  const auto look = [&] {
    if (const auto took = slow_syncs_.observe(read_mono(), last, durable()))
      service_.commits().observe(static_cast<double>(*took) / 1e9);
  };
  if (last != requested_) {
    look();
    const std::size_t replying = replying_.size() + long_replies_.size() + held_.size();
    const bool alone = line_.empty() && replying == 1;
    commit_.request(last, alone ? Waiting::kOne : Waiting::kSeveral);
  }
  requested_ = last;
  look();
  if (store_.is_shared()) service_.set_waiting_since(slow_syncs_.waiting_since());
}

// If replies are held, what a connection has to send after them waits, too.
void EventLoop::has_replies(Connection& connection) {
  if (connection.has_replies_held) return;
  const bool is_long = connection.session().replies().bytes() > Connection::kMostAtOnce / 4;
  (is_long ? long_replies_ : replying_).add(connection);
}

void EventLoop::look_for_durable() {
  for (; !held_.empty() && held_.top().waits_for <= durable(); held_.pop()) {
    held_.top().connection->has_replies_held = false;
    has_replies(*held_.top().connection);
  }
}

// Long replies go last, so clients that do not read delay nobody. Each of them takes long, so no
// StepClock is needed.
void EventLoop::flush(std::uint64_t until_ns) {
  StepClock clock;
  while (!replying_.empty() && clock.is_before(until_ns)) flush(replying_.take_first());
  for (std::uint64_t now = 0; !long_replies_.empty() && now < until_ns; now = read_mono())
    flush(long_replies_.take_first());
}

void EventLoop::flush(const std::shared_ptr<Connection>& connection) {
  if (connection->flush()) return long_replies_.add(*connection);
  const ReplyQueue& replies = connection->session().replies();
  if (connection->is_writing() || connection->has_replies_held || !replies.holds()) return;
  connection->has_replies_held = true;
  held_.push({replies.waits_for(), connection});
}

void EventLoop::read_on(std::uint64_t until_ns) {
  StepClock clock;
  while (!resting_.empty() && clock.is_before(until_ns)) resting_.take_first()->read_on();
}

// A report wakes the loop, and the turn's flush sends the replies that have become durable.
void EventLoop::on_report(const queue::CommitReport& report) {
  switch (report.commit) {
    case queue::Commit::kDone:
      return on_available();
    case queue::Commit::kUnavailable:
      return on_unavailable(report.why);
    case queue::Commit::kDeposed:
      return depose(report.why);
    case queue::Commit::kFailed:
      return fail(report.why);
  }
}

// Gives each body to the connection that waits for it, if the connection is still there.
void EventLoop::on_bodies() {
  for (const BodyThread::Read& read : bodies_.take()) {
    if (const auto connection = connection_of(read.client)) {
      connection->body_read(read.body);
    } else {
      pusher_.body_read(read.client, read.body);
    }
  }
}

// --- Connections.

// Returns null if the connection is closed.
std::shared_ptr<Connection> EventLoop::connection_of(queue::ClientId client) const {
  const auto found = connections_.find(client);
  return found == connections_.end() ? nullptr : found->second;
}

std::unique_ptr<Protocol> EventLoop::session_of(Speaks protocol) {
  if (protocol == Speaks::kHttp) return std::make_unique<http::Session>(service_, http_names_);
  return std::make_unique<beanstalk::Session>(service_);
}

void EventLoop::on_socket(Acceptor::Socket socket, Speaks protocol, bool has_tls) {
  const std::size_t least = Connection::kLeastMemory + (has_tls ? TlsStream::kMemory : 0);
  auto tls = has_tls ? tls_->accept(socket.native_handle()) : nullptr;
  const bool no_memory =
      service_.is_out_of_memory() || !service_.memory().has(least) || (has_tls && tls == nullptr);
  if (no_memory || connections_.size() >= max_connections_) {
    if (const auto held_back = refusals_.pass(read_mono())) {
      spdlog::warn("refused {} connections: {} are open, and {}", *held_back + 1,
                   connections_.size(),
                   no_memory ? "there is no memory for more (see carillon serve --memory)"
                             : "no more are allowed (see carillon serve --max-connections)");
    }
    if (has_tls) return;
    boost::system::error_code ignored;
    const std::string_view reply = protocol == Speaks::kHttp ? kFullOfHttp : kFull;
    socket.write_some(asio::buffer(reply.data(), reply.size()), ignored);
    return;
  }
  Connection::Owner& owner = *this;
  const auto connection = std::make_shared<Connection>(std::move(socket), service_, owner,
                                                       session_of(protocol), std::move(tls));
  connections_.emplace(connection->session().client(), connection);
  connection->start();
}

void EventLoop::on_stalled(Connection& connection, Awaits what) {
  const bool is_idle = what == Awaits::kCommand;
  Counters& counters = service_.counters();
  ++(is_idle ? counters.closed_idle : counters.closed_stalled);
  if (const auto held_back = (is_idle ? idle_ : stalled_).pass(read_mono())) {
    spdlog::log(
        is_idle ? spdlog::level::info : spdlog::level::warn,
        "closed the connection of {}, which {} for {:g} s ({} more such since the last line)",
        connection.peer(), describe(what),
        std::chrono::duration<double>(timeouts_.of(what)).count(), *held_back);
  }
  const std::shared_ptr<Connection> kept = connection.shared_from_this();
  connection.give_up();
}

void EventLoop::active(Connection& connection) {
  stalls_.active(connection);
}

void EventLoop::closed(Connection& connection) {
  stalls_.forget(connection);
  line_.leave(connection);
  connections_.erase(connection.session().client());
}

void EventLoop::watch_hang_up(Connection& connection, int fd) {
  hang_ups_.watch(fd, connection.session().client());
}

void EventLoop::on_hang_up(queue::ClientId client) {
  if (const auto connection = connection_of(client)) connection->hung_up();
}

// At most Feed::kMostListeners get in line.
void EventLoop::tell_listeners() {
  Feed& feed = service_.feed();
  if (!feed.work(service_.now())) return;
  std::vector<std::shared_ptr<Connection>> behind;
  for (const queue::ClientId client : feed.listeners()) {
    const auto found = connections_.find(client);
    if (found == connections_.end()) continue;
    if (found->second->session().has_fallen_behind()) {
      behind.push_back(found->second);
    } else {
      line_.join(*found->second);
    }
  }
  for (const auto& connection : behind) {
    ++service_.counters().closed_stalled;
    if (const auto held_back = stalled_.pass(read_mono())) {
      spdlog::warn(
          "closed the connection of {}, which read its events too slowly ({} more such "
          "since the last line)",
          connection->peer(), *held_back);
    }
    connection->give_up();
  }
}

// A storm of handshakes takes this part of each turn, and no more: connected clients are served
// meanwhile.
void EventLoop::shake_hands(std::uint64_t until_ns) {
  for (std::uint64_t now = 0; !shaking_.empty() && now < until_ns; now = read_mono())
    shaking_.take_first()->shake_hands();
}

void EventLoop::turned_away(Connection& connection, RejectReason reason) {
  const auto held_back = rejections_[static_cast<std::size_t>(reason)].pass(read_mono());
  if (!held_back) return;
  const std::string_view why = connection.handshake_failure();
  spdlog::warn(
      "closed the connection of {}, which {}{}{}: nothing of it was carried out ({} more such "
      "since the last line)",
      connection.peer(), describe(reason), why.empty() ? "" : ": ", why, *held_back);
}

}  // namespace carillon::server
