// Lists: which jobs of a tube a request means, and where the next page or step begins.
//
//   {"tube":"mail","state":"buried,dead","key_prefix":"order-","due_before":"2030-01-01T00:00:00Z"}
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "carillon/queue/job_listing.h"
#include "server/api/field.h"

namespace carillon::server {

// Several states in one text: "buried,dead".
struct States {
  std::uint32_t bits = queue::kAllStates;
};
template <>
struct Text<States> {
  static States parse(std::string_view text);
  static std::string show(const States& states);
};

template <>
struct Text<queue::JobCursor> {
  static queue::JobCursor parse(std::string_view text);
  static std::string show(const queue::JobCursor& cursor);
};

inline constexpr std::string_view kStatesHelp =
    "delayed, ready, reserved, buried or dead, or several of them: buried,dead";
struct Filter {
  std::optional<States> state;
  std::optional<Bytes> group;
  std::optional<Bytes> key_prefix;
  std::optional<Moment> due_after;
  std::optional<Moment> due_before;

  queue::JobFilter jobs() const;
};

// A filter that names its tube, and may name a reason.
struct TubeFilter : Filter {
  std::string tube;
  std::optional<Bytes> reason;
};

template <class Of>
inline constexpr std::array kFilterFields = {
    field<&Of::state, Of>(kStatesHelp),
    field<&Of::group, Of>("Jobs of this group.", {.form = &kKeyForm}),
    field<&Of::key_prefix, Of>("The key begins with this.", {.form = &kKeyForm}),
    field<&Of::due_after, Of>("Due from this moment on."),
    field<&Of::due_before, Of>("Due before this moment.")};
template <>
inline constexpr auto kFields<Filter> = fields(Schema{"JobFilter"}, kFilterFields<Filter>);

template <>
inline constexpr auto kFields<TubeFilter> = fields(
    Schema{"Filter"}, field<&TubeFilter::tube>("The tube.", {.needed = true, .form = &kTubeForm}),
    kFilterFields<TubeFilter>,
    field<&TubeFilter::reason>(
        "Buried jobs with this reason, as GET /v1/tubes/TUBE/dead lists them, e.g. exit "
        "status 3: no such file.",
        {.least = 1}));

// --- Lists in pages: the page that a request asks for, and where the next page begins.
//
//   GET /v1/tubes?page_size=50&page_token=mail
//   {"tubes":[...],"next_page_token":"news"}

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

// A page begins at this place of a list. 0: at the first one.
struct PlaceToken {
  std::uint64_t place = 0;
};
template <>
struct Text<PlaceToken> {
  static PlaceToken parse(std::string_view text);
  static std::string show(PlaceToken token);
};

// Request for a list in the order of names. The token of a page is the last name of the one before.
extern const Form kNameTokenForm;
struct ListByName {
  std::uint32_t page_size = kUsuallyListed;
  std::string page_token;
};
template <>
inline constexpr auto kFields<ListByName> =
    fields(field<&ListByName::page_size>(kPageSizeHelp, kPageSizeRule),
           field<&ListByName::page_token>(kPageTokenHelp, {.form = &kNameTokenForm}));

}  // namespace carillon::server
