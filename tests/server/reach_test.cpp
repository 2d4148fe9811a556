// A server that must not be reached from other machines refuses to start before it listens
// anywhere: no port is open for a moment, and no client of an earlier address is answered.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <vector>

#include "base/start_error.h"
#include "server/net/listening_socket.h"
#include "server/server.h"

namespace {
std::atomic<int> listens = 0;
}

// Stands in for the one of the C library, in all of this program.
extern "C" int listen(int fd, int backlog) noexcept {
  ++listens;
  return static_cast<int>(::syscall(SYS_listen, fd, backlog));
}

namespace carillon::server {
namespace {

const Address kHere{.host = "127.0.0.1", .port = 0, .path = {}};
const Address kEverywhere{.host = "0.0.0.0", .port = 0, .path = {}};

TEST(Reach, IsRefusedBeforeAnythingListens) {
  struct Case {
    std::vector<Address> listen, http;
    bool is_anonymous, is_plain;
    std::string advice;
  };
  for (const Case& tried : {Case{{kHere, kEverywhere}, {kHere}, false, false, "--tokens FILE"},
                            Case{{kHere}, {kHere, kEverywhere}, false, true, "--tokens FILE"},
                            Case{{kHere, kEverywhere}, {}, true, false, "--tls-cert FILE"},
                            Case{{}, {kHere, kEverywhere}, true, false, "--tls-cert FILE"}}) {
    ServerOptions options;
    options.listen = tried.listen;
    options.http_listen = tried.http;
    options.allow_anonymous = tried.is_anonymous;
    options.allow_plaintext = tried.is_plain;
    const int before = listens;
    std::string why;
    try {
      run_server(options);
    } catch (const base::StartError& error) {
      why = error.what();
    }
    EXPECT_TRUE(why.starts_with("0.0.0.0:")) << why;
    EXPECT_NE(why.find(tried.advice), std::string::npos) << why;
    EXPECT_EQ(listens, before);
  }
}

TEST(Reach, IsCountedHere) {
  const int before = listens;
  EXPECT_EQ(listen_on(kHere, {}).size(), 1u);
  EXPECT_EQ(listens, before + 1);
}

}  // namespace
}  // namespace carillon::server
