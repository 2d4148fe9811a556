// The wire format: frames; and FrameReader, which cuts a stream of bytes into frames.
//
// All numbers are big-endian.
//
//   frame   = length id rest    length: 4 bytes, the bytes of id and rest; id: 8 bytes
//   request = a frame; rest = method payload; method: 1 byte
//   reply   = a frame with the id of its request; rest = the result
//
//   method 'E', echo     the result is the payload; the server answers after a while, or never
//   method 'S', status   the result is three numbers of 8 bytes: the echo requests on this
//                        connection so far, those already answered, and those still to be answered
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace rpc {

enum class Method : char { kEcho = 'E', kStatus = 'S' };

inline constexpr std::size_t kLengthBytes = 4;
inline constexpr std::size_t kNumberBytes = 8;
inline constexpr std::size_t kLongestFrame = 64 << 10;  // id and rest, bytes

// Reads a number from all of `bytes`. REQUIRES: bytes.size() <= 8.
inline std::uint64_t read_number(std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

// Appends `number` in `bytes` bytes.
inline void append_number(std::string& to, std::uint64_t number, std::size_t bytes = kNumberBytes) {
  while (bytes-- > 0) to += static_cast<char>(number >> (8 * bytes) & 0xff);
}

inline std::string make_reply(std::uint64_t id, std::string_view result) {
  std::string frame;
  frame.reserve(kLengthBytes + kNumberBytes + result.size());
  append_number(frame, kNumberBytes + result.size(), kLengthBytes);
  append_number(frame, id);
  frame += result;
  return frame;
}

inline std::string make_request(std::uint64_t id, Method method, std::string_view payload) {
  std::string frame;
  frame.reserve(kLengthBytes + kNumberBytes + 1 + payload.size());
  append_number(frame, kNumberBytes + 1 + payload.size(), kLengthBytes);
  append_number(frame, id);
  frame += static_cast<char>(method);
  frame += payload;
  return frame;
}

// Cuts the bytes of one connection into frames.
class FrameReader {
 public:
  // Calls on_frame(id, rest) for each frame that `bytes` completes. Returns false if a frame has no
  // id or is longer than kLongestFrame: the bytes that follow cannot be understood then.
  template <class OnFrame>
  bool feed(std::string_view bytes, OnFrame&& on_frame) {
    if (begun_.empty()) return cut(bytes, on_frame);
    const std::string joined = std::exchange(begun_, {}).append(bytes);
    return cut(joined, on_frame);
  }

 private:
  template <class OnFrame>
  bool cut(std::string_view bytes, OnFrame& on_frame) {
    while (bytes.size() >= kLengthBytes) {
      const std::size_t length = read_number(bytes.substr(0, kLengthBytes));
      if (length < kNumberBytes || length > kLongestFrame) return false;
      if (bytes.size() < kLengthBytes + length) break;
      const std::string_view frame = bytes.substr(kLengthBytes, length);
      on_frame(read_number(frame.substr(0, kNumberBytes)), frame.substr(kNumberBytes));
      bytes.remove_prefix(kLengthBytes + length);
    }
    begun_ = bytes;
    return true;
  }

  std::string begun_;  // the beginning of a frame whose rest has not come yet
};

}  // namespace rpc
