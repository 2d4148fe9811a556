// Reads the file of tokens and finds tokens in it (tokens.h).
#include "server/api/tokens.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include "base/file_descriptor.h"
#include "base/start_error.h"
#include "server/api/names.h"

namespace carillon::server {
namespace {

constexpr std::string_view kHashPrefix = "sha256:";
constexpr std::string_view kLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::array kScopes = {Scope::kRead, Scope::kPut, Scope::kWork, Scope::kAdmin};

TokenHash hash_of(std::string_view text) {
  TokenHash hash;
  unsigned int size = 0;
  if (EVP_Digest(text.data(), text.size(), hash.data(), &size, EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("OpenSSL cannot compute a SHA-256");
  return hash;
}

// Calls `take` with each part of the text between commas.
template <class Take>
void split(std::string_view text, Take take) {
  while (true) {
    const std::size_t comma = text.find(',');
    take(text.substr(0, comma));
    if (comma == std::string_view::npos) return;
    text.remove_prefix(comma + 1);
  }
}

// Takes the next word from the front; returns an empty one at the end of the line.
std::string_view take_word(std::string_view& line) {
  constexpr std::string_view kSpaces = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(kSpaces), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kSpaces));
  line.remove_prefix(word.size());
  return word;
}

TokenHash parse_hash(std::string_view text) {
  const auto value = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  TokenHash hash;
  const bool has_prefix = text.starts_with(kHashPrefix);
  if (has_prefix) text.remove_prefix(kHashPrefix.size());
  bool good = has_prefix && text.size() == 2 * hash.size();
  for (std::size_t i = 0; good && i < hash.size(); ++i) {
    const int high = value(text[2 * i]);
    const int low = value(text[2 * i + 1]);
    good = high >= 0 && low >= 0;
    hash[i] = static_cast<unsigned char>((high << 4) | low);
  }
  // The word may be a token that was written here by mistake: the message does not repeat it.
  if (!good)
    throw std::invalid_argument("the second word must be sha256: and 64 digits of 0-9 a-f");
  return hash;
}

Token parse_line(std::string_view line) {
  Token token;
  token.name = parse_token_name(take_word(line));
  token.hash = parse_hash(take_word(line));
  token.scopes = parse_scopes(take_word(line));
  const std::string_view tubes = take_word(line);
  if (!tubes.empty() && tubes != "*") token.tubes = parse_tube_patterns(tubes);
  if (const std::string_view more = take_word(line); !more.empty())
    throw std::invalid_argument(fmt::format("\"{}\": a line has at most four words", more));
  return token;
}

// Returns true if the text matches the pattern. Goes back to the last star at most, so it takes at
// most |pattern| * |text| steps.
bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::optional<std::size_t> star;
  std::size_t after_star = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star) {
      p = *star + 1;
      t = ++after_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

[[noreturn]] void fail(const std::string& path, std::string_view why) {
  throw base::StartError(fmt::format("the tokens in {}: {}", path, why));
}

// Checks the open file, not its name: another file may get the name meanwhile.
std::string read_file(const std::string& path) {
  const base::FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat file {};
  if (!fd || ::fstat(fd.get(), &file) != 0) fail(path, std::strerror(errno));
  if (!S_ISREG(file.st_mode)) fail(path, "it is not a file");
  if ((file.st_mode & (S_IRWXO | S_IWGRP)) != 0) {
    fail(path, fmt::format("its mode is {:04o}: every user may read or change it; use chmod 600, "
                           "or 640 for a group of its own",
                           file.st_mode & 07777));
  }
  std::string text(Tokens::kLongestFile + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + size, text.size() - size);
    if (got == 0) break;
    if (got < 0 && errno != EINTR) fail(path, std::strerror(errno));
    size += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  if (size > Tokens::kLongestFile)
    fail(path, fmt::format("it has more than {} bytes", Tokens::kLongestFile));
  text.resize(size);
  return text;
}

std::vector<std::shared_ptr<const Token>> read_tokens(const std::string& path) {
  const std::string text = read_file(path);
  std::vector<std::shared_ptr<const Token>> tokens;
  std::set<std::string> names;
  std::map<TokenHash, std::string_view> hashes;
  std::string_view rest = text;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    std::string_view words = line;
    const std::string_view first = take_word(words);
    if (first.empty() || first.starts_with('#')) continue;
    try {
      tokens.push_back(std::make_shared<Token>(parse_line(line)));
      if (!names.insert(tokens.back()->name).second)
        throw std::invalid_argument(fmt::format("there are two tokens \"{}\"", first));
      const auto [same, is_new] = hashes.emplace(tokens.back()->hash, first);
      if (!is_new) {
        throw std::invalid_argument(fmt::format(
            "\"{}\" is the same token as \"{}\": each needs one of its own", first, same->second));
      }
    } catch (const std::invalid_argument& error) {
      fail(path, fmt::format("line {}: {}", number, error.what()));
    }
  }
  if (tokens.size() > Tokens::kMost)
    fail(path, fmt::format("there are {}; at most {} are allowed", tokens.size(), Tokens::kMost));
  if (tokens.empty()) fail(path, "there are no tokens; `carillon token new` makes one");
  return tokens;
}

}  // namespace

std::string_view name_of(Scope scope) {
  constexpr std::array<std::string_view, kScopes.size()> kNames = {"read", "put", "work", "admin"};
  return kNames[static_cast<std::size_t>(scope)];
}

std::vector<Scope> parse_scopes(std::string_view text) {
  std::vector<Scope> scopes;
  split(text, [&](std::string_view name) {
    const auto* const found =
        std::find_if(kScopes.begin(), kScopes.end(), [&](Scope s) { return name_of(s) == name; });
    if (found == kScopes.end()) {
      throw std::invalid_argument(
          fmt::format("\"{}\": a scope is one of read, put, work, admin", name));
    }
    scopes.push_back(*found);
  });
  return scopes;
}

std::vector<std::string> parse_tube_patterns(std::string_view text) {
  std::vector<std::string> patterns;
  split(text, [&](std::string_view pattern) {
    // Checks the letters of the pattern as those of a name, with x for each star.
    std::string as_name(pattern);
    std::replace(as_name.begin(), as_name.end(), '*', 'x');
    if (!is_tube_name(as_name)) {
      throw std::invalid_argument(
          fmt::format("\"{}\": not the name of a tube, or one with * in it, as mail.*", pattern));
    }
    patterns.emplace_back(pattern);
  });
  return patterns;
}

std::string parse_token_name(std::string_view text) {
  constexpr std::size_t kLongest = 64;
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char c) {
    return c == '.' || kLetters.find(c) != std::string_view::npos;
  });
  if (is_plain && !text.empty() && text.size() <= kLongest) return std::string(text);
  throw std::invalid_argument(fmt::format(
      "\"{}\": the name of a token has 1 to {} letters, digits and any of -_.", text, kLongest));
}

bool Token::has(Scope scope) const {
  return std::any_of(scopes.begin(), scopes.end(),
                     [&](Scope has) { return has == scope || has == Scope::kAdmin; });
}

bool Token::may_use(std::string_view tube) const {
  return tubes.empty() || std::any_of(tubes.begin(), tubes.end(), [&](const std::string& pattern) {
           return matches(pattern, tube);
         });
}

std::string make_token() {
  std::array<unsigned char, 33> bytes{};  // 32 random bytes; the last one completes a group of 3
  if (RAND_bytes(bytes.data(), 32) != 1)
    throw std::runtime_error("the system gives no random bytes");
  std::string text = "carillon_";
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const unsigned group = static_cast<unsigned>(bytes[i] << 16 | bytes[i + 1] << 8 | bytes[i + 2]);
    for (const unsigned shift : {18u, 12u, 6u, 0u}) text += kLetters[group >> shift & 63];
  }
  text.pop_back();  // this letter comes from the byte that completes the group
  return text;
}

std::string sha256_digits(std::string_view text) {
  std::string digits;
  for (const unsigned char byte : hash_of(text)) digits += fmt::format("{:02x}", byte);
  return digits;
}

std::string token_line(const Token& token, std::string_view text) {
  std::string line = fmt::format("{} {}{}", token.name, kHashPrefix, sha256_digits(text));
  for (std::size_t i = 0; i < token.scopes.size(); ++i)
    line += fmt::format("{}{}", i == 0 ? ' ' : ',', name_of(token.scopes[i]));
  for (std::size_t i = 0; i < token.tubes.size(); ++i)
    line += fmt::format("{}{}", i == 0 ? ' ' : ',', token.tubes[i]);
  return line;
}

Tokens::Tokens(std::string path) : path_(std::move(path)) {
  reload();
}

void Tokens::reload() {
  tokens_ = read_tokens(path_);
}

std::shared_ptr<const Token> Tokens::find(std::string_view text) const {
  return find(hash_of(text));
}

std::shared_ptr<const Token> Tokens::find(const TokenHash& hash) const {
  std::shared_ptr<const Token> found;
  for (const auto& token : tokens_)
    if (CRYPTO_memcmp(token->hash.data(), hash.data(), hash.size()) == 0) found = token;
  return found;
}

}  // namespace carillon::server
