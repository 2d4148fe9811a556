// The terminal as a screen that is drawn anew: without echo, a key at a time, and on a second
// screen, so that what was there comes back.
//
//   Screen screen;                                   // the destructor restores the terminal
//   screen.draw({"one line", "another"});
//   if (screen.wait(100ms, stop.fd()) == Screen::Event::kKey && screen.key() == 'q') return;
//
// Keys that would end the process without restoring the terminal are keys here: Ctrl-\ is ignored,
// and Ctrl-Z restores the terminal until the process goes on. Those who use it catch the signals
// that end a process (wait.h).
#pragma once

#include <termios.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/file_descriptor.h"

namespace carillon::cli {

struct ScreenSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

// Returns true if standard input and output are a terminal on which a cursor can be moved.
bool has_screen();

// Returns true if standard output is a terminal, and NO_COLOR does not forbid colours.
bool wants_colours();

// Not thread-safe. At most one exists.
class Screen {
 public:
  // REQUIRES: has_screen(). Throws Failure.
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  ScreenSize size() const;

  // Shows the lines, as many as there are rows. A line that is too wide is the caller's mistake: it
  // is cut by the terminal.
  void draw(const std::vector<std::string>& lines);

  // The event that has ended a wait.
  enum class Event : std::uint8_t { kTime, kKey, kResized, kStop };
  // Waits until a key is pressed, the size has changed, `stop_fd` is readable or the terminal is
  // gone (kStop), or the time is over.
  Event wait(std::chrono::milliseconds patience, int stop_fd);
  // The last one.
  char key() const { return key_; }

 private:
  void enter();
  void leave();
  Event take_key();

  termios before_{};
  sigset_t signals_before_{};
  base::FileDescriptor resized_;
  char key_ = 0;
};

}  // namespace carillon::cli
