# uPlot, which draws the console's plots: sets `uplot_files`, a file of JavaScript and one of CSS.
#
# Debian has no package of it, and other people's code is not kept in this repository. The package
# uplot-python of the Python Package Index has the two files (uPlot's licence is MIT). pip fetches
# it once for a build folder, and compares it with the hash in uplot.txt. Where that fails,
# `uplot_files` is empty: a server without plots is better than none.
set(CARILLON_UPLOT "" CACHE PATH
  "Directory with uPlot.iife.js and uPlot.min.css; empty: pip fetches uplot-python")

set(uplot "${CARILLON_UPLOT}")
if(uplot STREQUAL "")
  set(list "${CMAKE_CURRENT_LIST_DIR}/uplot.txt")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${list}")
  file(SHA256 "${list}" hash)
  string(SUBSTRING "${hash}" 0 8 hash)
  set(uplot "${PROJECT_BINARY_DIR}/uplot-${hash}")
  if(NOT EXISTS "${uplot}/uPlot.min.css")
    find_package(Python3 COMPONENTS Interpreter)
    message(STATUS "Fetching uPlot from the Python Package Index")
    file(REMOVE_RECURSE "${uplot}")
    execute_process(
      COMMAND "${Python3_EXECUTABLE}" -m pip download --quiet --disable-pip-version-check
        --retries 2 --timeout 15 --no-deps --only-binary :all: --require-hashes
        --dest "${uplot}/fetched" -r "${list}"
      RESULT_VARIABLE status ERROR_VARIABLE why)
    if(status EQUAL 0)
      file(GLOB wheel "${uplot}/fetched/*.whl")
      file(ARCHIVE_EXTRACT INPUT "${wheel}" DESTINATION "${uplot}/fetched"
        PATTERNS "uplot/static/uPlot.*")
      file(RENAME "${uplot}/fetched/uplot/static/uPlot.iife.js" "${uplot}/uPlot.iife.js")
      file(RENAME "${uplot}/fetched/uplot/static/uPlot.min.css" "${uplot}/uPlot.min.css")
    else()
      message(WARNING "pip cannot fetch uPlot: the console will have no plots. Without a network, "
        "take uPlot.iife.js and uPlot.min.css from a release of uPlot 1.6, and name their "
        "directory with -DCARILLON_UPLOT=DIR; or run cmake again later. "
        "pip (${status}) said:\n${why}")
    endif()
    file(REMOVE_RECURSE "${uplot}/fetched")
  endif()
endif()
if(EXISTS "${uplot}/uPlot.iife.js" AND EXISTS "${uplot}/uPlot.min.css")
  set(uplot_files "${uplot}/uPlot.iife.js" "${uplot}/uPlot.min.css")
elseif(CARILLON_UPLOT STREQUAL "")
  set(uplot_files "")
else()
  message(FATAL_ERROR
    "CARILLON_UPLOT is ${CARILLON_UPLOT}, which has no uPlot.iife.js, or no uPlot.min.css")
endif()
