# Writes a C++ file that holds the files of the pages (web.h): each with its type, a tag that
# changes with its text, the text, and the same compressed:
#
#   cmake -D TO=web_files.cpp -D FROM=web/index.html,web/app.js -P embed_texts.cmake
#
# No file has )text" in it.
string(REPLACE "," ";" files "${FROM}")
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_json "application/json")
set(type_svg "image/svg+xml")
string(CONCAT source "#include \"server/http/web.h\"\n\n"
  "namespace carillon::server::http {\n\nnamespace {\n\n")
set(table "")
set(number 0)
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME)
  string(REGEX REPLACE "^.*\\." "" kind "${name}")
  if(NOT DEFINED type_${kind})
    message(FATAL_ERROR "${file}: embed_texts.cmake knows no type for .${kind}")
  endif()
  file(READ "${file}" text)
  file(SHA256 "${file}" hash)
  string(SUBSTRING "${hash}" 0 16 tag)
  file(ARCHIVE_CREATE OUTPUT "${TO}.gz" PATHS "${file}" FORMAT raw COMPRESSION GZip
       COMPRESSION_LEVEL 9)
  file(READ "${TO}.gz" packed HEX)
  file(REMOVE "${TO}.gz")
  # Bytes 4 to 7 are the time of packing: without it the same files make the same program.
  string(SUBSTRING "${packed}" 0 8 head)
  string(SUBSTRING "${packed}" 16 -1 rest)
  string(REGEX REPLACE "(..)" "\\\\x\\1" packed "${head}00000000${rest}")
  string(REGEX REPLACE "((\\\\x..)(\\\\x..)(\\\\x..)(\\\\x..)(\\\\x..)(\\\\x..)(\\\\x..)(\\\\x..))"
         "\\1\"\n    \"" packed "${packed}")
  string(APPEND source
    "constexpr std::string_view kText${number} = R\"text(${text})text\";\n"
    "constexpr char kPacked${number}[] =\n    \"${packed}\";\n\n")
  string(APPEND table
    "    {\"${name}\", \"${type_${kind}}\", \"${tag}\", kText${number},\n"
    "     {kPacked${number}, sizeof kPacked${number} - 1}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${TO}" "${source}constexpr WebFile kFiles[] = {\n${table}};\n\n}  // namespace\n\n"
  "std::span<const WebFile> web_files() {\n  return kFiles;\n}\n\n"
  "}  // namespace carillon::server::http\n")
