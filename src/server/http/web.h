// The files inside the program: the description of the API, a page that shows it, and the console
// (web/ at the root of the repository). cmake/embed_texts.cmake makes the table.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace carillon::server::http {

struct WebFile {
  std::string_view name;  // index.html
  std::string_view type;  // for Content-Type
  std::string_view tag;   // changes when the text changes
  std::string_view text;
  std::string_view gzip;  // the text, compressed
};

std::span<const WebFile> web_files();

// Returns null if there is no such file.
const WebFile* find_web_file(std::string_view name);

// Returns openapi.json with the operations from the rows.
const std::string& openapi_text();

}  // namespace carillon::server::http
