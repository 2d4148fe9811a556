// The wire format: frames, and how they are found again in a stream of bytes.
//
//   frame   = length id rest    length: 4 bytes, those of id and rest; id: 8 bytes; all numbers are big-endian
//   request = a frame whose rest is method payload; method: 1 byte
//   reply   = a frame with the id of its request, whose rest is the result
//
//   method 'E', echo     the result is the payload, after a while or never: that is what the server is there for
//   method 'S', status   the result is 8 bytes each: echo requests of this connection so far, those answered, and
//                        those that will be
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

// A number of so many bytes. REQUIRES: bytes.size() <= 8.
inline std::uint64_t read_number(std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

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
  // Calls on_frame(id, rest) for each frame that is complete with `bytes`. Returns false if one has
  // no id or is longer than kLongestFrame: what follows cannot be understood.
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

  std::string begun_;  // a frame of which not everything has come yet
};

}  // namespace rpc
