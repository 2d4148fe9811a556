#include "gateway.h"

#include <algorithm>
#include <boost/asio/error.hpp>
#include <cstdio>
#include <string>
#include <utility>

namespace gateway {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using carillon::Tick;

constexpr int kBacklog = 4096;
constexpr std::size_t kMostDropsPerTurn = 1000;  // then waiting packets have their turn
// Before accepting again when no descriptor was free: trying at once would spin.
constexpr std::chrono::milliseconds kPause{100};

carillon::Ticks ticks_of(const GatewayOptions& options) {
  return carillon::Ticks{(options.timeout + options.tick - std::chrono::milliseconds(1)) /
                         options.tick};
}

}  // namespace

// A connection to the gateway.
class Session : public Channel {
 public:
  Session(Socket socket, Gateway& gateway) : Channel(std::move(socket)), gateway_(gateway) {}

  carillon::IdleId id;
  std::optional<std::uint64_t> user;  // empty before the login

 private:
  void on_frame(const Frame& frame) override { gateway_.handle(*this, frame); }
  void on_end() override {
    ++gateway_.stats_.ended;
    gateway_.forget(*this);
  }

  Gateway& gateway_;
};

Gateway::Gateway(asio::io_context& io, const GatewayOptions& options)
    : options_(options),
      timeout_(ticks_of(options)),
      acceptor_(io, Tcp::v4()),
      pause_(io),
      wakeup_(io),
      tracker_(timeout_) {
  acceptor_.set_option(asio::socket_base::reuse_address(true));
  acceptor_.bind(Tcp::endpoint(asio::ip::address_v4::loopback(), options.port));
  acceptor_.listen(kBacklog);
  accept();
}

void Gateway::accept() {
  acceptor_.async_accept([this](const error_code& error, Socket socket) {
    if (!acceptor_.is_open()) return;
    if (!error) add(std::move(socket));
    if (!error || error == asio::error::connection_aborted) return accept();
    std::fprintf(stderr, "gateway: cannot accept a connection: %s; trying again\n",
                 error.message().c_str());
    pause_.expires_after(kPause);
    pause_.async_wait([this](const error_code& cancelled) {
      if (!cancelled) accept();
    });
  });
}

void Gateway::add(Socket socket) {
  const auto session = std::make_shared<Session>(std::move(socket), *this);
  session->id = tracker_.add(session, timeout_, current_tick() + 1);
  session->start();
  ++stats_.accepted;
  stats_.peak = std::max(stats_.peak, tracker_.size());
  arm();
}

void Gateway::handle(Session& session, const Frame& frame) {
  ++stats_.packets;
  tracker_.touch(session.id, current_tick() + 1);
  if (session.user && frame.type == FrameType::kKeepalive && frame.payload.empty()) return;
  if (session.user && frame.type == FrameType::kMessage && frame.payload.size() >= kUserBytes)
    return forward(session, frame);
  if (!session.user && frame.type == FrameType::kLogin && frame.payload.size() == kUserBytes)
    return log_in(session, frame);
  ++stats_.ended;
  forget(session);
  session.close();
}

// A user who logs in again replaces the connection of the earlier login.
void Gateway::log_in(Session& session, const Frame& frame) {
  const std::uint64_t user = read_number(frame.payload);
  if (const auto before = users_.find(user); before != users_.end()) {
    const auto replaced = std::static_pointer_cast<Session>(before->second->shared_from_this());
    ++stats_.ended;
    forget(*replaced);
    replaced->close();
  }
  users_[user] = &session;
  session.user = user;

  std::string terms;
  append_number(terms, static_cast<std::uint64_t>(options_.timeout.count()), kMillisBytes);
  append_number(terms, static_cast<std::uint64_t>(options_.tick.count()), kMillisBytes);
  session.send(make_frame(FrameType::kWelcome, terms));
}

void Gateway::forward(Session& session, const Frame& frame) {
  const std::uint64_t to = read_number(frame.payload.substr(0, kUserBytes));
  const auto found = users_.find(to);
  if (found == users_.end()) return session.send(make_user_frame(FrameType::kAbsent, to));
  ++stats_.forwarded;
  // Kept alive: send() may find out that the connection is gone, and forget it.
  const auto receiver = found->second->shared_from_this();
  receiver->send(
      make_user_frame(FrameType::kMessage, *session.user, frame.payload.substr(kUserBytes)));
}

void Gateway::forget(Session& session) {
  tracker_.remove(session.id);
  if (session.user) users_.erase(*session.user);
  session.user.reset();
}

void Gateway::find_idle() {
  const Tick now = current_tick();
  ++stats_.wakeups;
  tracker_.advance(
      now, [this](carillon::IdleId, std::shared_ptr<Session>&& session) { on_idle(session); },
      kMostDropsPerTurn);
  arm();
}

void Gateway::on_idle(const std::shared_ptr<Session>& session) {
  // Tracked again, because the read below touches or forgets it.
  session->id = tracker_.add(session, timeout_, current_tick() + 1);
  if (session->read() > 0) {
    if (session->is_open()) ++stats_.reprieved;
    return;
  }
  if (!session->is_open()) return;  // the client had hung up
  ++stats_.dropped;
  forget(*session);
  session->close();
}

// Sets the timer only to earlier moments. If next_wakeup() has become later, the timer fires once
// for nothing.
void Gateway::arm() {
  const auto next = tracker_.next_wakeup();
  if (!next || (armed_for_ && *armed_for_ <= *next)) return;
  armed_for_ = next;
  const Clock::time_point due = start_ + static_cast<std::int64_t>(*next) * options_.tick;
  wakeup_.expires_at(due);
  wakeup_.async_wait([this, due](const error_code& cancelled) {
    if (cancelled) return;
    armed_for_.reset();
    stats_.latest = std::max(stats_.latest, Clock::now() - due);
    find_idle();
  });
}

}  // namespace gateway
