// Lists in pages: the page that a request asks for, and where the next page begins.
//
//   GET /v1/tubes?page_size=50&page_token=mail
//   {"tubes":[...],"next_page_token":"news"}
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/api/field.h"

namespace carillon::server {

inline constexpr std::uint64_t kMostListed = 1'000;
inline constexpr std::uint64_t kUsuallyListed = 100;

inline constexpr std::string_view kPageSizeHelp = "At most this many items in the page.";
inline constexpr Rule kPageSizeRule{.least = 1, .most = kMostListed, .usual = "100"};
inline constexpr std::string_view kPageTokenHelp =
    "What an answer calls next_page_token: the list goes on there.";
inline constexpr std::string_view kNextPageHelp =
    "Where the next page begins. Null: this is the last page.";
inline constexpr Rule kNextPageRule{.shows_null = true};
inline constexpr std::string_view kIncompleteHelp =
    "Jobs may be missing, because a file of the server is damaged.";

// Request for a list in the order of names.
struct ListByName {
  std::uint32_t page_size = kUsuallyListed;
  std::string page_token;
};
template <>
inline constexpr auto kFields<ListByName> = fields(field<&ListByName::page_size>(kPageSizeHelp,
                                                                                 kPageSizeRule),
                                                   field<&ListByName::page_token>(kPageTokenHelp));

}  // namespace carillon::server
