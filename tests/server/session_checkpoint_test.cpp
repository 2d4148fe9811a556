// The command `checkpoint`: one client at a time, until it disconnects.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "carillon/queue/disk_store.h"
#include "queue/temporary_directory.h"
#include "server/beanstalk/session.h"
#include "test_server.h"

namespace carillon::server::beanstalk {
namespace {

namespace fs = std::filesystem;

class SessionCheckpoint : public testing::Test {
 protected:
  // Returns the checkpoint's directory in the reply; fails if the reply has no directory.
  std::string path_in(const std::string& reply) {
    const std::size_t end = reply.find("\r\n");
    EXPECT_TRUE(reply.starts_with("CHECKPOINT 0 ")) << reply;
    EXPECT_TRUE(reply.ends_with("\r\n")) << reply;
    const std::string path = reply.substr(end + 2, reply.size() - end - 4);
    EXPECT_EQ(reply.substr(0, end), "CHECKPOINT 0 " + std::to_string(path.size()));
    EXPECT_TRUE(fs::exists(path + "/CURRENT")) << path;
    return path;
  }

  void wait_until_gone(const std::string& path) {
    for (int n = 0; n < 20'000 && fs::exists(path); ++n)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_FALSE(fs::exists(path));
  }

  queue::TemporaryDirectory directory;
  queue::DiskStore store{directory / "data with a space", {}};
  TestServer server{{}, &store};
};

TEST_F(SessionCheckpoint, IsThereUntilItsClientDisconnects) {
  Client client(server);
  EXPECT_EQ(client.say("checkpoint\r\n"), "");
  EXPECT_EQ(client.session().wants(), Session::Wants::kDelivery);
  server.finish_checkpoint();
  const std::string path = path_in(client.read());
  EXPECT_EQ(client.say("list-tube-used\r\n"), "USING default\r\n");
  EXPECT_TRUE(fs::exists(path));
  client.hang_up();
  wait_until_gone(path);
}

TEST_F(SessionCheckpoint, IsOneAtATime) {
  Client client(server);
  Client other(server);
  client.say("checkpoint\r\n");
  EXPECT_EQ(other.say("checkpoint\r\n"), "BUSY\r\n");
  server.finish_checkpoint();
  path_in(client.read());
  EXPECT_EQ(other.say("checkpoint\r\n"), "BUSY\r\n");
  EXPECT_EQ(client.say("checkpoint\r\n"), "BUSY\r\n");
  client.say("quit\r\n");
  EXPECT_EQ(other.say("checkpoint\r\n"), "");
  server.finish_checkpoint();
  path_in(other.read());
}

TEST_F(SessionCheckpoint, ACheckpointThatNobodyWaitsForIsNotMade) {
  Client client(server);
  client.say("checkpoint\r\n");
  client.hang_up();
  EXPECT_FALSE(server.service.checkpoint().pending());
  Client other(server);
  other.say("checkpoint\r\n");
  server.finish_checkpoint();
  path_in(other.read());
}

TEST_F(SessionCheckpoint, LaterCommandsOfItsClientWait) {
  Client client(server);
  EXPECT_EQ(client.say("use a\r\ncheckpoint\r\nuse b\r\n"), "USING a\r\n");
  EXPECT_EQ(client.unused(), "use b\r\n");
  server.finish_checkpoint();
  const std::string reply = client.read();
  EXPECT_TRUE(reply.ends_with("\r\nUSING b\r\n")) << reply;
}

TEST_F(SessionCheckpoint, IsWorkSoItsClientIsNotIdle) {
  Client client(server);
  Client other(server);
  EXPECT_FALSE(client.session().is_at_work());
  client.say("checkpoint\r\n");
  EXPECT_TRUE(client.session().is_at_work());
  server.finish_checkpoint();
  EXPECT_TRUE(client.session().is_at_work());
  EXPECT_FALSE(other.session().is_at_work());
}

TEST_F(SessionCheckpoint, AFailedOneIsAnInternalErrorAndTheNextOneWorks) {
  Client client(server);
  // A checkpoint has a copy of this file.
  fs::path options;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory / "data with a space")) {
    if (entry.path().filename().string().starts_with("OPTIONS-")) options = entry.path();
  }
  fs::rename(options, directory / "elsewhere");
  client.say("checkpoint\r\nlist-tube-used\r\n");
  server.finish_checkpoint();
  EXPECT_EQ(client.read(), "INTERNAL_ERROR\r\nUSING default\r\n");
  fs::rename(directory / "elsewhere", options);
  client.say("checkpoint\r\n");
  server.finish_checkpoint();
  path_in(client.read());
}

TEST(SessionCheckpointInMemory, IsRefused) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say("checkpoint\r\ncheckpoint x\r\ncheckpoints\r\n"),
            "IN_MEMORY\r\nBAD_FORMAT\r\nBAD_FORMAT\r\n");
}

}  // namespace
}  // namespace carillon::server::beanstalk
