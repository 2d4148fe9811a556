"""Conan recipe (Conan 2): conan create . --build=missing"""

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class Carillon(ConanFile):
    name = "carillon"
    version = "0.1.0"
    license = "Apache-2.0"
    description = "Timing wheels, timers and a durable delayed-job server"
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"timer": [True, False], "cron": [True, False], "asio": [True, False]}
    default_options = {"timer": True, "cron": False, "asio": False}
    exports_sources = "CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "scripts/*", "src/*"

    def validate(self):
        if self.options.asio and not self.options.timer:
            raise ConanInvalidConfiguration("asio=True needs timer=True")

    def requirements(self):
        if self.options.cron:
            self.requires("date/[>=3.0]")
        if self.options.asio:
            self.requires("boost/[>=1.81]")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for component in ("timer", "cron", "asio"):
            wanted = bool(getattr(self.options, component))
            toolchain.cache_variables[f"CARILLON_{component.upper()}"] = wanted
        toolchain.cache_variables["CARILLON_SERVER"] = False
        toolchain.cache_variables["CARILLON_TESTS"] = False
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, f"{self.package_folder}/licenses")
        CMake(self).install()

    def package_info(self):
        # The package brings carillon-config.cmake, with its components.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append("lib/cmake/carillon")
