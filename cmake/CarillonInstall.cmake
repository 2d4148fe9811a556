# Installs the command, the headers and a CMake package. Each component of the package needs only
# its own dependencies:
#
#   find_package(carillon ...)   target            contents; dependencies
#                                carillon::wheel   timing wheels, headers only; none
#                                carillon::idle    idle tracker, headers only; none
#   COMPONENTS timer             carillon::timer   the timer service; threads
#   COMPONENTS cron              carillon::cron    its cron expressions; Howard Hinnant's date
#   COMPONENTS asio              carillon::asio    the timer for Asio, headers only; Boost, threads
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
endif()

write_basic_package_version_file("${PROJECT_BINARY_DIR}/carillon-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_SOURCE_DIR}/cmake/carillon-config.cmake"
  "${PROJECT_BINARY_DIR}/carillon-config-version.cmake"
  DESTINATION "${package_dir}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
