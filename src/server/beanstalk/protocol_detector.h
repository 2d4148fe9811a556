// The first lines of a connection show whether the client speaks this protocol.
//
//   ProtocolDetector lines;
//   lines.is_request("POST / HTT");                    // false: it may still become one
//   lines.is_request("POST / HTTP/1.1");               // true: close the connection
//   lines.admits(parse_command("reserve").verb);       // true, and so is everything from now on
//
// Any web page can make the browser that shows it send a form to a port of the browser's machine,
// and the page chooses the body of the request. If the server only answered UNKNOWN_COMMAND to the
// lines of the request, then a body `put ...` would be carried out. So until a client has sent a
// known command, its connection ends
// - when a line is an HTTP request line, as soon as its " HTTP/" has come (the answer is a short
//   400), or
// - after kMostUnknown lines that are not a known command: the client speaks another protocol.
// A client that tries one or two newer verbs first gets UNKNOWN_COMMAND, as always.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "server/beanstalk/command.h"

namespace carillon::server::beanstalk {

class ProtocolDetector {
 public:
  // After this many lines without a known command the client is rejected.
  static constexpr std::uint32_t kMostUnknown = 3;

  // Returns true if the line that begins with `start` is an HTTP request line: it has two words,
  // and a word after them that begins with "HTTP/". Always false once a known command has come.
  bool is_request(std::string_view start) {
    words_ = {};
    return goes_on_as_request(start);
  }
  // The same for the bytes that follow in the same line.
  bool goes_on_as_request(std::string_view more) { return !passed_ && words_.read(more); }

  // Reports that a line was complete; kUnknown also stands for a line that is too long. Returns
  // false if the client must be rejected.
  bool admits(Verb verb) {
    passed_ = passed_ || verb != Verb::kUnknown;
    return passed_ || ++unknown_ < kMostUnknown;
  }

 private:
  // Reads a line from left to right, in any pieces.
  class Words {
   public:
    // Returns true once a word after the second has begun with "HTTP/".
    bool read(std::string_view bytes);

   private:
    void read(char byte);

    std::uint32_t begun_ = 0;  // words; 3 stands for more, too
    bool in_word_ = false;
    std::size_t matched_ = 0;  // bytes of "HTTP/" with which this word begins
  };

  Words words_;
  std::uint32_t unknown_ = 0;
  bool passed_ = false;
};

}  // namespace carillon::server::beanstalk
