# Installs the command, the headers and a CMake package. Each component of the package needs only
# its own dependencies:
#
#   find_package(carillon ...)   target            contents; dependencies
#   COMPONENTS wheel (or none)   carillon::wheel   timing wheels, headers only; none
#   COMPONENTS idle (or none)    carillon::idle    idle tracker, headers only; none
#   COMPONENTS timer             carillon::timer   the timer service; threads
#   COMPONENTS cron              carillon::cron    its cron expressions; Howard Hinnant's date
#   COMPONENTS asio              carillon::asio    timers for Asio, headers only; timer, Boost
#   COMPONENTS queue             carillon::queue   the durable queue in-process; RocksDB, threads
#
# tests/install installs into a temporary prefix and builds programs against it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/carillon")

# One export file per component, so that a user of the wheel needs no dependency of the queue.
install(TARGETS carillon_wheel carillon_idle EXPORT carillon-wheel FILE_SET HEADERS)
install(EXPORT carillon-wheel NAMESPACE carillon:: DESTINATION "${package_dir}")
if(CARILLON_TIMER)
  install(TARGETS carillon_timer EXPORT carillon-timer FILE_SET HEADERS)
  install(EXPORT carillon-timer NAMESPACE carillon:: DESTINATION "${package_dir}")
  if(CARILLON_CRON)
    install(TARGETS carillon_cron EXPORT carillon-cron)
    install(EXPORT carillon-cron NAMESPACE carillon:: DESTINATION "${package_dir}")
  endif()
endif()
if(CARILLON_ASIO)
  install(TARGETS carillon_asio EXPORT carillon-asio FILE_SET HEADERS)
  install(EXPORT carillon-asio NAMESPACE carillon:: DESTINATION "${package_dir}")
endif()
if(CARILLON_SERVER)
  install(TARGETS carillon_queue EXPORT carillon-queue FILE_SET HEADERS)
  install(EXPORT carillon-queue NAMESPACE carillon:: DESTINATION "${package_dir}")
  install(TARGETS carillon)
  # With the licence of uPlot, which is part of the program.
  install(FILES packaging/debian/copyright DESTINATION "${CMAKE_INSTALL_DOCDIR}")
endif()

# The same components for pkg-config: carillon-wheel, carillon-idle, …
set(pkgconfig_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY
  "${CMAKE_INSTALL_PREFIX}/${pkgconfig_dir}" OUTPUT_VARIABLE to_prefix)
function(carillon_pkgconfig name description)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "REQUIRES;CFLAGS;LIBS" "")
  set(requires "${arg_REQUIRES}")
  set(cflags "${arg_CFLAGS}")
  set(libs "")
  if(arg_LIBS)
    set(libs "-L\${prefix}/${CMAKE_INSTALL_LIBDIR} ${arg_LIBS}")
  endif()
  configure_file(cmake/carillon.pc.in "${PROJECT_BINARY_DIR}/carillon-${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/carillon-${name}.pc" DESTINATION "${pkgconfig_dir}")
endfunction()
carillon_pkgconfig(wheel "timing wheels, headers alone")
carillon_pkgconfig(idle "the idle tracker, headers alone" REQUIRES carillon-wheel)
if(CARILLON_TIMER)
  carillon_pkgconfig(timer "the timer service" REQUIRES carillon-wheel
    CFLAGS -pthread LIBS "-lcarillon_timer -pthread")
  if(CARILLON_CRON)
    carillon_pkgconfig(cron "cron expressions for the timer service" REQUIRES carillon-timer
      CFLAGS -DCARILLON_CRON LIBS "-lcarillon_cron -ldate-tz")
  endif()
endif()
if(CARILLON_ASIO)
  carillon_pkgconfig(asio "timers and sleeps for Asio, headers alone" REQUIRES carillon-timer)
endif()
if(CARILLON_SERVER)
  carillon_pkgconfig(queue "the durable queue in a process" REQUIRES "carillon-wheel rocksdb liblz4"
    CFLAGS -pthread LIBS "-lcarillon_queue -pthread")
endif()

# The wheels and the pool as one file, for those who copy instead of installing.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  set(one_file "${PROJECT_BINARY_DIR}/carillon_wheel.hpp")
  add_custom_command(OUTPUT "${one_file}"
    COMMAND "${Python3_EXECUTABLE}" -B "${PROJECT_SOURCE_DIR}/scripts/one-file" "${one_file}"
    DEPENDS "${PROJECT_SOURCE_DIR}/scripts/one-file" ${wheel_headers} VERBATIM)
  add_custom_target(carillon_one_file ALL DEPENDS "${one_file}")
  install(FILES "${one_file}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
endif()

write_basic_package_version_file("${PROJECT_BINARY_DIR}/carillon-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_SOURCE_DIR}/cmake/carillon-config.cmake"
  "${PROJECT_BINARY_DIR}/carillon-config-version.cmake"
  DESTINATION "${package_dir}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
