# Warnings, sanitizers, the compiler cache and a quick linker: for every target of this project, and
# for nobody who links to it.

if(PROJECT_IS_TOP_LEVEL)
  find_program(CARILLON_CCACHE ccache)
  if(CARILLON_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CARILLON_CCACHE}")
  endif()
endif()

add_library(carillon_compiler INTERFACE)
target_compile_options(carillon_compiler INTERFACE
  -Wall -Wextra -Wpedantic -Werror -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wold-style-cast -Wcast-qual -Wextra-semi -Wzero-as-null-pointer-constant
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>  # gcc.gnu.org/PR105651: "a" + string
  $<$<CONFIG:Release>:-g1>)  # -g1: functions and lines, so that a stack trace of a release build can be read

# Outside of release builds the standard library checks its own preconditions too (operator[] in
# range, optional not empty, …).
target_compile_definitions(carillon_compiler INTERFACE $<$<NOT:$<CONFIG:Release>>:_GLIBCXX_ASSERTIONS>)

if(CARILLON_SANITIZE)
  target_compile_options(carillon_compiler INTERFACE -fsanitize=${CARILLON_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  # What a sanitizer adds hides from g++ that a variable is set: it warns of Asio's use_future.
  target_compile_options(carillon_compiler INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(carillon_compiler INTERFACE -fsanitize=${CARILLON_SANITIZE})
endif()
if(CARILLON_SANITIZE STREQUAL "thread")
  target_compile_options(carillon_compiler INTERFACE -Wno-tsan)  # Asio has fences, which the sanitizer does not follow
endif()

find_program(CARILLON_MOLD mold)
if(CARILLON_MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12.1)
  target_link_options(carillon_compiler INTERFACE -fuse-ld=mold)
endif()
