// Reads HTTP requests from the bytes of a connection (RFC 9112).
//
//   RequestReader reader(1 << 20);
//   std::size_t used = reader.read("GET /v1/jobs/17?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\nGET");
//   Request request = reader.take_header();   // used == 60: "GET" belongs to the next one
//   if (reader.is_done()) request.body = reader.take_body();
//   request.path == "/v1/jobs/17"; request.query[0] == {"x", "1"};
//
// A proxy may send a whole address, GET http://localhost/v1/jobs/17: its host replaces the header
// Host.
//
// However the bytes are cut, a request is read in the same way, or refused for the same reason. The
// fields behind the chunks of a body (trailers) are ignored, but trailers that change where the
// request ends are refused. A header or trailer that continues in a second line (obs-fold; RFC
// 9112, 5.2) is refused, too.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/require.h"
#include "server/api/request.h"

namespace carillon::server::http {

// Decodes a part of a path. Throws Problem.
std::string decoded(std::string_view part);

// Reads one request after the other.
class RequestReader {
 public:
  // The longest line and headers of a request, in bytes, and the longest header of a chunk; for the
  // last chunk with the trailers.
  static constexpr std::size_t kLongestHeader = 16 << 10;
  // The most headers of a request, and the most names in its query.
  static constexpr std::size_t kMostHeaders = 100;
  static constexpr std::size_t kMostNames = 64;

  // `most` is the largest body, in bytes.
  explicit RequestReader(std::uint64_t most);
  ~RequestReader();

  // Returns how many bytes it has used. The caller passes the other bytes again, followed by those
  // that come later. Throws Problem if the server does not take the request; the connection must
  // then close.
  std::size_t read(std::string_view bytes);
  // Returns true if no byte of a request was used yet.
  bool is_fresh() const { return used_ == 0; }
  // Returns true if the whole header is there.
  bool has_header() const { return has_header_; }
  // Returns true if the whole request is there.
  bool is_done() const;
  // Returns true once per request: its header is there, and the client waits for "100 Continue"
  // before it sends the body.
  bool wants_continue();
  // Returns the size of the body if the header has it, else the bytes of it so far.
  std::uint64_t body_bytes() const;

  // Returns the request without its body. To be called once. REQUIRES: has_header().
  Request take_header() {
    CARILLON_REQUIRE(has_header());
    return std::move(header_);
  }
  // Returns the body, and begins with the next request. REQUIRES: is_done().
  std::string take_body();
  // Drops the unfinished request and frees its memory.
  void forget() { begin(); }

 private:
  struct Parser;

  void begin();
  void check_header() const;
  void read_header();

  std::uint64_t most_;
  std::unique_ptr<Parser> parser_;
  Request header_;
  std::size_t used_ = 0;
  bool has_header_ = false;
  bool told_to_continue_ = false;
};

}  // namespace carillon::server::http
