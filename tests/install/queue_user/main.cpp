// A user's program: puts a job into a queue on disk, closes and reopens the queue, and reserves the
// job.
#include "carillon/queue/engine.h"

#include <cstdio>
#include <filesystem>

#include "carillon/queue/disk_store.h"

namespace {

using namespace carillon::queue;

constexpr Now at_second(std::uint64_t second) {
  return {.utc_ns = (1'700'000'000 + second) * 1'000'000'000, .mono_ns = second * 1'000'000'000};
}

int fail(const char* what) {
  std::fprintf(stderr, "queue_user: %s\n", what);
  return 1;
}

}  // namespace

int main() {
  const std::filesystem::path directory = std::filesystem::current_path() / "queue_user_data";
  std::filesystem::remove_all(directory);
  JobId put = 0;
  {
    DiskStore store(directory);
    Engine engine(store, {}, at_second(0));
    put = engine.put(engine.connect(), at_second(0), {.due_in = 3'000}, "hello").id;
    store.sync();
  }
  DiskStore store(directory);
  Engine engine(store, {}, at_second(1));
  const ClientId worker = engine.connect();
  if (engine.reserve(worker, at_second(2), 0)->kind != Delivery::Kind::kTimedOut)
    return fail("the job came early");
  const auto got = engine.reserve(worker, at_second(3), 0);
  if (got->kind != Delivery::Kind::kReserved || got->job.id != put) {
    return fail("the job did not come at its time");
  }
  if (store.body(put) != "hello") return fail("the job has lost its body");
  return 0;
}
