// The fixture of tests of commands: a server, a client, and the fields of what the client is told.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "test_server.h"

namespace carillon::server::beanstalk {

class SessionTest : public testing::Test {
 protected:
  // Returns the value of a field in the answer to the command; "none" if it has no such field.
  std::string field(const std::string& command, std::string_view name) {
    const std::string yaml = client.say(command + "\r\n");
    const std::size_t at = yaml.find("\n" + std::string(name) + ": ");
    if (at == std::string::npos) return "none";
    const std::size_t from = at + name.size() + 3;
    return yaml.substr(from, yaml.find('\n', from) - from);
  }

  TestServer server;
  Client client{server};
};

}  // namespace carillon::server::beanstalk
