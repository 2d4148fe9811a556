// The wire format of the message channel: frames; and FrameReader, which cuts a stream of bytes
// into frames.
//
// All numbers are big-endian. A frame is: length, 2 bytes, the bytes of type and payload; type,
// 1 byte; payload.
//
//   name       type  payload        direction      meaning
//   login      'L'   user           to gateway     the first frame; user: 8 bytes, any number
//   welcome    'W'   time-out tick  from gateway   answers a login; 4 bytes each, milliseconds. The
//                                                  client must send a frame once per time-out
//   message    'M'   user text      to gateway     a text for this user
//   message    'M'   user text      from gateway   a text from this user
//   absent     'A'   user           from gateway   answers a message: this user is not logged in
//   keepalive  'K'                  to gateway     a packet without content; bytes 00 01 4b
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gateway {

enum class FrameType : char {
  kLogin = 'L',
  kWelcome = 'W',
  kMessage = 'M',
  kAbsent = 'A',
  kKeepalive = 'K'
};

struct Frame {
  FrameType type;
  std::string_view payload;
};

inline constexpr std::size_t kLengthBytes = 2;
inline constexpr std::size_t kLongestFrame = 4096;  // type and payload, bytes
inline constexpr std::size_t kUserBytes = 8;
inline constexpr std::size_t kMillisBytes = 4;

// Reads a number from all of `bytes`. REQUIRES: bytes.size() <= 8.
inline std::uint64_t read_number(std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

// Appends `number` in `bytes` bytes.
inline void append_number(std::string& to, std::uint64_t number, std::size_t bytes) {
  while (bytes-- > 0) to += static_cast<char>(number >> (8 * bytes) & 0xff);
}

// REQUIRES: payload.size() < kLongestFrame.
inline std::string make_frame(FrameType type, std::string_view payload = {}) {
  std::string frame;
  append_number(frame, payload.size() + 1, kLengthBytes);
  frame += static_cast<char>(type);
  frame += payload;
  return frame;
}

inline std::string make_user_frame(FrameType type, std::uint64_t user, std::string_view text = {}) {
  std::string payload;
  append_number(payload, user, kUserBytes);
  payload += text;
  return make_frame(type, payload);
}

// Cuts the bytes of one connection into frames. Takes no memory between frames.
class FrameReader {
 public:
  // Calls on_frame(Frame) -> bool for each frame that `bytes` completes. Stops if on_frame returns
  // false. Returns false if a frame has no type or is longer than kLongestFrame: the bytes that
  // follow cannot be understood then.
  template <class OnFrame>
  bool feed(std::string_view bytes, OnFrame&& on_frame) {
    if (begun_.empty()) return cut(bytes, on_frame);
    const std::string joined = std::move(begun_).append(bytes);
    begun_ = std::string();
    return cut(joined, on_frame);
  }

 private:
  template <class OnFrame>
  bool cut(std::string_view bytes, OnFrame& on_frame) {
    while (bytes.size() >= kLengthBytes) {
      const std::size_t length = read_number(bytes.substr(0, kLengthBytes));
      if (length == 0 || length > kLongestFrame) return false;
      if (bytes.size() < kLengthBytes + length) break;
      const Frame frame{static_cast<FrameType>(bytes[kLengthBytes]),
                        bytes.substr(kLengthBytes + 1, length - 1)};
      if (!on_frame(frame)) return true;
      bytes.remove_prefix(kLengthBytes + length);
    }
    begun_ = bytes;
    return true;
  }

  std::string begun_;  // the beginning of a frame whose rest has not come yet
};

}  // namespace gateway
