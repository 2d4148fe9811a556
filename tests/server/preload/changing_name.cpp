// A library for LD_PRELOAD that answers a look-up of one name as an attacker's name server would:
// with another address the second time. tests/server/push_guard_test.py uses it.
//
// CARILLON_NAME is the name; CARILLON_ADDRESSES has two addresses, with a comma between them: the
// answer to the first look-up, and to all later ones. Other names are looked up as ever.

#include <dlfcn.h>
#include <netdb.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

// Returns the name to look up instead.
std::string instead_of(const char* name) {
  static std::atomic<int> look_ups{0};
  const char* const changing = std::getenv("CARILLON_NAME");
  const char* const addresses = std::getenv("CARILLON_ADDRESSES");
  if (changing == nullptr || addresses == nullptr || std::strcmp(name, changing) != 0) return name;
  const std::string both = addresses;
  const std::size_t comma = both.find(',');
  return look_ups++ == 0 ? both.substr(0, comma) : both.substr(comma + 1);
}

}  // namespace

extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  if (name == nullptr) return real(name, service, hints, found);
  return real(instead_of(name).c_str(), service, hints, found);
}
