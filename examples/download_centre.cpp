// A download centre: a producer puts downloads, each with the time at which it may begin, and
// consumers take them when they are due. From each mirror at most two downloads run at once. What
// exceeds that goes back into the queue with a delay, and its consumer takes the next job.
//
//   ./build/carillon serve --data ./carillon-data &
//   ./build/download_centre 127.0.0.1 11300
//
// Only the job tells a consumer which mirror it needs, so the consumer must take it to find out
// that this mirror is busy. Released without a delay, the job would be ready at once, and the
// consumers would pass it round as fast as they can until a place is free. Released with a delay,
// it costs one command, and nothing more until its time.
//
// The mirrors are HTTP servers in this program; one of them breaks off a download.
// bench/download_centre loads such a centre, and one that polls a table of PostgreSQL.

#include <atomic>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace net = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using net::ip::tcp;
using std::chrono::milliseconds;

constexpr int kAtOnce = 2;     // downloads from a mirror
constexpr int kConsumers = 6;  // more than run at once, so some take a job in vain
constexpr int kFiles = 8;      // of each mirror
constexpr std::size_t kBytes = 100'000;
constexpr milliseconds kComesBack{50};

// Sends files of kBytes, piece by piece, as a slow line would. Breaks off the first if told to.
class Mirror {
 public:
  Mirror(milliseconds pause, bool breaks_off) : pause_(pause), breaks_off_(breaks_off) {}
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;
  ~Mirror() {
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR);  // ends accept()
    accepting_.join();
  }

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  std::counting_semaphore<kAtOnce> places{kAtOnce};  // the bound; all consumers share it

 private:
  void accept() {
    std::vector<std::jthread> answers;
    error_code closed;
    while (true) {
      tcp::socket socket = acceptor_.accept(closed);
      if (closed) return;
      answers.emplace_back([this, client = std::move(socket)]() mutable { answer(client); });
    }
  }

  void answer(tcp::socket& client) {
    error_code error;  // a client that hangs up is no concern of the mirror's
    boost::beast::flat_buffer input;
    http::request<http::empty_body> request;
    http::read(client, input, request, error);
    http::response<http::empty_body> head;
    head.content_length(kBytes);
    http::response_serializer<http::empty_body> serializer(head);
    http::write_header(client, serializer, error);
    const std::string piece(kBytes / 10, '.');
    for (int left = breaks_off_.exchange(false) ? 5 : 10; left > 0 && !error; --left) {
      std::this_thread::sleep_for(pause_);
      net::write(client, net::buffer(piece), error);
    }
  }

  net::io_context io_;
  tcp::acceptor acceptor_{io_, {net::ip::address_v4::loopback(), 0}};  // 0: the system chooses
  milliseconds pause_;
  std::atomic<bool> breaks_off_;
  std::thread accepting_{[this] { accept(); }};  // last: it uses what is above
};

// Fetches a file. Returns its size; throws boost::system::system_error if that fails.
std::uintmax_t download(const std::string& path, std::uint16_t port, const std::string& file) {
  net::io_context io;
  tcp::socket socket(io);
  socket.connect({net::ip::address_v4::loopback(), port});
  http::write(socket, http::request<http::empty_body>(http::verb::get, path, 11));
  http::response_parser<http::file_body> response;
  boost::beast::flat_buffer input;
  error_code error;
  response.get().body().open(file.c_str(), boost::beast::file_mode::write, error);
  if (!error) http::read(socket, input, response, error);
  if (error) throw boost::system::system_error(error);
  response.get().body().close();
  return std::filesystem::file_size(file);
}

struct Job {
  std::string id, body;
};

// A connection to the queue. A library for beanstalkd would do as well, but for `put-job` and
// `fail-job`, which are Carillon's own (docs/protocol.md).
class Queue {
 public:
  Queue(const char* host, const char* port) {
    net::connect(server_, tcp::resolver(io_).resolve(host, port));
  }

  // The path is also the key: a download that is put again is not done twice. It is tried three
  // times.
  void put(const std::string& path, milliseconds delay) {
    ask("put-job " + std::to_string(path.size()) + " key=" + path + " delay=" +
            std::to_string(delay.count()) + "ms max-attempts=3 backoff=50ms..10s\r\n" + path,
        "INSERTED ");
  }
  std::optional<Job> reserve(milliseconds patience) {
    std::string answer = ask("reserve-with-timeout-ms " + std::to_string(patience.count()), "");
    if (answer == "TIMED_OUT") return std::nullopt;
    answer.erase(0, std::string("RESERVED ").size());
    const std::size_t space = answer.find(' ');
    return Job{answer.substr(0, space), read(std::stoul(answer.substr(space)))};
  }
  void release(const Job& job, milliseconds delay) {
    ask("release-ms " + job.id + " 0 " + std::to_string(delay.count()), "RELEASED");
  }
  void fail(const Job& job, const std::string& why) {
    ask("fail-job " + job.id + " " + std::to_string(why.size()) + "\r\n" + why, "AGAIN ");
  }
  void remove(const Job& job) { ask("delete " + job.id, "DELETED"); }

 private:
  // Returns the line of the answer, which must begin with `expected`.
  std::string ask(const std::string& command, const std::string& expected) {
    net::write(server_, net::buffer(command + "\r\n"));
    std::string line = take(net::read_until(server_, net::dynamic_buffer(input_), "\r\n"));
    if (!line.starts_with(expected)) throw std::runtime_error("the queue said: " + line);
    return line;
  }
  std::string read(std::size_t bytes) {
    const std::size_t whole = bytes + 2;
    if (input_.size() < whole)
      net::read(server_, net::dynamic_buffer(input_), net::transfer_exactly(whole - input_.size()));
    return take(whole);
  }
  // Takes this many bytes of the input, and returns them without the end of their line.
  std::string take(std::size_t bytes) {
    std::string taken = input_.substr(0, bytes - 2);
    input_.erase(0, bytes);
    return taken;
  }

  net::io_context io_;
  tcp::socket server_{io_};
  std::string input_;
};

struct Centre {
  Mirror quick{milliseconds(3), false}, slow{milliseconds(6), true};
  std::atomic<int> left{2 * kFiles}, given_back{0}, failed{0};
  std::atomic<std::uintmax_t> bytes{0};
  std::atomic<bool> is_cut_off{false};
};

void tell(const boost::system::system_error& error) {
  std::fprintf(stderr, "download_centre: %s\n", error.code().message().c_str());
}

// A consumer; there could be more of them on other machines. It runs until nothing is left.
void consume(Centre& centre, Queue queue, const std::string& folder) {
  while (centre.left > 0 && !centre.is_cut_off) {
    const std::optional<Job> job = queue.reserve(milliseconds(50));
    if (!job) continue;
    Mirror& mirror = job->body.starts_with("/quick/") ? centre.quick : centre.slow;
    if (!mirror.places.try_acquire()) {
      queue.release(*job, kComesBack);
      ++centre.given_back;
      continue;
    }
    try {
      centre.bytes += download(job->body, mirror.port(), folder + "/" + job->id);
      queue.remove(*job);
      --centre.left;
    } catch (const boost::system::system_error& error) {
      queue.fail(*job, error.what());  // comes back after 50 ms, 100 ms, ...
      ++centre.failed;
    }
    mirror.places.release();
  }
}

// Jobs that it holds then come back at their time.
void consume_until_it_fails(Centre& centre, const char* host, const char* port,
                            const std::string& folder) try {
  consume(centre, Queue(host, port), folder);
} catch (const boost::system::system_error& error) {
  centre.is_cut_off = true;
  tell(error);
}

}  // namespace

int main(int argc, char** argv) try {
  const char* host = argc > 2 ? argv[1] : "127.0.0.1";
  const char* port = argc > 2 ? argv[2] : "11300";
  std::string folder = std::filesystem::temp_directory_path() / "download-centre-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return 1;

  Centre centre;
  Queue producer(host, port);
  for (int file = 0; file < kFiles; ++file) {
    for (const char* mirror : {"/quick/", "/slow/"})
      producer.put(mirror + std::to_string(file), milliseconds(20 * file));
  }
  {
    std::vector<std::jthread> consumers;
    for (int i = 0; i < kConsumers; ++i)
      consumers.emplace_back([&] { consume_until_it_fails(centre, host, port, folder); });
  }
  std::filesystem::remove_all(folder);
  if (centre.is_cut_off) return 1;
  std::printf("%d downloads, %ju bytes, %d attempts failed, %d jobs went back with a delay\n",
              2 * kFiles, centre.bytes.load(), centre.failed.load(), centre.given_back.load());
  return 0;
} catch (const boost::system::system_error& error) {
  tell(error);
  return 1;
}
