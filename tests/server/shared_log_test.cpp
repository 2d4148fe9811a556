// The server on a log that other servers read: no reply leaves before a window that was closed
// after its command ran, an unavailable log loses nothing, and a deposed server answers nothing.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "running_loop.h"
#include "server/net/clock.h"

namespace carillon::server {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kPutHello = "put 0 0 60 5\r\nhello\r\n";

std::string get_request(std::string_view path) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

std::string post_request(std::string_view path, std::string_view body) {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n" +
         "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + std::string(body);
}

class SharedLog : public RunningLoop {
 protected:
  SharedLog() { store_.shared = true; }
  void TearDown() override {
    store_.syncs_wait = false;
    store_.is_unavailable = false;
    RunningLoop::TearDown();
  }

  template <class Condition>
  static void await(Condition condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), until) << "it did not come to that";
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  // Waits until this many syncs have begun since the test began to count them.
  void await_syncs(int count) {
    await([&] { return store_.syncs_begun >= counted_ + count; });
  }
  // From now on a sync ends only if the test lets it.
  void hold_syncs() {
    store_.syncs_wait = true;
    counted_ = store_.syncs_begun;
  }

  // The command's reply does not leave while its sync is under way, and leaves when it has ended.
  void expect_behind_a_sync(Peer& peer, std::string_view command, std::string_view reply) {
    SCOPED_TRACE(command);
    hold_syncs();
    peer.send(command);
    await_syncs(1);
    await([&] { return loop_is_idle(); });
    EXPECT_FALSE(peer.has_input());
    store_.syncs_wait = false;
    EXPECT_EQ(peer.read(reply.size()), reply);
    await([&] { return loop_is_idle(); });
    while (peer.has_input()) peer.read(peer.bytes_to_read());
  }

  // Another connection gets an answer that waits for nothing, so every earlier turn is over.
  bool loop_is_idle() {
    Peer probe(http_);
    return probe.say(get_request("/healthz"), "HTTP/1.1 200") == "HTTP/1.1 200";
  }

  int counted_ = 0;
};

TEST_F(SharedLog, EveryCommandOfTheLineIsAnsweredBehindASync) {
  start();
  Peer peer(tcp_);
  for (const auto& [command, reply] : std::vector<std::pair<std::string_view, std::string_view>>{
           {kPutHello, "INSERTED 1\r\n"},
           {"use mail\r\n", "USING mail\r\n"},
           {"use default\r\n", "USING default\r\n"},
           {"watch mail\r\n", "WATCHING 2\r\n"},
           {"ignore mail\r\n", "WATCHING 1\r\n"},
           {"peek 1\r\n", "FOUND 1 5\r\nhello\r\n"},
           {"peek 2\r\n", "NOT_FOUND\r\n"},
           {"peek-ready\r\n", "FOUND 1 5\r\nhello\r\n"},
           {"peek-delayed\r\n", "NOT_FOUND\r\n"},
           {"peek-buried\r\n", "NOT_FOUND\r\n"},
           {"stats\r\n", "OK "},
           {"stats-job 1\r\n", "OK "},
           {"stats-tube default\r\n", "OK "},
           {"list-tubes\r\n", "OK "},
           {"list-tube-used\r\n", "USING default\r\n"},
           {"list-tubes-watched\r\n", "OK "},
           {"reserve-with-timeout 0\r\n", "RESERVED 1 5\r\nhello\r\n"},
           {"reserve-with-timeout-ms 1\r\n", "TIMED_OUT\r\n"},
           {"touch 1\r\n", "TOUCHED\r\n"},
           {"release 1 0 0\r\n", "RELEASED\r\n"},
           {"reserve-job 1\r\n", "RESERVED 1 5\r\nhello\r\n"},
           {"bury 1 0\r\n", "BURIED\r\n"},
           {"kick 1\r\n", "KICKED 1\r\n"},
           {"kick-job 1\r\n", "NOT_FOUND\r\n"},
           {"pause-tube default 0\r\n", "PAUSED\r\n"},
           {"reserve-jobs 2 timeout=0\r\n", "JOBS 1\r\n"},
           {"delete-jobs 1\r\n1\r\n", "JOBS 1\r\n"},
           {"delete 1\r\n", "NOT_FOUND\r\n"},
           {"put-ms 0 0 60000 1\r\na\r\n", "INSERTED 2\r\n"},
           {"put-job 1 key=k\r\na\r\n", "INSERTED 3\r\n"},
           {"peek-job 3\r\n", "FOUND 3 1\r\na\r\n"},
           {"patch-job 3 pri=7\r\n", "PATCHED 3\r\n"},
           {"cancel-job 3\r\n", "CANCELLED 3\r\n"},
           {"reserve-job 2\r\n", "RESERVED 2 1\r\na\r\n"},
           {"touch-job 2\r\n", "TOUCHED\r\n"},
           {"release-ms 2 0 0\r\n", "RELEASED\r\n"},
           {"reserve-job 2\r\n", "RESERVED 2 1\r\na\r\n"},
           {"fail-job 2 2\r\nno\r\n", "AGAIN 1 0\r\n"},
           {"release-jobs 1\r\n2\r\n", "JOBS 1\r\n"},
           {"name-client w\r\n", "NAMED\r\n"},
           {"nonsense\r\n", "UNKNOWN_COMMAND\r\n"},
       })
    expect_behind_a_sync(peer, command, reply);
}

TEST_F(SharedLog, EveryRequestIsAnsweredBehindASyncIfItIsAboutJobs) {
  start();
  Peer peer(http_);
  for (const auto& [request, reply] : std::vector<std::pair<std::string, std::string_view>>{
           {post_request("/v1/tubes/mail/jobs", "{}"), "HTTP/1.1 201"},
           {get_request("/v1/jobs/1"), "HTTP/1.1 200"},
           {get_request("/v1/jobs/2"), "HTTP/1.1 404"},
           {get_request("/v1/tubes"), "HTTP/1.1 200"},
           {post_request("/v1/tubes/mail:pause", "{}"), "HTTP/1.1 200"},
           {post_request("/v1/tubes/mail:reserve", "{}"), "HTTP/1.1 200"},
           {get_request("/v1/audit"), "HTTP/1.1 200"},
       })
    expect_behind_a_sync(peer, request, reply);
}

TEST_F(SharedLog, WhatIsAboutTheServerAloneIsAnsweredAtOnce) {
  start();
  hold_syncs();
  for (const auto& [request, reply] : std::vector<std::pair<std::string, std::string_view>>{
           {get_request("/healthz"), "HTTP/1.1 200"},
           {get_request("/readyz"), "HTTP/1.1 200"},
           {get_request("/metrics"), "HTTP/1.1 200"},
           {get_request("/v1/stats"), "HTTP/1.1 200"},
           {get_request("/"), "HTTP/1.1 200"},
       }) {
    Peer peer(http_);
    EXPECT_EQ(peer.say(request, reply), reply) << request;
  }
}

// The sync that is under way was begun before the command ran. Since then another server may have
// claimed the log.
TEST_F(SharedLog, ASyncThatWasUnderWayIsNotEnough) {
  start();
  Peer producer(tcp_);
  Peer reader(tcp_);
  hold_syncs();
  producer.send(kPutHello);
  await_syncs(1);
  reader.send("peek 1\r\n");
  await([&] { return loop_is_idle(); });
  ++store_.let;
  EXPECT_EQ(producer.read(12), "INSERTED 1\r\n");
  await_syncs(2);
  await([&] { return loop_is_idle(); });
  EXPECT_FALSE(reader.has_input());
  ++store_.let;
  EXPECT_EQ(reader.read(18), "FOUND 1 5\r\nhello\r\n");
}

TEST_F(SharedLog, ALogOfItsOwnKeepsNoReadWaiting) {
  store_.shared = false;
  start();
  Peer producer(tcp_);
  Peer reader(tcp_);
  hold_syncs();
  EXPECT_EQ(reader.say("peek 1\r\n", "NOT_FOUND\r\n"), "NOT_FOUND\r\n");
  producer.send(kPutHello);
  await_syncs(1);
  EXPECT_EQ(reader.say("list-tube-used\r\n", "USING default\r\n"), "USING default\r\n");
}

TEST_F(SharedLog, AJobForAWorkerThatWaitsGoesOutBehindASync) {
  start();
  Peer producer(tcp_);
  Peer worker(tcp_);
  worker.send("reserve\r\n");
  await([&] { return loop_is_idle(); });
  hold_syncs();
  producer.send(kPutHello);
  await_syncs(1);
  await([&] { return loop_is_idle(); });
  EXPECT_FALSE(worker.has_input());
  store_.syncs_wait = false;
  EXPECT_EQ(worker.read(22), "RESERVED 1 5\r\nhello\r\n");
}

// The receiver's side of a push: accepts connections, and answers nothing.
class Receiver {
 public:
  Receiver() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof any;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&any), size), 0);
    EXPECT_EQ(::listen(fd_, 1), 0);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&any), &size), 0);
    port_ = ntohs(any.sin_port);
  }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;
  ~Receiver() { ::close(fd_); }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/"; }
  bool has_client() const {
    pollfd look{.fd = fd_, .events = POLLIN, .revents = 0};
    return ::poll(&look, 1, 0) == 1;
  }

 private:
  int fd_;
  std::uint16_t port_ = 0;
};

// The job is durable for long, but its server may not be the owner any more.
TEST_F(SharedLog, AJobIsPushedBehindASync) {
  ServerOptions options;
  options.push.allowed = {push::parse_network("127.0.0.0/8")};
  start(options);
  const Receiver receiver;
  Peer peer(http_);
  EXPECT_EQ(peer.say(post_request("/v1/tubes/mail/jobs", "{}"), "HTTP/1.1 201"), "HTTP/1.1 201");
  await([&] { return loop_is_idle(); });
  hold_syncs();
  const std::string endpoint = R"({"tube":"mail","url":")" + receiver.url() + R"("})";
  Peer operations(http_);
  operations.send("PUT" + post_request("/v1/endpoints/hook", endpoint).substr(4));
  await_syncs(1);
  await([&] { return loop_is_idle(); });
  EXPECT_FALSE(receiver.has_client());
  store_.syncs_wait = false;
  await([&] { return receiver.has_client(); });
}

// Under another policy the operating system would have the change, which says nothing of the log.
TEST_F(SharedLog, EachPolicyWaitsForTheLog) {
  ServerOptions options;
  options.sync = queue::SyncPolicy::os();
  start(options);
  Peer peer(tcp_);
  expect_behind_a_sync(peer, kPutHello, "INSERTED 1\r\n");
}

TEST_F(SharedLog, ASignalLetsWaitingClientsHearOfIt) {
  start();
  Peer worker(http_);
  worker.send(post_request("/v1/tubes/mail:reserve", R"({"wait":"60s"})"));
  await([&] { return loop_is_idle(); });
  const std::uint64_t began = read_mono();
  EXPECT_EQ(terminate(), End::kSignal);
  EXPECT_LT(read_mono() - began, 4'000'000'000U) << "it has waited for a client that is answered";
  EXPECT_EQ(worker.read(12), "HTTP/1.1 503");
}

TEST_F(SharedLog, ASignalToADeposedServerIsNoCleanEnd) {
  start();
  Peer peer(tcp_);
  await([&] { return loop_is_idle(); });
  store_.append_deposes = true;
  EXPECT_EQ(terminate(), End::kDeposed);
  EXPECT_TRUE(peer.at_end());
}

// Nothing is left to be synced, so only an append finds out.
TEST_F(SharedLog, AnAppendThatFindsAnotherOwnerDeposesTheServer) {
  start();
  Peer peer(tcp_);
  store_.append_deposes = true;
  peer.send("peek 1\r\n");
  EXPECT_EQ(end(), End::kDeposed);
  EXPECT_TRUE(peer.at_end());
}

TEST_F(SharedLog, ADeposedServerAnswersNothingAndClosesItsClients) {
  start();
  Peer producer(tcp_);
  Peer reader(tcp_);
  Peer http(http_);
  Peer idle(tcp_);
  hold_syncs();
  producer.send(kPutHello);
  reader.send("stats\r\n");
  http.send(get_request("/v1/tubes"));
  await_syncs(1);
  await([&] { return loop_is_idle(); });
  store_.is_deposed = true;
  store_.syncs_wait = false;
  EXPECT_EQ(end(), End::kDeposed);
  for (Peer* const peer : {&producer, &reader, &http, &idle}) EXPECT_TRUE(peer->at_end());
}

TEST_F(SharedLog, AnUnavailableLogLosesNothingAndRefusesNewCommandsAfterTwoSeconds) {
  start();
  Peer producer(tcp_);
  EXPECT_EQ(producer.say(kPutHello, "INSERTED 1\r\n"), "INSERTED 1\r\n");
  store_.is_unavailable = true;
  const std::uint64_t began = read_mono();
  producer.send(kPutHello);
  await([&] {
    Peer late(tcp_);
    late.send("list-tube-used\r\n");
    std::this_thread::sleep_for(milliseconds(50));
    return late.has_input() && late.read(16) == "INTERNAL_ERROR\r\n";
  });
  EXPECT_GE(read_mono() - began, 2'000'000'000U);
  EXPECT_LT(read_mono() - began, 15'000'000'000U);
  EXPECT_FALSE(producer.has_input());
  Peer with_body(tcp_);
  EXPECT_EQ(with_body.say(kPutHello, "INTERNAL_ERROR\r\n"), "INTERNAL_ERROR\r\n");
  Peer http(http_);
  http.send(post_request("/v1/tubes/mail/jobs", "{}"));
  EXPECT_EQ(http.read_line(), "HTTP/1.1 503 Service Unavailable\r\n");
  std::string head;
  for (std::string line; (line = http.read_line()) != "\r\n" && !line.empty();) head += line;
  EXPECT_NE(head.find("Retry-After: 1\r\n"), std::string::npos) << head;
  Peer probe(http_);
  EXPECT_EQ(probe.say(get_request("/healthz"), "HTTP/1.1 200"), "HTTP/1.1 200");
  Peer ready(http_);
  EXPECT_EQ(ready.say(get_request("/readyz"), "HTTP/1.1 503"), "HTTP/1.1 503");

  // Memory has no room by now, but who would be refused need not wait for it.
  store_.is_full = true;
  Peer deleter(tcp_);
  EXPECT_EQ(deleter.say("delete 1\r\n", "INTERNAL_ERROR\r\n"), "INTERNAL_ERROR\r\n");
  store_.is_full = false;

  store_.is_unavailable = false;
  EXPECT_EQ(producer.read(12), "INSERTED 2\r\n");
  EXPECT_EQ(with_body.say("peek 1\r\n", "FOUND 1 5\r\n"), "FOUND 1 5\r\n") << "its body was read";
}

// It may take five seconds until the log is known to be unavailable.
TEST_F(SharedLog, WhileTheLogDoesNotAnswerNewCommandsAreRefusedAfterTwoSeconds) {
  start();
  Peer producer(tcp_);
  hold_syncs();
  const std::uint64_t began = read_mono();
  producer.send(kPutHello);
  await([&] {
    Peer late(tcp_);
    late.send("list-tube-used\r\n");
    std::this_thread::sleep_for(milliseconds(50));
    return late.has_input() && late.read(16) == "INTERNAL_ERROR\r\n";
  });
  EXPECT_GE(read_mono() - began, 2'000'000'000U);
  EXPECT_FALSE(producer.has_input());
  store_.syncs_wait = false;
  EXPECT_EQ(producer.read(12), "INSERTED 1\r\n");
  EXPECT_EQ(producer.say("peek 2\r\n", "NOT_FOUND\r\n"), "NOT_FOUND\r\n");
}

// The clock of the turn before would say that the outage has just begun.
TEST_F(SharedLog, TheFirstCommandAfterAQuietOutageIsRefused) {
  start();
  Peer producer(tcp_);
  Peer late(tcp_);
  await([&] { return loop_is_idle(); });
  store_.is_unavailable = true;
  producer.send(kPutHello);
  await_syncs(3);  // it was tried again
  std::this_thread::sleep_for(milliseconds(2'200));
  EXPECT_EQ(late.say("list-tube-used\r\n", "INTERNAL_ERROR\r\n"), "INTERNAL_ERROR\r\n");
}

}  // namespace
}  // namespace carillon::server
