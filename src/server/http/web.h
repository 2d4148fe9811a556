// The files that are part of the program: the description of the API, a page that shows it, and the
// console (web/ at the root of the repository). cmake/embed_texts.cmake makes the table.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace carillon::server::http {

struct WebFile {
  std::string_view name;  // index.html
  std::string_view type;  // for Content-Type
  std::string_view tag;   // another one if the text is another one
  std::string_view text;
  std::string_view gzip;  // the text, compressed
};

std::span<const WebFile> web_files();

// Returns the file; nullptr if there is none.
const WebFile* find_web_file(std::string_view name);

// Returns openapi.json: that of the file, with what the rows of operations say.
const std::string& openapi_text();

}  // namespace carillon::server::http
