// Cuts what a client sends into command lines and bodies. The session (session.h) carries them out,
// and says which body it expects.
//
//   CommandReader reader;
//   reader.read("put 0 0 60 5\r\nhel");   // kLine, 14 bytes used: text is "put 0 0 60 5"
//   reader.expect_body(5);
//   reader.read("hel");                   // kNothing, 3 bytes used: the reader keeps them
//   reader.read("lo\r\nreserve\r\n");     // kBody, 4 bytes used: text is "hello\r\n"
//
// Bytes that were not used must be passed again, followed by later ones. A line that is too long is
// discarded up to its end. Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/beanstalk/command.h"

namespace carillon::server::beanstalk {

// --- The first lines of a connection show whether the client speaks this protocol.
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

// --- The reader.

class CommandReader {
 public:
  enum class Event : std::uint8_t {
    kNothing,    // more bytes are needed
    kRequest,    // the line is a request line of HTTP
    kLine,       // `text` is a command line, without its end
    kLongLine,   // a line that is too long has ended: refused()
    kBody,       // `text` is the body that was expected, with its two last bytes
    kPiece,      // `text` is a piece of the large body that was expected
    kLastEnd,    // `text` is the two last bytes of the large body
    kDiscarded,  // the body that had to be discarded has ended
  };
  struct Read {
    Event event = Event::kNothing;
    std::size_t used = 0;
    // Points into the bytes, or into the reader, until forget_body().
    std::string_view text = {};
  };
  Read read(std::string_view bytes);

  // Each says what comes next instead of a line; `bytes` is the size without the CR LF at the end.
  // REQUIRES: a line is next.
  void expect_body(std::uint32_t bytes);
  // The body comes in pieces of queue::kBodyPiece bytes; the last one may be shorter.
  void expect_pieces(std::uint32_t bytes);
  // What is left of a body, and its CR LF, are discarded. May be called for the rest of a large
  // body, too.
  void discard(std::uint64_t bytes);

  // Gives back what `text` of kBody, kPiece or kLastEnd needed. Call it when the text was used.
  void forget_body();

  // Reports the verb of a line that has come; Verb::kUnknown also stands for a line that is too
  // long. Returns false if the client must be turned away (ProtocolDetector).
  bool admits(Verb verb) { return detector_.admits(verb); }

  // The verb of the line of kLongLine, what follows it, and how many bytes, if that is known.
  const Command& refused() const { return refused_; }
  // After kDiscarded: whether the body ended with CR LF.
  bool ended_well() const { return ends_well_; }
  // How many bytes are still to come of the large body, without its end.
  std::uint64_t left() const { return left_; }

  bool awaits_line() const { return state_ == State::kLine; }
  bool awaits_head() const { return state_ == State::kLine || state_ == State::kLongLine; }
  bool awaits_body() const { return state_ == State::kBody || state_ == State::kPieces; }
  bool awaits_pieces() const { return state_ == State::kPieces; }

 private:
  enum class State : std::uint8_t { kLine, kLongLine, kBody, kPieces, kDiscard };

  Read read_line(std::string_view bytes);
  Read skip_long_line(std::string_view bytes);
  Read collect(std::string_view bytes, std::size_t size, Event event);
  Read read_piece(std::string_view bytes);
  Read discard_some(std::string_view bytes);

  ProtocolDetector detector_;
  State state_ = State::kLine;
  Command refused_ = {};
  std::string body_;        // the part of the next text that came in earlier calls
  std::uint64_t left_ = 0;  // bytes of the body that is next; kDiscard: with its CR LF
  bool ends_well_ = true;
};

}  // namespace carillon::server::beanstalk
