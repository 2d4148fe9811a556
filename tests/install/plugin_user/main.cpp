// A program that loads and unloads a plugin, whose timer services run meanwhile.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <latch>
#include <thread>

namespace {

void check(bool fine, const char* what) {
  if (fine) return;
  const char* why = ::dlerror();
  std::fprintf(stderr, "plugin_user: %s %s\n", what, why == nullptr ? "" : why);
  std::exit(1);
}

class Plugin {
 public:
  Plugin() : library_(::dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL)) {
    check(library_ != nullptr, "it could not be loaded:");
  }
  void unload() { check(::dlclose(library_) == 0, "it could not be unloaded:"); }

  int call(const char* name) const {
    auto* function = reinterpret_cast<int (*)()>(::dlsym(library_, name));
    check(function != nullptr, "a function is missing:");
    return function();
  }
  static bool is_loaded() {
    void* library = ::dlopen(PLUGIN, RTLD_NOW | RTLD_NOLOAD);
    if (library != nullptr) ::dlclose(library);
    return library != nullptr;
  }

 private:
  void* library_;
};

// The thread that uses the plugin ends before it is unloaded.
void load_use_and_unload(const char* function) {
  Plugin plugin;
  std::thread([&] { check(plugin.call(function) == 1, "the task did not run"); }).join();
  plugin.unload();
  check(!Plugin::is_loaded(), "it was not unloaded");
}

// The thread that unloads it has not used it before, and ends afterwards. It kept what the plugin's
// destructors freed, to be given back by a function of the plugin.
void load_use_and_unload_on_another_thread(const char* function) {
  Plugin plugin;
  std::thread([&] { check(plugin.call(function) == 1, "the task did not run"); }).join();
  std::thread([&] {
    plugin.unload();
    check(!Plugin::is_loaded(), "it was not unloaded");
  }).join();
}

// The thread ends afterwards. What it keeps is destroyed by functions of the plugin, so that must
// be there until then.
void unload_before_the_thread_ends() {
  Plugin plugin;
  std::latch used(1);
  std::latch unloaded(1);
  std::thread user([&] {
    check(plugin.call("use_timers") == 1, "the task did not run");
    used.count_down();
    unloaded.wait();
  });
  used.wait();
  plugin.unload();
  unloaded.count_down();
  user.join();
}

void fork_without_the_plugin() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  int status = 1;
  check(::waitpid(child, &status, 0) == child && status == 0, "the child of fork() has failed");
}

}  // namespace

int main() {
  for (int round = 0; round < 3; ++round) {
    load_use_and_unload("use_timers");
    load_use_and_unload("begin_service");
    for (const char* function :
         {"begin_service", "begin_service_to_stop", "begin_service_to_cancel"})
      load_use_and_unload_on_another_thread(function);
    unload_before_the_thread_ends();
  }
  load_use_and_unload("use_timers");
  fork_without_the_plugin();  // its handlers went with it
  return 0;
}
