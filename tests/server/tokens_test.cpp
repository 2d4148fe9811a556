// Tokens: their file, their text, and what a caller who shows one may do.
#include "server/api/tokens.h"
#include "server/api/caller.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "base/start_error.h"

namespace carillon::server {
namespace {

class TokensTest : public testing::Test {
 protected:
  TokensTest() { write(""); }
  ~TokensTest() override { ::unlink(path.c_str()); }

  void write(const std::string& text, mode_t mode = 0600) {
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
  }
  // Returns why the file is refused.
  std::string why() {
    try {
      Tokens tokens(path);
      return "";
    } catch (const base::StartError& error) {
      const std::string text = error.what();
      const std::string start = "the tokens in " + path + ": ";
      return text.starts_with(start) ? text.substr(start.size()) : text;
    }
  }
  static std::string line(const std::string& name, const std::string& text,
                          const std::string& scopes, const std::string& tubes = "") {
    Token token{.name = name, .scopes = parse_scopes(scopes), .tubes = {}};
    if (!tubes.empty()) token.tubes = parse_tube_patterns(tubes);
    return token_line(token, text) + "\n";
  }

  std::string path = testing::TempDir() + "tokens." + std::to_string(::getpid());
};

TEST_F(TokensTest, ATokenHas32RandomBytesInBase64url) {
  const std::string one = make_token();
  EXPECT_EQ(one.size(), 9u + 43u);
  EXPECT_TRUE(one.starts_with("carillon_"));
  EXPECT_EQ(
      one.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", 9),
      std::string::npos);
  EXPECT_NE(one, make_token());
}

TEST_F(TokensTest, TheLineHasTheSha256OfTheText) {
  // printf abc | sha256sum
  EXPECT_EQ(line("ci", "abc", "put,work", "mail.*,images"),
            "ci sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad put,work "
            "mail.*,images\n");
}

TEST_F(TokensTest, FindsATokenByItsText) {
  write("# the tokens\n\n" + line("ci", "abc", "put") + line("ops", "xyz", "admin"));
  const Tokens tokens(path);
  EXPECT_EQ(tokens.size(), 2u);
  EXPECT_EQ(tokens.find("abc")->name, "ci");
  EXPECT_EQ(tokens.find("xyz")->name, "ops");
  EXPECT_EQ(tokens.find("ab"), nullptr);
  EXPECT_EQ(tokens.find("abcd"), nullptr);
  EXPECT_EQ(tokens.find(""), nullptr);
}

TEST_F(TokensTest, RefusesAFileThatOthersMayReadOrChange) {
  for (const mode_t mode : {0604u, 0644u, 0620u, 0666u, 0601u}) {
    write(line("ci", "abc", "put"), mode);
    EXPECT_NE(why().find("every user may read or change it"), std::string::npos) << mode;
  }
  for (const mode_t mode : {0600u, 0400u, 0640u, 0440u}) {
    write(line("ci", "abc", "put"), mode);
    EXPECT_EQ(why(), "") << mode;
  }
}

TEST_F(TokensTest, SaysWhichLineIsWrong) {
  write("# one\nci put\n");
  EXPECT_EQ(why(), "line 2: the second word must be sha256: and 64 digits of 0-9 a-f");
  const std::string good = "ci sha256:" + std::string(64, '0');
  write(good + " fly\n");
  EXPECT_EQ(why(), "line 1: \"fly\": a scope is one of read, put, work, admin");
  write(good + "\n");
  EXPECT_EQ(why(), "line 1: \"\": a scope is one of read, put, work, admin");
  write(good + " put a,-b\n");
  EXPECT_EQ(why(), "line 1: \"-b\": not the name of a tube, or one with * in it, as mail.*");
  write(good + " put a b\n");
  EXPECT_EQ(why(), "line 1: \"b\": a line has at most four words");
  write(good + " put\n" + good + " put\n");
  EXPECT_EQ(why(), "line 2: there are two tokens \"ci\"");
  write(good + " put\nops" + good.substr(2) + " admin\n");
  EXPECT_EQ(why(), "line 2: \"ops\" is the same token as \"ci\": each needs one of its own");
  write("\n");
  EXPECT_EQ(why(), "there are no tokens; `carillon token new` makes one");
}

TEST_F(TokensTest, AReloadOfAWrongFileLeavesTheTokensAsTheyWere) {
  write(line("ci", "abc", "put"));
  Tokens tokens(path);
  write("ci\n");
  EXPECT_THROW(tokens.reload(), base::StartError);
  EXPECT_NE(tokens.find("abc"), nullptr);
  write(line("ci", "xyz", "put"));
  tokens.reload();
  EXPECT_EQ(tokens.find("abc"), nullptr);
  EXPECT_NE(tokens.find("xyz"), nullptr);
}

TEST_F(TokensTest, PatternsOfTubes) {
  const auto may = [](const std::string& patterns, std::string_view tube) {
    Token token;
    token.tubes = parse_tube_patterns(patterns);
    return token.may_use(tube);
  };
  EXPECT_TRUE(may("mail", "mail"));
  EXPECT_FALSE(may("mail", "mail2"));
  EXPECT_FALSE(may("mail", "mai"));
  EXPECT_TRUE(may("mail.*", "mail."));
  EXPECT_TRUE(may("mail.*", "mail.a.b"));
  EXPECT_FALSE(may("mail.*", "mail"));
  EXPECT_TRUE(may("*.high", "a.b.high"));
  EXPECT_FALSE(may("*.high", "a.high.b"));
  EXPECT_TRUE(may("a*b*c", "aXbYbc"));
  EXPECT_FALSE(may("a*b*c", "aXcYb"));
  EXPECT_TRUE(may("x,y*", "yz"));
  EXPECT_TRUE(Token{}.may_use("any"));
}

TEST_F(TokensTest, AdminMayDoWhatTheOthersMay) {
  write(line("p", "put", "put") + line("a", "admin", "admin"));
  const Tokens tokens(path);
  Caller caller(&tokens);
  EXPECT_EQ(caller.lacks({Needs::kNothing, Reach::kNoTube}), "");
  EXPECT_EQ(caller.lacks({Needs::kToken, Reach::kNoTube}), "a token is needed");
  ASSERT_TRUE(caller.show("put"));
  EXPECT_EQ(caller.lacks({Needs::kPut, Reach::kTube}), "");
  EXPECT_EQ(caller.lacks({Needs::kWork, Reach::kTube}), "the token \"p\" lacks the scope work");
  ASSERT_TRUE(caller.show("admin"));
  for (const Needs needs : {Needs::kRead, Needs::kPut, Needs::kWork, Needs::kAdmin})
    EXPECT_EQ(caller.lacks({needs, Reach::kAllTubes}), "");
  EXPECT_FALSE(caller.show("admi"));
  EXPECT_FALSE(caller.is_known());
}

}  // namespace
}  // namespace carillon::server
