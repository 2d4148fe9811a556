// The durable queue without a server: an engine on a RocksDB directory, driven by the loop of this
// program. Puts a job, closes the queue, opens it again, and takes the job.
//
//   ./build/embedded_queue /tmp/embedded-queue

#include <carillon/queue/disk_store.h>
#include <carillon/queue/engine.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

namespace {

using carillon::queue::Delivery;
using carillon::queue::DiskStore;
using carillon::queue::Engine;
using carillon::queue::Now;

Now read_clocks() {
  const auto ns = [](auto time) {
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
  };
  // The wall clock is read first; now.h says why.
  const std::uint64_t utc = ns(std::chrono::system_clock::now().time_since_epoch());
  return {.utc_ns = utc, .mono_ns = ns(std::chrono::steady_clock::now().time_since_epoch())};
}

void put_one_job(const std::string& directory) {
  DiskStore store(directory);
  Engine engine(store, {}, read_clocks());
  const auto client = engine.connect();
  engine.put(client, read_clocks(), {.due_in = 300}, "hello from the last run");
  store.sync();  // only now may the program say that the job is kept
  engine.close();
}

int take_the_job(const std::string& directory) {
  DiskStore store(directory);
  Engine engine(store, {}, read_clocks());
  const auto client = engine.connect();
  auto got = engine.reserve(client, read_clocks(), std::nullopt);
  while (!got) {
    const auto wakeup = engine.next_wakeup();
    if (!wakeup) return 1;
    std::this_thread::sleep_until(
        std::chrono::steady_clock::time_point(std::chrono::nanoseconds(*wakeup)));
    engine.advance(read_clocks());
    for (Delivery& delivery : engine.take_deliveries()) got = delivery;
  }
  std::printf("job %llu: %s\n", static_cast<unsigned long long>(got->job.id),
              whole_body(store, got->job.body_id, got->job.body_bytes).c_str());
  const bool removed = engine.remove(client, read_clocks(), got->job.id).done;
  store.sync();
  engine.close();
  return removed ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string directory = argc > 1 ? argv[1] : "embedded-queue-data";
  put_one_job(directory);
  return take_the_job(directory);
}
