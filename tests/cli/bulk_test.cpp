// What the commands that change many jobs say when they cannot go on.

#include "cli/bulk.h"

#include <gtest/gtest.h>

#include "cli/scripted_server.h"

namespace carillon::cli {
namespace {

std::string failure_after(std::string_view replies, bool dry_run = false) {
  ScriptedServer server;
  server.answer(replies);
  server.end_answers();
  Client client(server.stream());
  return failure_of([&] {
    change_many(client, {.verb = "cancel-jobs",
                         .done = "deleted",
                         .tube = "mail",
                         .all = true,
                         .dry_run = dry_run});
  });
}

TEST(ChangeMany, SaysHowFarItCameWhenTheConnectionIsLost) {
  EXPECT_EQ(failure_after("CHANGED 1000 0 d1-7\r\nCHANGED 500 2 d2-9\r\n"),
            "lost the connection to the server: closed by the server; at least 1500 jobs "
            "deleted so far, run it again to go on");
  EXPECT_EQ(failure_after("CHANGED 1 0 d1-7\r\n"),
            "lost the connection to the server: closed by the server; at least 1 job deleted "
            "so far, run it again to go on");
}

TEST(ChangeMany, SaysHowFarItCameWhenTheDiskFails) {
  EXPECT_EQ(failure_after("CHANGED 1000 0 d1-7\r\nINTERNAL_ERROR\r\n"),
            "the server had an internal error; its log says which; at least 1000 jobs deleted so "
            "far, run it again to go on");
}

TEST(ChangeMany, SaysNothingOfThatAfterADryRun) {
  EXPECT_EQ(failure_after("WOULD_CHANGE 1000 0 d1-7\r\n", true),
            "lost the connection to the server: closed by the server");
}

}  // namespace
}  // namespace carillon::cli
