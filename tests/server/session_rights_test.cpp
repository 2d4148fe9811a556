// The verb auth, and what a token allows over the beanstalk protocol.
#include <gtest/gtest.h>
#include <string>

#include "test_server.h"
#include "token_file.h"

namespace carillon::server::beanstalk {
namespace {

// Each token's text is its name.
class SessionRights : public testing::Test {
 protected:
  std::string show(const std::string& token) { return client.say("auth " + token + "\r\n"); }

  const TokenFile file{{{"reader", "read"},
                        {"producer", "put"},
                        {"worker", "work"},
                        {"boss", "admin"},
                        {"mailer", "read,put,work,admin", "mail,mail.*"}}};
  Tokens tokens{file.path};
  TestServer server{{.tokens = &tokens}};
  Client client{server};
};

TEST_F(SessionRights, WithoutATokenOnlyAuthAndQuit) {
  EXPECT_EQ(client.say("put 0 0 60 5\r\nhello\r\nuse mail\r\n"),
            "FORBIDDEN a token is needed\r\nFORBIDDEN a token is needed\r\n");
  EXPECT_EQ(client.say("delete 1\r\nstats\r\n"),
            "FORBIDDEN a token is needed\r\nFORBIDDEN a token is needed\r\n");
  EXPECT_EQ(show("producer"), "AUTHENTICATED\r\n");
  EXPECT_EQ(client.say("put 0 0 60 5\r\nhello\r\n"), "INSERTED 1\r\n");
}

TEST_F(SessionRights, AWrongTokenEndsTheConnection) {
  EXPECT_EQ(client.say("auth produce\r\nput 0 0 60 1\r\nx\r\n"), "NOT_AUTHENTICATED\r\n");
  EXPECT_EQ(client.session().wants(), Protocol::Wants::kNothing);
  EXPECT_EQ(client.session().take_rejection(), RejectReason::kWrongToken);
  EXPECT_EQ(server.service.counters().wrong_tokens, 1u);
}

TEST_F(SessionRights, EachVerbNeedsItsScope) {
  show("producer");
  EXPECT_EQ(client.say("reserve\r\n"), "FORBIDDEN the token \"producer\" lacks the scope work\r\n");
  EXPECT_EQ(client.say("peek-ready\r\n"),
            "FORBIDDEN the token \"producer\" lacks the scope read\r\n");
  EXPECT_EQ(client.say("kick 1\r\n"), "FORBIDDEN the token \"producer\" lacks the scope admin\r\n");
  EXPECT_EQ(client.say("put 0 0 60 1\r\nx\r\n"), "INSERTED 1\r\n");
  show("worker");
  EXPECT_EQ(client.say("put 0 0 60 1\r\nx\r\n"),
            "FORBIDDEN the token \"worker\" lacks the scope put\r\n");
  EXPECT_EQ(client.say("reserve\r\ndelete 1\r\n"), "RESERVED 1 1\r\nx\r\nDELETED\r\n");
  show("boss");
  EXPECT_EQ(client.say("put 0 0 60 1\r\nx\r\nkick 1\r\n"), "INSERTED 2\r\nKICKED 0\r\n");
}

TEST_F(SessionRights, ATokenOfSomeTubesIsGoodForTheseAlone) {
  Client other(server);
  other.say("auth boss\r\nput 0 0 60 1\r\nx\r\n");
  show("mailer");
  const std::string refused = "FORBIDDEN the token \"mailer\" is not for the tube default\r\n";
  EXPECT_EQ(client.say("put 0 0 60 1\r\nx\r\n"), refused);
  EXPECT_EQ(client.say("use default\r\n"), refused);
  EXPECT_EQ(client.say("reserve-with-timeout 0\r\n"), refused);
  EXPECT_EQ(client.say("kick 1\r\n"), refused);
  EXPECT_EQ(client.say("stats-tube default\r\n"), refused);
  EXPECT_EQ(client.say("use mail\r\nput 0 0 60 1\r\ny\r\n"), "USING mail\r\nINSERTED 2\r\n");
  EXPECT_EQ(client.say("watch mail\r\nignore default\r\nreserve\r\n"),
            "WATCHING 2\r\nWATCHING 1\r\nRESERVED 2 1\r\ny\r\n");
  EXPECT_EQ(client.say("watch mails\r\n"),
            "FORBIDDEN the token \"mailer\" is not for the tube mails\r\n");
  EXPECT_EQ(client.say("list-tubes\r\n"), "OK 11\r\n---\n- mail\n\r\n");
}

TEST_F(SessionRights, AJobsTubeCountsWhenItsIdNamesIt) {
  Client other(server);
  other.say("auth boss\r\nput 0 0 60 1\r\nx\r\nuse mail\r\nput 0 0 60 1\r\ny\r\n");
  show("mailer");
  // The text does not name the tube, which the client may not know.
  const std::string refused = "FORBIDDEN the token \"mailer\" is not for the tube of job 1\r\n";
  for (const char* const command :
       {"peek 1", "delete 1", "reserve-job 1", "kick-job 1", "stats-job 1", "cancel-job 1",
        "touch 1", "bury 1 0", "release 1 0 0"})
    EXPECT_EQ(client.say(std::string(command) + "\r\n"), refused) << command;
  EXPECT_EQ(client.say("patch-job 1 body=1\r\nz\r\n"), refused);
  EXPECT_EQ(client.say("fail-job 1 1\r\nz\r\n"), refused);
  EXPECT_EQ(client.say("delete-jobs 3\r\n1 2\r\n"), "JOBS 2\r\nFORBIDDEN 1\r\nDELETED 2\r\n");
  EXPECT_EQ(client.say("peek 7\r\n"), "NOT_FOUND\r\n");
}

TEST_F(SessionRights, EachTokenHasBatchTokensOfItsOwn) {
  Client other(server);
  const std::string batch = "put-jobs 6 once=1\r\n1\r\na\r\n\r\n";
  EXPECT_EQ(other.say("auth boss\r\nuse mail\r\n" + batch),
            "AUTHENTICATED\r\nUSING mail\r\nJOBS 1\r\nINSERTED 1\r\n");
  EXPECT_EQ(client.say("auth mailer\r\nuse mail\r\n" + batch),
            "AUTHENTICATED\r\nUSING mail\r\nJOBS 1\r\nINSERTED 2\r\n");
  EXPECT_EQ(client.say(batch), "ALREADY 1\r\nINSERTED 2\r\n");
  EXPECT_EQ(other.say(batch), "ALREADY 1\r\nINSERTED 1\r\n");
}

TEST_F(SessionRights, AFailingStoreEndsNothingAndRunsNoBodyAsACommand) {
  show("mailer");
  EXPECT_EQ(client.say("use mail\r\nput 0 3600 60 1\r\ny\r\n"), "USING mail\r\nINSERTED 1\r\n");
  server.store.records_fail = true;
  EXPECT_EQ(client.say("delete-jobs 1\r\n1\r\n"), "JOBS 1\r\nINTERNAL_ERROR 1\r\n");
  EXPECT_EQ(client.say("fail-job 1 14\r\nlist-tube-used\r\nuse mail\r\n"),
            "INTERNAL_ERROR\r\nUSING mail\r\n");
}

TEST_F(SessionRights, AReloadChecksTheTokenOnceMore) {
  show("worker");
  EXPECT_EQ(client.say("reserve\r\n"), "");
  EXPECT_TRUE(client.session().may_go_on());
  file.write({{"boss", "admin"}});
  tokens.reload();
  EXPECT_FALSE(client.session().may_go_on());
}

TEST_F(SessionRights, ATokenThatMayDoLessNowDoesNotGoOn) {
  file.write({{"worker", "work,put", "mail"}});
  tokens.reload();
  show("worker");
  EXPECT_TRUE(client.session().may_go_on());
  file.write({{"worker", "work,put", "other"}});
  tokens.reload();
  EXPECT_FALSE(client.session().may_go_on());
}

TEST(SessionWithoutTokens, TakesAnyTokenAndDoesNotAskForOne) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say("auth any\r\nput 0 0 60 1\r\nx\r\n"), "AUTHENTICATED\r\nINSERTED 1\r\n");
}

}  // namespace
}  // namespace carillon::server::beanstalk
