# each_header_alone(USER LIBRARY): compiles every public header of LIBRARY in a translation unit of
# its own, as part of the target USER. This checks that each header includes what it uses, and that
# it compiles without the warnings that a strict user may enable.
function(each_header_alone user library)
  get_target_property(include_dir ${library} HEADER_DIRS)
  get_target_property(headers ${library} HEADER_SET)
  if(NOT headers)
    message(FATAL_ERROR "${library} has no public header")
  endif()
  foreach(header IN LISTS headers)
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${include_dir}")
    string(MAKE_C_IDENTIFIER "${header}" name)
    file(CONFIGURE OUTPUT "${name}.cpp" CONTENT "#include \"${header}\"\n")
    target_sources(${user} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
  endforeach()
  target_compile_options(${user} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror)
  # Otherwise the compiler would not warn in the headers of an imported target.
  set_target_properties(${user} PROPERTIES NO_SYSTEM_FROM_IMPORTED ON)
endfunction()
