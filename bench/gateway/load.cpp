// The load: opens connections to a gateway, sends packets on them, lets some of them fall silent,
// and judges whether the gateway dropped the right ones in time.
//
// The connections send in turn, so each sends a packet every (connections / rate) seconds. Some of
// them send a last packet at a random moment, then nothing, and the gateway must close them. When
// the load sees a connection closed, the time since that connection's last packet decides:
//   - less than the time-out: it was dropped although it was alive (`dropped_alive`);
//   - more than time-out + tick + slack: it was kept too long (`kept_too_long`). The slack is for
//     the time that scheduling two processes may add.
// A silent connection that is never closed was kept too long as well. If this process was held up,
// so that two packets of a connection were a time-out apart, closing the connection was right. Such
// connections are counted separately (`starved`).

#include <netinet/in.h>

#include <unistd.h>
#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>

#include "programs.h"

namespace gateway {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Lets the kernel choose the port at connect(); the port must then be unused only towards this
// gateway.
using BindAddressNoPort = asio::detail::socket_option::boolean<IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT>;

constexpr std::size_t kMostConnecting = 200;
constexpr std::uint32_t kSources = 8;  // addresses, 127.0.0.2 and up, each with its own ports
constexpr std::chrono::milliseconds kTurn{5};
constexpr double kInFlight = 1;  // seconds for the last packets to come back
constexpr std::string_view kPacket = "a packet of some forty bytes, as it were";

struct Options {
  explicit Options(const std::vector<std::string>& a)
      : port(static_cast<std::uint16_t>(std::stoul(a[0]))),
        connections(std::stoul(a[1])),
        rate(std::stod(a[2])),
        silent(std::stod(a[3])),
        duration(std::stod(a[4])),
        timeout(std::stod(a[5])),
        tick(std::stod(a[6])),
        slack(std::stod(a[7])),
        seed(std::stoul(a[8])) {}

  const std::uint16_t port;
  const std::size_t connections;
  const double rate;      // packets per second, of all connections together
  const double silent;    // share of the connections that fall silent
  const double duration;  // seconds of traffic once all are connected
  const double timeout, tick, slack;
  const std::uint64_t seed;
};

struct Client {
  explicit Client(asio::io_context& io) : socket(io) {}
  Socket socket;
  Clock::time_point last_packet{};
  Clock::time_point falls_silent = Clock::time_point::max();  // when it sends its last packet
  bool fell_silent = false;
  bool starved = false;
};
using ClientPtr = std::shared_ptr<Client>;

class Load {
 public:
  Load(asio::io_context& io, const Options& options)
      : io_(io), options_(options), random_(options.seed), timer_(io), input_(io) {}

  void start() {
    last_turn_ = due_ = Clock::now();
    connect_more();
    turn();
  }

  // Returns true if the gateway did what it should.
  bool report() {
    std::sort(kept_.begin(), kept_.end());
    const std::uint64_t lost = starved_ > 0 ? 0 : (sent_ - returned_) / kPacket.size();
    const bool good = wrong_ == 0 && overdue_ == 0 && lost == 0 && !failed_;
    std::printf(R"({"good":%s,"traffic_s":%.3f,"packets_per_s":%.1f,"packets":%llu,"lost":%llu,)"
                R"("fell_silent":%zu,"dropped":%zu,"dropped_alive":%zu,"kept_too_long":%zu,)"
                R"("starved":%zu,"kept_least_s":%.4f,"kept_median_s":%.4f,"kept_most_s":%.4f,)"
                R"("load_late_ms":%.3f})"
                "\n",
                good ? "true" : "false", traffic_seconds_,
                static_cast<double>(packets_) / std::max(traffic_seconds_, 1e-9),
                static_cast<unsigned long long>(packets_), static_cast<unsigned long long>(lost),
                silent_, kept_.size(), wrong_, overdue_, starved_, kept_at(0), kept_at(0.5),
                kept_at(1), 1000 * seconds(latest_));
    return good;
  }

 private:
  void connect_more() {
    while (!failed_ && connecting_ < kMostConnecting && begun_ < options_.connections) {
      const auto client = std::make_shared<Client>(io_);
      const auto source = static_cast<std::uint32_t>(begun_++ % kSources);
      client->socket.open(Tcp::v4());
      client->socket.set_option(BindAddressNoPort(true));
      client->socket.bind({asio::ip::address_v4(0x7f000002 + source), 0});
      ++connecting_;
      client->socket.async_connect({asio::ip::address_v4::loopback(), options_.port},
                                   [this, client](const error_code& refused) {
                                     --connecting_;
                                     if (refused) return fail(refused.message());
                                     on_connected(client);
                                   });
    }
  }

  void on_connected(const ClientPtr& client) {
    client->socket.non_blocking(true);
    client->socket.set_option(Tcp::no_delay(true));
    client->last_packet = Clock::now();
    clients_.push_back(client);
    talking_.push_back(client.get());
    send_packet(*client);
    await_input(client);
    if (clients_.size() < options_.connections) return connect_more();
    std::puts("up");
    std::fflush(stdout);
    input_.assign(::dup(STDIN_FILENO));
    input_.async_wait(asio::posix::descriptor_base::wait_read,
                      [this](const error_code& error) { error ? fail("no go") : go(); });
  }

  void await_input(const ClientPtr& client) {
    client->socket.async_wait(Socket::wait_read, [this, client](const error_code& error) {
      if (!error && client->socket.is_open()) read(client);
    });
  }

  void read(const ClientPtr& client) {
    static std::array<char, 16 << 10> buffer;
    error_code error;
    returned_ += client->socket.read_some(asio::buffer(buffer), error);
    if (!error || error == asio::error::would_block) return await_input(client);
    on_end(*client);
  }

  // Begins the traffic. Chooses the connections that will fall silent, early enough for the load to
  // see them dropped.
  void go() {
    went_ = Clock::now();
    ends_ = went_ + duration_of(options_.duration);
    packets_ = 0;
    latest_ = {};
    std::uniform_real_distribution<double> moment(
        0, options_.duration - options_.timeout - options_.tick - options_.slack);
    std::vector<ClientPtr> shuffled = clients_;
    std::shuffle(shuffled.begin(), shuffled.end(), random_);
    silent_ = static_cast<std::size_t>(options_.silent * static_cast<double>(clients_.size()));
    for (std::size_t i = 0; i < silent_; ++i) {
      shuffled[i]->falls_silent = went_ + duration_of(moment(random_));
      falling_.push_back(shuffled[i].get());
    }
    std::sort(falling_.begin(), falling_.end(),
              [](const Client* a, const Client* b) { return a->falls_silent > b->falls_silent; });
  }

  void turn() {
    const auto now = Clock::now();
    latest_ = std::max(latest_, now - due_);
    if (now < ends_) {
      send_packets(now);
    } else {
      if (traffic_seconds_ == 0) traffic_seconds_ = seconds(now - went_);
      if (sent_ == returned_ || seconds(now - ends_) > kInFlight) return finish();
    }
    due_ = std::max(now, due_ + kTurn);
    timer_.expires_at(due_);
    timer_.async_wait([this](const error_code& cancelled) {
      if (!cancelled && !failed_) turn();
    });
  }

  void send_packets(Clock::time_point now) {
    owed_ += seconds(now - last_turn_) * options_.rate;
    last_turn_ = now;
    for (; !falling_.empty() && falling_.back()->falls_silent <= now; falling_.pop_back()) {
      send_packet(*falling_.back());  // its last packet
      falling_.back()->fell_silent = true;
      --owed_;
    }
    while (owed_ >= 1 && !talking_.empty()) {
      if (next_ >= talking_.size()) next_ = 0;
      Client& client = *talking_[next_];
      if (client.fell_silent || !client.socket.is_open()) {
        talking_[next_] = talking_.back();  // this client gets its turn earlier
        talking_.pop_back();
        continue;
      }
      ++next_;
      --owed_;
      send_packet(client);
    }
  }

  // The packet leaves between two readings of the clock: last_packet is the earlier one, so a
  // silence is never measured too short; `starved` uses the later one.
  void send_packet(Client& client) {
    const auto before = Clock::now();
    error_code error;
    const std::size_t bytes = client.socket.write_some(asio::buffer(kPacket), error);
    if (error) return;  // its read finds out
    if (bytes < kPacket.size()) return fail("a packet did not fit into a socket");
    sent_ += bytes;
    ++packets_;
    if (seconds(Clock::now() - client.last_packet) >= options_.timeout) client.starved = true;
    client.last_packet = before;
  }

  void on_end(Client& client) {
    const double silence = seconds(Clock::now() - client.last_packet);
    error_code ignored;
    client.socket.close(ignored);
    if (client.starved || (!client.fell_silent && silence >= options_.timeout)) {
      ++starved_;
    } else if (silence < options_.timeout) {
      ++wrong_;
    } else {
      kept_.push_back(silence);
      if (silence > options_.timeout + options_.tick + options_.slack) ++overdue_;
    }
  }

  void finish() {
    for (const ClientPtr& client : clients_) {
      if (client->falls_silent < ends_ && client->socket.is_open()) ++overdue_;  // never dropped
    }
    io_.stop();
  }

  void fail(const std::string& why) {
    failed_ = true;
    std::fprintf(stderr, "gateway: the load ends: %s\n", why.c_str());
    io_.stop();
  }

  // The value below which this share of the sorted values lies; 0 without a value.
  double kept_at(double share) const {
    if (kept_.empty()) return 0;
    return kept_[static_cast<std::size_t>(share * static_cast<double>(kept_.size() - 1))];
  }

  asio::io_context& io_;
  const Options options_;
  std::mt19937_64 random_;
  asio::steady_timer timer_;
  asio::posix::stream_descriptor input_;
  std::vector<ClientPtr> clients_;
  std::vector<Client*> talking_, falling_;
  std::size_t begun_ = 0, connecting_ = 0, next_ = 0;
  double owed_ = 0;  // packets
  Clock::time_point last_turn_, due_, went_, ends_ = Clock::time_point::max();
  double traffic_seconds_ = 0;
  std::uint64_t packets_ = 0;              // since the go
  std::uint64_t sent_ = 0, returned_ = 0;  // bytes
  std::size_t silent_ = 0;                 // connections that fall silent
  std::size_t wrong_ = 0, overdue_ = 0, starved_ = 0;
  std::vector<double> kept_;   // seconds from a silent connection's last packet to its close
  Clock::duration latest_{0};  // the latest that a turn of this process came since the go
  bool failed_ = false;
};

}  // namespace

int load(const std::vector<std::string>& arguments) {
  asio::io_context io(1);
  Load load(io, Options(arguments));
  load.start();
  io.run();
  return load.report() ? 0 : 1;
}

}  // namespace gateway
