// Requests: read by Boost.Beast, their paths by Boost.URL (request_reader.h).
#include "server/http/request_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <iterator>
#include <stdexcept>

#include "carillon/require.h"
#include "server/api/problem.h"
#include "server/text/address.h"

namespace carillon::server::http {

namespace beast = boost::beast;

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

constexpr unsigned kVersion = 11;  // HTTP/1.1

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return small;
}

// A header that may come only once: of two, a proxy in front may see another one than the server.
bool is_singular(std::string_view name) {
  constexpr std::array<std::string_view, 5> kSingular = {"host", "authorization", "content-type",
                                                         "idempotency-key", "origin"};
  return name.starts_with("carillon-") ||
         std::find(kSingular.begin(), kSingular.end(), name) != kSingular.end();
}

// A line that begins with white space continues the line before it (obs-fold). The parser joins
// them; a proxy in front may take the second line for a header, or drop it.
Problem folded() {
  return Problem(
      kBadRequest,
      "a line of the header begins with a space or a tab; write each header in one line");
}

// Returns true if a line before the empty line begins with white space. `lines` begins at the start
// of a line; its last line may be incomplete.
bool has_folded_line(std::string_view lines) {
  while (!lines.empty() && lines.front() != '\r') {
    if (lines.front() == ' ' || lines.front() == '\t') return true;
    lines.remove_prefix(std::min(lines.find('\n'), lines.size() - 1) + 1);
  }
  return false;
}

// `end` has the header of the last chunk and the trailers.
bool has_folded_trailer(std::string_view end) {
  return end.find("\n ") != std::string_view::npos || end.find("\n\t") != std::string_view::npos;
}

Problem refusal(const beast::error_code& error, std::uint64_t most) {
  namespace http = beast::http;
  if (error == http::error::header_limit)
    return Problem(kLongHeader, fmt::format("the request line and the headers may have {} bytes",
                                            RequestReader::kLongestHeader));
  if (error == http::error::body_limit)
    return Problem(kTooLarge, fmt::format("the body may have {} bytes", most));
  return Problem(kBadRequest, "this is no HTTP/1.1 request: " + error.message());
}

// Returns the parts of a whole address, which a proxy sends as the target (RFC 9112, 3.2.2).
Url parse_address(std::string_view target) {
  try {
    const auto url = split_url(target);
    if (url && (beast::iequals(url->scheme, "http") || beast::iequals(url->scheme, "https"))) {
      split_authority(url->authority);
      return *url;
    }
  } catch (const std::invalid_argument& error) {
    throw Problem(kBadRequest, fmt::format("\"{}\": {}", target, error.what()));
  }
  throw Problem(kBadRequest,
                fmt::format("\"{}\": write a path, or http://HOST and a path", target));
}

// Returns the parts of a path with its query. A path that begins with // is still a path.
boost::urls::url_view parse_path(std::string_view path) {
  const auto url = boost::urls::parse_origin_form(path);
  if (!url) throw Problem(kBadRequest, fmt::format("\"{}\": no path", path));
  return *url;
}

// Headers of the same name form one list (RFC 9110, 5.3).
void add_header(Pairs& headers, const beast::http::fields::value_type& field) {
  std::string name = in_small_letters(field.name_string());
  const auto same = std::find_if(headers.begin(), headers.end(),
                                 [&](const auto& header) { return header.first == name; });
  if (same == headers.end()) {
    headers.emplace_back(std::move(name), std::string(field.value()));
  } else {
    same->second.append(", ").append(field.value());
  }
}

// A host in the target replaces the header (RFC 9112, 3.2.2).
void set_host(Pairs& headers, std::string_view host) {
  const auto is_host = [](const auto& header) { return header.first == "host"; };
  const auto found = std::find_if(headers.begin(), headers.end(), is_host);
  if (found != headers.end()) {
    found->second = host;
  } else {
    headers.emplace_back("host", host);
  }
}

}  // namespace

std::string decoded(std::string_view part) {
  const auto valid = boost::urls::make_pct_string_view(part);
  if (!valid) throw Problem(kBadRequest, fmt::format("\"{}\": a % needs two digits", part));
  std::string bytes;
  valid->decode({}, boost::urls::string_token::assign_to(bytes));
  return bytes;
}

struct RequestReader::Parser : beast::http::request_parser<beast::http::string_body> {};

RequestReader::RequestReader(std::uint64_t most) : most_(most) {
  begin();
}

RequestReader::~RequestReader() = default;

void RequestReader::begin() {
  parser_ = std::make_unique<Parser>();
  parser_->header_limit(kLongestHeader);
  parser_->body_limit(most_);
  used_ = 0;
  has_header_ = false;
  told_to_continue_ = false;
}

// The parser is not eager: it stops behind the header, behind the header of a chunk, and behind a
// chunk. So at its first stop it has only the headers, no trailers. Bytes that it cannot use yet
// are one line or one header, whose length this function limits: the parser's own limit depends on
// how the bytes are cut, and does not cover the header of a chunk.
std::size_t RequestReader::read(std::string_view bytes) {
  const auto too_long = make_error_code(beast::http::error::header_limit);
  std::size_t used = 0;
  for (std::size_t taken = 1; taken > 0 && used < bytes.size() && !is_done();) {
    const std::string_view part = bytes.substr(used, kLongestHeader);
    // The parser takes whole lines of the header. A folded line is found before that, so a request
    // is refused for the same reason however its bytes are cut.
    if (!parser_->is_header_done() && has_folded_line(part)) throw folded();
    beast::error_code error;
    taken = parser_->put(boost::asio::buffer(part.data(), part.size()), error);
    used += taken;
    used_ += taken;
    if (error && error != beast::http::error::need_more) throw refusal(error, most_);
    if (taken == 0 && part.size() == kLongestHeader) throw refusal(too_long, most_);
    if (is_done() && parser_->chunked() && has_folded_trailer(part.substr(0, taken)))
      throw folded();
    if (has_header_) continue;
    const std::size_t pending = parser_->is_header_done() ? 0 : bytes.size() - used;
    if (used_ + pending > kLongestHeader) throw refusal(too_long, most_);
    if (parser_->is_header_done()) read_header();
  }
  return used;
}

// If the last encoding is not chunked, Beast reads no body, and takes its bytes for the next
// request. A proxy in front may take them for part of this one.
void RequestReader::check_header() const {
  namespace http = beast::http;
  const auto& message = parser_->get();
  const auto encoding = message[http::field::transfer_encoding];
  const auto encodings = message.count(http::field::transfer_encoding);
  const bool is_chunked = encodings == 1 && beast::iequals(encoding, "chunked");
  if (encodings > 0 && (!is_chunked || message.version() < kVersion))
    throw Problem(kBadRequest, "the only Transfer-Encoding is chunked, in HTTP/1.1");
  const auto headers = std::distance(message.begin(), message.end());
  if (static_cast<std::size_t>(headers) > kMostHeaders) {
    throw Problem(kLongHeader,
                  fmt::format("{} headers; a request has at most {}", headers, kMostHeaders));
  }
  for (const auto& field : message) {
    if (is_singular(in_small_letters(field.name_string())) &&
        message.count(field.name_string()) > 1)
      throw Problem(kBadRequest,
                    fmt::format("there is more than one {}", std::string(field.name_string())));
  }
  if (message.count(http::field::host) == 0 && message.version() >= kVersion)
    throw Problem(kBadRequest, "there is no Host, which HTTP/1.1 requires");
}

void RequestReader::read_header() {
  check_header();
  const auto& message = parser_->get();
  header_ = Request();
  header_.method = std::string(message.method_string());
  header_.keep_alive = message.keep_alive();
  for (const auto& field : message) add_header(header_.headers, field);
  std::string target(message.target());
  if (!target.starts_with('/')) {
    const Url address = parse_address(message.target());
    set_host(header_.headers, address.authority);
    target = address.resource;
    if (!target.starts_with('/')) target.insert(0, "/");
  }
  const boost::urls::url_view url = parse_path(target);
  header_.path = std::string(url.encoded_path());
  if (url.params().size() > kMostNames) {
    throw Problem(kBadRequest, fmt::format("the query has {} names; the most is {}",
                                           url.params().size(), kMostNames));
  }
  for (const auto& one : url.params())
    if (!one.key.empty() || one.has_value) header_.query.emplace_back(one.key, one.value);
  has_header_ = true;
}

bool RequestReader::is_done() const {
  return parser_->is_done();
}

bool RequestReader::wants_continue() {
  if (told_to_continue_ || !has_header_ || is_done()) return false;
  told_to_continue_ = true;
  return beast::iequals(parser_->get()[beast::http::field::expect], "100-continue");
}

std::uint64_t RequestReader::body_bytes() const {
  if (!has_header_) return 0;
  const auto told = parser_->content_length();
  return told ? *told : parser_->get().body().size();
}

std::string RequestReader::take_body() {
  CARILLON_REQUIRE(is_done());
  std::string body = std::move(parser_->get().body());
  begin();
  return body;
}

}  // namespace carillon::server::http
