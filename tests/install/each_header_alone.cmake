# each_header_alone(USER LIBRARY): compiles every public header of LIBRARY as the only one of a
# translation unit of USER, so that each includes what it uses, and under warnings that a strict
# user may have on, as errors.
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
  target_compile_options(${user} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror)
  set_target_properties(${user} PROPERTIES NO_SYSTEM_FROM_IMPORTED ON)  # warnings in an imported target's headers count
endfunction()
