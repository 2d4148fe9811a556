# Writes a C++ file that holds the texts of files:
#
#   cmake -D TO=web.cpp -D NAMESPACE=a::b -D FROM=docs.html,docs.js -P embed_texts.cmake
#
# It defines std::string_view a::b::docs_html() and so on. A file has no )text" in it.
string(REPLACE "," ";" files "${FROM}")
set(source "#include <string_view>\n\nnamespace ${NAMESPACE} {\n\n")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME)
  string(REGEX REPLACE "[^a-z0-9]" "_" name "${name}")
  file(READ "${file}" text)
  string(APPEND source
    "std::string_view ${name}();\nstd::string_view ${name}() {\n"
    "  static constexpr std::string_view kText = R\"text(${text})text\";\n  return kText;\n}\n\n")
endforeach()
file(WRITE "${TO}" "${source}}  // namespace ${NAMESPACE}\n")
