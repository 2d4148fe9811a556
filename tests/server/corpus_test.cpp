// The corpora of the fuzzers of both protocols, and random changes of them: what the fuzzers search
// for, in each run of the tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/http_target.h"
#include "fuzz/session_target.h"
#include "queue/seed.h"

namespace carillon::server {
namespace {

std::vector<std::string> corpus(const std::string& name) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(CARILLON_FUZZ_CORPUS "/" + name))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> inputs;
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

// Changes inputs as libFuzzer does, without its knowledge of the code.
class Mutator {
 public:
  Mutator(std::vector<std::string> inputs, std::uint64_t seed)
      : inputs_(std::move(inputs)), random_(seed) {}

  std::string next() {
    std::string input = any();
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(input);
    return input;
  }

 private:
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }
  const std::string& any() { return inputs_[below(inputs_.size())]; }

  void change(std::string& input) {
    const std::size_t at = below(input.size() + 1);
    const std::size_t size = below(std::min<std::size_t>(input.size() - at, 64) + 1);
    switch (below(5)) {
      case 0:
        if (at < input.size()) input[at] = static_cast<char>(below(256));
        break;
      case 1:
        input.erase(at, size);
        break;
      case 2:
        input.insert(at, input.substr(at, size));
        break;
      case 3: {
        const std::string& other = any();
        const std::size_t from = below(other.size() + 1);
        input.insert(at, other.substr(from, below(200)));
        break;
      }
      default:
        input.insert(at, words_[below(words_.size())]);
    }
  }

  const std::vector<std::string> words_ = {"\r\n",
                                           "\r\n\r\n",
                                           " ",
                                           "%",
                                           "%00",
                                           "\"",
                                           "\\u0000",
                                           "\\ud800",
                                           "null",
                                           "-1",
                                           "1e999",
                                           "\xff",
                                           "{",
                                           "[",
                                           "}",
                                           "]",
                                           "0\r\n",
                                           "ffffffff",
                                           ":",
                                           "99999999999",
                                           "chunked",
                                           "Content-Length: 3\r\n",
                                           "Transfer-Encoding: chunked\r\n"};
  std::vector<std::string> inputs_;
  std::mt19937_64 random_;
};

template <class Check>
void run(const std::string& name, Check check) {
  const std::vector<std::string> inputs = corpus(name);
  ASSERT_GE(inputs.size(), 6u);
  for (const std::string& input : inputs) EXPECT_EQ(check(input), "") << input;
  const std::uint64_t seed = queue::seed_or(20);
  Mutator mutator(inputs, seed);
  // A second on a machine that does nothing else, and no less than some on one that does.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (int n = 0; n < 200 || (n < 20'000 && std::chrono::steady_clock::now() < until); ++n) {
    const std::string input = mutator.next();
    ASSERT_EQ(check(input), "") << "CARILLON_SEED=" << seed << ", input " << n << ":\n" << input;
  }
}

TEST(Corpus, CommandsAreAnsweredHoweverTheyAreCut) {
  run("session", beanstalk::wrong_with_session);
}

TEST(Corpus, RequestsAreAnsweredHoweverTheyAreCut) {
  run("http", http::wrong_with_http);
}

TEST(Corpus, JsonIsAnsweredWithJson) {
  run("json", http::wrong_with_json);
}

}  // namespace
}  // namespace carillon::server
