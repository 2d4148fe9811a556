// The files of web/, which are part of the program: the description of the API, and a page that
// shows it. cmake/embed_texts.cmake makes the definitions.
#pragma once

#include <string_view>

namespace carillon::server::http {

std::string_view openapi_json();
std::string_view docs_html();
std::string_view docs_js();
std::string_view docs_css();

}  // namespace carillon::server::http
