// Requests are read alike, however their bytes are cut.
#include "server/http/request_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "server/api/problem.h"

namespace carillon::server::http {
namespace {

constexpr std::size_t kPieces[] = {1, 2, 3, 7, 64, 1'000, 5'000, 10'000, 1'000'000};

const std::string kPost = "POST / HTTP/1.1\r\nHost: localhost\r\n";
const std::string kChunked = kPost + "Transfer-Encoding: chunked\r\n\r\n";

// Reads one request from pieces of the bytes. Returns its headers and its body, and how many bytes
// are left; or the status of the problem.
std::string read(std::string_view bytes, std::size_t piece) {
  RequestReader reader(100'000);
  std::size_t used = 0;
  try {
    for (std::size_t come = 0; come < bytes.size() && !reader.is_done();) {
      come = std::min(come + piece, bytes.size());
      for (std::size_t more = 1; more > 0 && !reader.is_done(); used += more)
        more = reader.read(bytes.substr(used, come - used));
    }
  } catch (const Problem& problem) {
    return std::to_string(problem.kind().status);
  }
  if (!reader.is_done()) return "it goes on";
  const Request request = reader.take_header();
  std::string shown;
  for (const auto& [name, value] : request.headers) shown += name + "=" + value.substr(0, 9) + " ";
  return shown + reader.take_body() + " " + std::to_string(bytes.size() - used);
}

// Fails unless the bytes are read as `expected` in pieces of any size.
void expect_read(std::string_view bytes, std::string_view expected) {
  for (const std::size_t piece : kPieces)
    EXPECT_EQ(read(bytes, piece), expected)
        << "in pieces of " << piece << ": " << bytes.substr(0, 300);
}

// Fields of a header section of `bytes` bytes, its empty line included, behind `before`.
std::string filled(const std::string& before, std::size_t bytes) {
  std::string header = before;
  while (header.size() + 1'000 < bytes) header += "A: " + std::string(495, 'x') + "\r\n";
  return header + "B: " + std::string(bytes - header.size() - 7, 'x') + "\r\n\r\n";
}

TEST(HttpRequest, IsReadInPieces) {
  expect_read(kPost + "Content-Length: 5\r\n\r\nhelloGET",
              "host=localhost content-length=5 hello 3");
  expect_read(kChunked + "2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\n\r\nGET /",
              "host=localhost transfer-encoding=chunked hello 5");
  expect_read(kPost + "Transfer-Encoding: Chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
              "host=localhost transfer-encoding=Chunked x 0");
  expect_read(kPost + "\r\nGET", "host=localhost  3");
}

// Trailers are read by nobody (RFC 9110, 6.5.1). Those that say where a request ends are refused.
TEST(HttpRequest, FieldsBehindTheChunksAreNoHeaders) {
  for (const std::string field :
       {"X: y", "Host: evil.example", "Content-Type: application/json", "Connection: close",
        "Expect: 100-continue", "Carillon-Delay: 1h", "Authorization: Bearer x"}) {
    expect_read(kChunked + "1\r\nx\r\n0;a=b\r\n" + field + "\r\n\r\nGET",
                "host=localhost transfer-encoding=chunked x 3");
  }
  for (const std::string field :
       {"Content-Length: 1", "Transfer-Encoding: chunked", "no field", "X : y"})
    expect_read(kChunked + "1\r\nx\r\n0\r\n" + field + "\r\n\r\nGET", "400");
}

// A proxy that knows only HTTP/1.0 takes chunks for the next request (RFC 9112, 6.1).
TEST(HttpRequest, MayHaveNoChunksInHttp10) {
  expect_read("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400");
}

TEST(HttpRequest, WhatIsTooLongIsRefusedHoweverItComes) {
  const std::size_t most = RequestReader::kLongestHeader;
  const std::string long_path = "GET /" + std::string(9'000, 'a') + " HTTP/1.1\r\nHost: a\r\n";
  for (const std::string& begin : {kPost, long_path}) {
    expect_read(filled(begin, most + 1) + "GET", "431");
    expect_read(filled(begin, most + 5'000) + "GET", "431");
    EXPECT_EQ(read(filled(begin, most), 1), read(filled(begin, most), most));
    EXPECT_TRUE(read(filled(begin, most), 1).starts_with("host=")) << begin;
  }
  const std::string last = kChunked + "1\r\nx\r\n";
  expect_read(last + "0\r\n" + filled("", most), "431");
  expect_read(last + "1;" + std::string(most, 'e') + "\r\ny\r\n0\r\n\r\n", "431");
  expect_read(last + "0;" + std::string(most, 'e') + "\r\n\r\n", "431");
  expect_read(last + "0\r\n" + filled("", most - 100),
              "host=localhost transfer-encoding=chunked x 0");
}

// Without one it is not sure that no page of another site has sent it (RFC 9112, 3.2).
TEST(HttpRequest, HasOneHostAndOneOfEachHeaderThatDecides) {
  expect_read("GET / HTTP/1.1\r\n\r\n", "400");
  expect_read("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "400");
  for (const std::string name : {"Authorization", "content-type", "Origin", "Carillon-Delay"})
    expect_read(kPost + name + ": a\r\n" + name + ": b\r\n\r\n", "400");
  expect_read(kPost + "A: a\r\nA: b\r\n\r\n", "host=localhost a=a, b  0");
  expect_read("GET / HTTP/1.1\r\nHost:\r\n\r\n", "host=  0");
  expect_read("GET / HTTP/1.0\r\n\r\n", " 0");
}

// RFC 9112, 5.2. The parser joins the lines of a header. A proxy that reads each line for itself
// sees another request.
TEST(HttpRequest, AHeaderOfTwoLinesIsRefused) {
  for (const std::string fold : {" ", "\t", " \t ", " b: c"}) {
    expect_read(kPost + "A: a\r\n" + fold + "b\r\n\r\n", "400");
    expect_read(kPost + "A:\r\n" + fold + "b\r\nContent-Length: 1\r\n\r\nx", "400");
    expect_read("POST / HTTP/1.1\r\n" + fold + "Host: a\r\n\r\n", "400");
    expect_read(kPost + "A: a\r\n" + fold + "\r\n\r\n", "400");
    expect_read(kPost + "Content-Length: 1000000\r\nA: a\r\n" + fold + "b\r\n\r\n", "400");
    expect_read(kPost + "Transfer-Encoding:\r\n" + fold + "chunked\r\n\r\n0\r\n\r\n", "400");
    expect_read(kChunked + "1\r\nx\r\n0\r\nA: a\r\n" + fold + "b\r\n\r\n", "400");
  }
  // Only lines of headers count.
  expect_read(kPost + "Content-Length: 6\r\n\r\n \n a\r\n",
              "host=localhost content-length=6  \n a\r\n 0");
  expect_read(kPost + "Content-Length: 4\r\n\r\na\r\n ",
              "host=localhost content-length=4 a\r\n  0");
  expect_read(kChunked + "4\r\n\r\n b\r\n3\r\n\n c\r\n0\r\n\r\n",
              "host=localhost transfer-encoding=chunked \r\n b\n c 0");
}

// RFC 9112, 3.2.2: a proxy sends it, and its host counts.
TEST(HttpRequest, ATargetMayBeAWholeAddress) {
  const auto get = [](const std::string& target) {
    return "GET " + target + " HTTP/1.1\r\nA: b\r\nHost: x\r\n\r\n";
  };
  expect_read(get("http://host/v1/jobs"), "a=b host=host  0");
  expect_read(get("http://[::1]:80/"), "a=b host=[::1]:80  0");
  expect_read(get("https://host"), "a=b host=host  0");
  expect_read("GET http://host/ HTTP/1.0\r\n\r\n", "host=host  0");
  expect_read("GET http://host/ HTTP/1.1\r\n\r\n", "400");
  for (const char* wrong : {"http:/v1", "http:///v1", "http://:80/", "ftp://host/", "host/v1",
                            "host:443", "http://me@host/", "http://host/#a", "*", "a"})
    expect_read(get(wrong), "400");

  RequestReader reader(0);
  reader.read(get("http://host/v1/jobs/a%2Fb?x=1&y"));
  const Request request = reader.take_header();
  EXPECT_EQ(request.path, "/v1/jobs/a%2Fb");
  EXPECT_EQ(request.asked("x"), "1");
  RequestReader of_root(0);
  of_root.read(get("http://host?x=1"));
  EXPECT_EQ(of_root.take_header().path, "/");
}

}  // namespace
}  // namespace carillon::server::http
