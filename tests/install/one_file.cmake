# Compiles one_file/main.cpp against the installed carillon_wheel.hpp alone, with each of COMPILERS,
# with and without exceptions, and runs it.
foreach(compiler IN LISTS COMPILERS)
  foreach(exceptions -fexceptions -fno-exceptions)
    cmake_path(GET compiler FILENAME name)
    set(folder "${WORK_DIR}/${name}${exceptions}")
    file(REMOVE_RECURSE "${folder}")
    # A copy, so that no other header of the library is beside it.
    file(COPY "${PREFIX}/include/carillon_wheel.hpp" DESTINATION "${folder}")
    execute_process(COMMAND "${compiler}" -std=c++20 -O1 ${exceptions}
        -Wall -Wextra -Wconversion -Wshadow -Wpedantic -Werror "-I${folder}"
        "${CMAKE_CURRENT_LIST_DIR}/one_file/main.cpp" -o "${folder}/user"
      COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND "${folder}/user" COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND "${folder}/user" past RESULT_VARIABLE result ERROR_VARIABLE said)
    if(result EQUAL 0 OR NOT said MATCHES "carillon: advance\\(0\\) would go back")
      message(FATAL_ERROR "${name} ${exceptions}: a mistake gave ${result}: ${said}")
    endif()
  endforeach()
endforeach()
