#include "load.h"

#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <utility>

namespace gateway {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::milliseconds;

// Lets the kernel choose the port at connect(); the port must then be unused only towards this
// gateway.
using BindAddressNoPort = asio::detail::socket_option::boolean<IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT>;

constexpr std::size_t kMostConnecting = 200;
constexpr milliseconds kTurn{5};
constexpr double kInFlight = 1;  // seconds for the last messages to arrive
// The time-out must be this many times as long as the time between two packets of a connection.
constexpr double kMargin = 1.25;
constexpr std::string_view kText = "a message of some forty bytes, as it were";

Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

// A connection of the load.
class Client : public Channel {
 public:
  Client(Socket socket, Load& load, std::uint64_t user)
      : Channel(std::move(socket)), user_(user), load_(load) {}

  std::uint64_t user() const { return user_; }

  // Sends a packet. It left between two readings of the clock: last_packet is the earlier one, so a
  // silence is never measured too short; `starved` uses the later one.
  void send_packet(std::string_view frame) {
    const auto before = Clock::now();
    send(frame);
    if (logged_in && Clock::now() - last_packet >= load_.report_.timeout) starved = true;
    last_packet = before;
  }

  Clock::time_point last_packet{};
  Clock::time_point falls_silent = Clock::time_point::max();  // when it sends its last packet
  bool logged_in = false;
  bool fell_silent = false;
  bool starved = false;

 private:
  void on_frame(const Frame& frame) override { load_.on_frame(*this, frame); }
  void on_end() override { load_.on_end(*this); }

  const std::uint64_t user_;
  Load& load_;
};

Load::Load(asio::io_context& io, const LoadOptions& options)
    : io_(io), options_(options), random_(options.seed), timer_(io), input_(io) {
  clients_.reserve(options.connections);
  talking_.reserve(options.connections);
}

Load::~Load() = default;

void Load::start() {
  began_ = last_turn_ = due_ = Clock::now();
  connect_more();
  turn();
}

void Load::connect_more() {
  while (!ended_ && connecting_ < kMostConnecting && begun_ < options_.connections) {
    const std::size_t index = begun_++;
    const auto socket = std::make_shared<Socket>(io_);
    const asio::ip::address_v4 source(0x7f000002 +
                                      static_cast<std::uint32_t>(index % options_.sources));
    error_code error;
    socket->open(Tcp::v4(), error);
    if (!error) socket->set_option(BindAddressNoPort(true), error);
    if (!error) socket->bind({source, 0}, error);
    if (error)
      return fail("no socket for connection " + std::to_string(index + 1) + ": " + error.message());
    ++connecting_;
    socket->async_connect(
        {asio::ip::address_v4::loopback(), options_.port}, [=, this](const error_code& refused) {
          --connecting_;
          if (ended_) return;
          if (refused)
            return fail("connection " + std::to_string(index + 1) + ": " + refused.message());
          on_connected(index, std::move(*socket));
        });
  }
}

void Load::on_connected(std::size_t index, Socket socket) {
  const auto client =
      std::make_shared<Client>(std::move(socket), *this, options_.first_user + index);
  clients_.push_back(client);
  client->send_packet(make_user_frame(FrameType::kLogin, client->user()));
  client->start();
  connect_more();
}

void Load::on_frame(Client& client, const Frame& frame) {
  if (frame.type == FrameType::kMessage) ++report_.delivered;
  if (frame.type == FrameType::kAbsent) ++report_.absent;
  if (frame.type == FrameType::kWelcome && !client.logged_in) on_welcome(client, frame);
}

void Load::on_welcome(Client& client, const Frame& frame) {
  if (frame.payload.size() != 2 * kMillisBytes) return fail("a welcome without time-out and tick");
  report_.timeout = milliseconds(read_number(frame.payload.substr(0, kMillisBytes)));
  report_.tick = milliseconds(read_number(frame.payload.substr(kMillisBytes)));
  client.logged_in = true;
  talking_.push_back(&client);
  if (++report_.connected < options_.connections) return;

  report_.connect_seconds = seconds(Clock::now() - began_);
  const double timeout = seconds(report_.timeout);
  const double interval = static_cast<double>(options_.connections) / options_.rate;
  const double least = timeout + seconds(report_.tick) + options_.slack;
  if (interval * kMargin > timeout) {
    return fail("each connection sends every " + std::to_string(interval) +
                " s, too seldom for a time-out of " + std::to_string(timeout) +
                " s: raise --rate, or the gateway's --timeout");
  }
  if (options_.duration <= least) {
    return fail("--duration must be more than time-out, tick and slack, " + std::to_string(least) +
                " s");
  }
  if (options_.wait_for_go) return await_go();
  go();
}

void Load::await_go() {
  input_.assign(::dup(STDIN_FILENO));
  input_.async_wait(asio::posix::descriptor_base::wait_read, [this](const error_code& error) {
    if (!error && !ended_) go();
  });
}

// Begins the traffic, when all are connected. Chooses the connections that will fall silent, early
// enough for the load to see them dropped.
void Load::go() {
  going_ = true;
  went_ = Clock::now();
  ends_ = went_ + duration_of(options_.duration);
  packets_at_go_ = all_packets_;
  report_.latest = {};
  const double room =
      options_.duration - seconds(report_.timeout) - seconds(report_.tick) - options_.slack;
  std::uniform_real_distribution<double> moment(0, room);
  std::vector<std::shared_ptr<Client>> shuffled = clients_;
  std::shuffle(shuffled.begin(), shuffled.end(), random_);
  report_.silent = static_cast<std::size_t>(options_.silent * static_cast<double>(clients_.size()));
  for (std::size_t i = 0; i < report_.silent; ++i) {
    shuffled[i]->falls_silent = went_ + duration_of(moment(random_));
    falling_.push_back(shuffled[i].get());
  }
  const auto later = [](const Client* a, const Client* b) {
    return a->falls_silent > b->falls_silent;
  };
  std::sort(falling_.begin(), falling_.end(), later);
}

void Load::turn() {
  const auto now = Clock::now();
  report_.latest = std::max(report_.latest, now - due_);
  if (!going_ && seconds(now - began_) > options_.patience) {
    return fail(std::to_string(report_.connected) + " of " + std::to_string(options_.connections) +
                " connections, and no go, after " + std::to_string(options_.patience) + " s");
  }
  if (going_ && now >= ends_) {
    if (report_.traffic_seconds == 0) {
      report_.traffic_seconds = seconds(now - went_);
      report_.packets = all_packets_ - packets_at_go_;
    }
    if (report_.lost() == 0 || seconds(now - ends_) > kInFlight) return finish();
  } else {
    send_packets();
  }
  due_ = std::max(now, due_ + kTurn);
  timer_.expires_at(due_);
  timer_.async_wait([this](const error_code& cancelled) {
    if (!cancelled && !ended_) turn();
  });
}

void Load::send_packets() {
  const auto now = Clock::now();
  owed_ += seconds(now - last_turn_) * options_.rate;
  last_turn_ = now;
  for (; !falling_.empty() && falling_.back()->falls_silent <= now; falling_.pop_back(), --owed_) {
    send_packet(*falling_.back());  // its last packet
    falling_.back()->fell_silent = true;
  }
  while (owed_ >= 1 && !talking_.empty() && !ended_) {
    if (next_ >= talking_.size()) next_ = 0;
    Client& client = *talking_[next_];
    if (client.fell_silent || !client.is_open()) {
      talking_[next_] = talking_.back();  // this client gets its turn earlier
      talking_.pop_back();
      continue;
    }
    ++next_;
    --owed_;
    send_packet(client);
  }
}

void Load::send_packet(Client& client) {
  ++all_packets_;
  if (!talking_.empty() && std::bernoulli_distribution(options_.messages)(random_)) {
    const Client& to = *talking_[random_() % talking_.size()];
    ++report_.sent;
    client.send_packet(make_user_frame(FrameType::kMessage, to.user(), kText));
  } else {
    client.send_packet(make_frame(FrameType::kKeepalive));
  }
}

void Load::on_end(Client& client) {
  if (ended_) return;
  if (!client.logged_in) return fail("the gateway closed a connection before the welcome");
  const auto silence = Clock::now() - client.last_packet;
  if (client.starved || (!client.fell_silent && silence >= report_.timeout)) {
    ++report_.starved;
  } else if (silence < report_.timeout) {
    ++report_.wrong;
  } else {
    report_.kept.push_back(seconds(silence));
    if (seconds(silence) > seconds(report_.timeout + report_.tick) + options_.slack)
      ++report_.overdue;
  }
}

void Load::finish() {
  for (const auto& client : clients_) {
    if (client->falls_silent < ends_ && client->is_open()) ++report_.overdue;  // never dropped
  }
  std::sort(report_.kept.begin(), report_.kept.end());
  fail({});
}

void Load::fail(const std::string& why) {
  ended_ = true;
  report_.failure = why;
  for (const auto& client : clients_) client->reset();
  io_.stop();
}

}  // namespace gateway
