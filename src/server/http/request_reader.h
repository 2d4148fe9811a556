// An HTTP request, and how it is read from the bytes of a connection (RFC 9112).
//
//   RequestReader reader(1 << 20);
//   std::size_t used = reader.read("GET /v1/jobs/17?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\nGET");
//   Request request = reader.take_header();             // used == 60: "GET" is the next one's
//   if (reader.is_done()) request.body = reader.take_body();
//   request.path == "/v1/jobs/17"; request.query[0] == {"x", "1"};
//
// A proxy may write the whole address, GET http://localhost/v1/jobs/17: its host counts then, and
// stands in the place of the Host.
//
// A request is read alike, and refused for the same reason, however its bytes are cut. The fields
// behind the chunks of a body (trailers) are ignored; those that say where a request ends are
// refused. So is a header or a trailer that goes on in a second line (obs-fold; RFC 9112, 5.2).
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

// Returns the bytes that a part of a path stands for. Throws Problem.
std::string decoded(std::string_view part);

// Reads one request after the other.
class RequestReader {
 public:
  // The longest line and headers of a request, in bytes; and the longest header of a chunk. The
  // header of the last chunk includes the trailers.
  static constexpr std::size_t kLongestHeader = 16 << 10;
  // The most headers, and names of a query.
  static constexpr std::size_t kMostHeaders = 100;
  static constexpr std::size_t kMostNames = 64;

  // `most` is the largest body, in bytes.
  explicit RequestReader(std::uint64_t most);
  ~RequestReader();

  // Returns how many bytes of the request were used; the others are to be passed again, followed by
  // what comes after them. Throws Problem if this is no request that the server takes; then the
  // connection cannot go on.
  std::size_t read(std::string_view bytes);
  // Nothing of a request was used yet.
  bool is_fresh() const { return used_ == 0; }
  // The header is there.
  bool has_header() const { return has_header_; }
  // The whole request is there.
  bool is_done() const;
  // The header is there, and the client waits for "100 Continue" before it sends the body. Returns
  // true once.
  bool wants_continue();
  // How many bytes the body has so far, or will have, if the header tells it.
  std::uint64_t body_bytes() const;

  // Returns the request without its body; once. REQUIRES: has_header().
  Request take_header() {
    CARILLON_REQUIRE(has_header());
    return std::move(header_);
  }
  // Returns its body, and begins with the next request. REQUIRES: is_done().
  std::string take_body();
  // Gives up what has come of a request, with its memory.
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
