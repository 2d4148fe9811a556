// POST /v1/checkpoint: one client at a time has a checkpoint, until its connection ends.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>

#include "carillon/queue/disk_store.h"
#include "http_fixture.h"
#include "queue/temporary_directory.h"

namespace carillon::server::http {
namespace {

namespace fs = std::filesystem;

struct StoreOnDisk {
  queue::TemporaryDirectory directory;
  queue::DiskStore store{directory / "data with a space", {}};
};

class HttpCheckpoint : public StoreOnDisk, public HttpSession {
 protected:
  HttpCheckpoint() : HttpSession(&store) {}

  // Asks for one, as `from`. Returns the status, or 0 while the server makes it.
  int begin(Session& from) {
    speaker = &from;
    return ask("POST", "/v1/checkpoint").status;
  }
  Answer finish() {
    const CheckpointResult result = server.finish_checkpoint();
    EXPECT_EQ(result.client, speaker->client());
    speaker->checkpoint_made(result);
    feed("");
    return next();
  }
  // Returns the directory that the answer names.
  static fs::path path_in(const Answer& answer) {
    EXPECT_EQ(answer.status, 200) << answer.body;
    const fs::path path(std::string(answer.value().at("path").as_string()));
    EXPECT_TRUE(fs::exists(path / "CURRENT")) << path;
    return path;
  }
  static void wait_until_gone(const fs::path& path) {
    for (int n = 0; n < 20'000 && fs::exists(path); ++n)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_FALSE(fs::exists(path));
  }

  Session other{server.service, names};
};

TEST_F(HttpCheckpoint, IsThereUntilItsConnectionEnds) {
  EXPECT_EQ(begin(session), 0);
  EXPECT_EQ(session.wants(), Protocol::Wants::kDelivery);
  const fs::path path = path_in(finish());
  EXPECT_EQ(ask("GET", "/v1/stats").status, 200);
  EXPECT_TRUE(fs::exists(path));
  session.close();
  wait_until_gone(path);
}

TEST_F(HttpCheckpoint, IsOneAtATime) {
  EXPECT_EQ(begin(session), 0);
  EXPECT_EQ(begin(other), 409);
  speaker = &session;
  path_in(finish());
  EXPECT_EQ(begin(other), 409);
  EXPECT_EQ(begin(session), 409);
  session.close();
  EXPECT_EQ(begin(other), 0);
  path_in(finish());
}

TEST_F(HttpCheckpoint, ThatNobodyWaitsForIsNotMade) {
  EXPECT_EQ(begin(session), 0);
  session.close();
  EXPECT_FALSE(server.service.checkpoint().pending());
  EXPECT_EQ(begin(other), 0);
  path_in(finish());
}

TEST_F(HttpCheckpoint, LetsLaterRequestsOfItsClientWait) {
  EXPECT_EQ(begin(session), 0);
  EXPECT_EQ(ask("GET", "/v1/stats").status, 0);
  const CheckpointResult result = server.finish_checkpoint();
  session.checkpoint_made(result);
  feed("");
  std::string bytes = read();
  path_in(take_answer(bytes));
  EXPECT_EQ(take_answer(bytes).status, 200) << "the statistics";
}

TEST_F(HttpCheckpoint, IsWorkSoItsClientIsNotIdle) {
  EXPECT_FALSE(session.is_at_work());
  begin(session);
  EXPECT_TRUE(session.is_at_work());
  finish();
  EXPECT_TRUE(session.is_at_work());
  EXPECT_FALSE(other.is_at_work());
}

TEST_F(HttpCheckpoint, ThatFailsSaysWhyAndTheNextOneWorks) {
  // A checkpoint has a copy of this file.
  fs::path options;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory / "data with a space")) {
    if (entry.path().filename().string().starts_with("OPTIONS-")) options = entry.path();
  }
  fs::rename(options, directory / "elsewhere");
  begin(session);
  const Answer failed = finish();
  EXPECT_EQ(failed.status, 500) << failed.body;
  EXPECT_NE(failed.detail().find("No such file"), std::string::npos) << failed.body;
  fs::rename(directory / "elsewhere", options);
  EXPECT_EQ(begin(session), 0);
  path_in(finish());
}

TEST_F(HttpSession, WithJobsInMemoryAloneThereIsNoCheckpoint) {
  const Answer refused = ask("POST", "/v1/checkpoint");
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(refused.detail(),
            "the server keeps its jobs in memory alone: there are no files to copy");
}

}  // namespace
}  // namespace carillon::server::http
