// Commands that go by HTTP, as operators send them, and the answers to them.
//
//   Command command{.verb = Verb::kSetTube, .tube = "mail"};
//   command.retention = 5'000;
//   write_request(command);          // PATCH /v1/tubes/mail, {"retention":"5s"}
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "simulator/commands.h"

namespace carillon::simulator {

// Sets `bytes` and `by_http`. REQUIRES: the verb is one of those that HTTP has.
void write_request(Command& command);

// The same request for what follows on a page, or on a change, that has ended at `token`.
Command from_there_on(const Command& command, std::string_view token);

// Takes the first answer off `bytes`. Returns nothing if it is not there as a whole. Its word, and
// its line, is that of the line protocol for the same: OK, NOT_FOUND, OUT_OF_MEMORY, and so on.
std::optional<Reply> take_answer(std::string_view& bytes);

// The JSON of an answer. Throws Violation if it is not an object.
boost::json::object object_of(const Reply& reply);
// A number in it; 0 without such a field.
std::uint64_t number_in(const boost::json::object& of, std::string_view name);
// A text in it that may be NAME_base64; empty without such a field.
std::string text_in(const boost::json::object& of, std::string_view name);
// The field next_page_token; empty: there is no further page.
std::string next_page_of(const boost::json::object& page);

}  // namespace carillon::simulator
