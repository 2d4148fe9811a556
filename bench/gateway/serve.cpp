// The gateway: carillon::IdleTracker is its list of connections. A packet is what one read brings,
// and costs one touch. One Asio timer waits for next_wakeup(), however many connections there are.
//
// Never early: a packet is stamped with the end of the tick in which it was read. And before the
// gateway drops a connection it reads the socket once more: a packet that it finds there, not read
// yet because this process did not run in time, counts.

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "carillon/idle/idle_tracker.h"
#include "programs.h"

namespace gateway {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using carillon::Tick;

constexpr int kBacklog = 4096;
constexpr std::size_t kMostDropsPerTurn = 1000;  // then waiting packets have their turn

struct Session {
  explicit Session(Socket accepted) : socket(std::move(accepted)) {}
  Socket socket;
  carillon::IdleId id;
};
using SessionPtr = std::shared_ptr<Session>;

// Thread safety: none; everything happens in the one thread that runs `io`.
class Gateway {
 public:
  Gateway(asio::io_context& io, Clock::duration timeout, Clock::duration tick)
      : tick_(tick),
        timeout_{(timeout + tick - Clock::duration(1)) / tick},
        acceptor_(io, Tcp::v4()),
        wakeup_(io),
        tracker_(timeout_) {
    acceptor_.bind({asio::ip::address_v4::loopback(), 0});
    acceptor_.listen(kBacklog);
    accept();
  }

  unsigned port() const { return acceptor_.local_endpoint().port(); }

  void report() const {
    std::printf(R"({"peak":%zu,"dropped":%llu,"reprieved":%llu,"wakeups":%llu,"latest_ms":%.3f,)"
                R"("tracker_kib":%zu})"
                "\n",
                peak_, static_cast<unsigned long long>(dropped_),
                static_cast<unsigned long long>(reprieved_),
                static_cast<unsigned long long>(wakeups_), 1000 * seconds(latest_),
                tracker_.allocated_bytes() / 1024);
  }

 private:
  void accept() {
    acceptor_.async_accept([this](const error_code& error, Socket socket) {
      if (error) return std::perror("gateway: cannot accept any more");
      add(std::make_shared<Session>(std::move(socket)));
      accept();
    });
  }

  void add(const SessionPtr& session) {
    error_code ignored;  // if the connection is gone already, its first read finds out
    session->socket.non_blocking(true, ignored);
    session->socket.set_option(Tcp::no_delay(true), ignored);
    session->id = tracker_.add(session, timeout_, current_tick() + 1);
    peak_ = std::max(peak_, tracker_.size());
    arm();
    await_input(session);
  }

  void await_input(const SessionPtr& session) {
    session->socket.async_wait(Socket::wait_read, [this, session](const error_code& error) {
      if (error || !session->socket.is_open()) return;
      read(*session);
      if (session->socket.is_open()) await_input(session);
    });
  }

  // Sends back what has arrived. Returns true if that was a packet. A connection that has ended, or
  // reads too slowly, is closed.
  bool read(Session& session) {
    static std::array<char, 16 << 10> buffer;
    error_code error;
    const std::size_t bytes = session.socket.read_some(asio::buffer(buffer), error);
    if (error == asio::error::would_block) return false;
    if (!error) tracker_.touch(session.id, current_tick() + 1);
    if (error || session.socket.write_some(asio::buffer(buffer, bytes), error) < bytes) {
      tracker_.remove(session.id);
      session.socket.close(error);
      return false;
    }
    return true;
  }

  Tick current_tick() const { return static_cast<Tick>((Clock::now() - start_) / tick_); }

  void find_idle() {
    ++wakeups_;
    tracker_.advance(
        current_tick(), [this](carillon::IdleId, SessionPtr&& session) { on_idle(session); },
        kMostDropsPerTurn);
    arm();
  }

  void on_idle(const SessionPtr& session) {
    // Tracked again, because the read below touches or removes it.
    session->id = tracker_.add(session, timeout_, current_tick() + 1);
    if (read(*session)) return static_cast<void>(++reprieved_);
    if (!session->socket.is_open()) return;  // the client had hung up
    ++dropped_;
    tracker_.remove(session->id);
    error_code ignored;
    session->socket.close(ignored);
  }

  // Sets the timer only to earlier moments. If next_wakeup() has become later, the timer fires once
  // for nothing.
  void arm() {
    const auto next = tracker_.next_wakeup();
    if (!next || (armed_for_ && *armed_for_ <= *next)) return;
    armed_for_ = next;
    const Clock::time_point due = start_ + static_cast<std::int64_t>(*next) * tick_;
    wakeup_.expires_at(due);
    wakeup_.async_wait([this, due](const error_code& cancelled) {
      if (cancelled) return;
      armed_for_.reset();
      latest_ = std::max(latest_, Clock::now() - due);
      find_idle();
    });
  }

  const Clock::duration tick_;
  const carillon::Ticks timeout_;
  const Clock::time_point start_ = Clock::now();
  asio::basic_socket_acceptor<Tcp, asio::io_context::executor_type> acceptor_;
  asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, asio::io_context::executor_type>
      wakeup_;
  std::optional<Tick> armed_for_;
  carillon::IdleTracker<SessionPtr> tracker_;
  std::size_t peak_ = 0;         // most connections at the same time
  std::uint64_t dropped_ = 0;    // connections closed because they were idle
  std::uint64_t reprieved_ = 0;  // connections found idle, but kept: a packet was not read yet
  std::uint64_t wakeups_ = 0;    // of the tracker's timer
  Clock::duration latest_{0};    // the latest that a wake-up of the tracker's timer came
};

}  // namespace

int serve(const std::vector<std::string>& arguments) {
  asio::io_context io(1);
  Gateway gateway(io, duration_of(std::stod(arguments.at(0))),
                  duration_of(std::stod(arguments.at(1))));
  std::printf("%u\n", gateway.port());
  std::fflush(stdout);
  asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&io](const error_code&, int) { io.stop(); });
  io.run();
  gateway.report();
  return 0;
}

}  // namespace gateway

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + std::min(count, 2), words + count);
  const std::string command = count > 1 ? words[1] : "";
  if (command == "serve" && arguments.size() == 2) return gateway::serve(arguments);
  if (command == "load" && arguments.size() == 9) return gateway::load(arguments);
  std::fputs("bench/gateway/run starts this program\n", stderr);
  return 2;
}
