# Warnings, sanitizers, the compiler cache and a fast linker, for every target of this project.
# Projects that link to Carillon do not get these flags.

if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED ENV{CCACHE_DISABLE})
  find_program(CARILLON_CCACHE ccache)
  if(CARILLON_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CARILLON_CCACHE}")
  endif()
endif()

# Precompiled headers are not used with ccache, which is faster still when it has the objects, but
# does not cache files that use a precompiled header. Not used by the lint preset either: each file
# must include what it uses.
if(NOT CARILLON_CCACHE AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
  set(CARILLON_PRECOMPILE ON)
endif()

add_library(carillon_compiler INTERFACE)
target_compile_options(carillon_compiler INTERFACE
  -Wall -Wextra -Wpedantic -Werror
  -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wold-style-cast -Wcast-qual -Wextra-semi -Wzero-as-null-pointer-constant
  # g++ 12 warns wrongly of "a" + string: gcc.gnu.org/PR105651.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  # Functions and lines, so that a stack trace of a release build is readable.
  $<$<CONFIG:Release>:-g1>)

# With a precompiled header, g++ 12 warns wrongly of strings in three more ways: it does not know
# that the line belongs to the standard library. The builds without one keep these warnings.
if(CARILLON_PRECOMPILE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
    AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(carillon_compiler INTERFACE
    -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
endif()

# Except in release builds, the standard library checks its preconditions: operator[] in range,
# optional not empty, …
target_compile_definitions(carillon_compiler INTERFACE
  $<$<NOT:$<CONFIG:Release>>:_GLIBCXX_ASSERTIONS>)

# Dear preconditions are checked in builds without NDEBUG (debug, sanitizers), and if this is set.
if(CARILLON_CHECK_ALL)
  target_compile_definitions(carillon_compiler INTERFACE CARILLON_CHECK_ALL)
endif()

if(CARILLON_SANITIZE)
  target_compile_options(carillon_compiler INTERFACE
    -fsanitize=${CARILLON_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # With sanitizers, g++ warns wrongly of an uninitialized variable in Asio's use_future, and of the
  # way in which Asio's coroutines free their memory.
  target_compile_options(carillon_compiler INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete>)
  target_link_options(carillon_compiler INTERFACE -fsanitize=${CARILLON_SANITIZE})
endif()
if(CARILLON_SANITIZE STREQUAL "thread")
  # Asio uses fences, which the thread sanitizer does not support.
  target_compile_options(carillon_compiler INTERFACE -Wno-tsan)
endif()

# Ten sources of the target are compiled as one, so that the compiler reads the headers once for all
# of them: the tests of a layer build in a third of the time. So a name in an unnamed namespace
# occurs once in a layer. The lint preset reads each file alone, because each must include what it
# uses.
option(CARILLON_UNITY "Compile several source files at once" ON)
function(carillon_unity target)
  if(CARILLON_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 10)
    # g++ warns of a type with a member of an unnamed namespace, unless the type stands in the file
    # that is compiled. Here that file only includes the sources.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# For a library that is installed: its objects can be part of a shared library, which can be
# unloaded. (g++ marks what inline functions hold, so that a library with it stays loaded.) The
# functions of a library call each other as directly as in a program.
function(carillon_for_shared_libraries target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE
    -fno-semantic-interposition $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
endfunction()

find_program(CARILLON_MOLD mold)
if(CARILLON_MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
    AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12.1)
  target_link_options(carillon_compiler INTERFACE -fuse-ld=mold)
endif()
