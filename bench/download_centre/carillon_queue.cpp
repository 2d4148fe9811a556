// The centre's queue in Carillon. A consumer is a connection: it waits in `reserve`, has one
// download at a time, and sends its `delete` or `release-ms` together with its next `reserve`.

#include <sys/epoll.h>
#include <unistd.h>

#include <stdexcept>
#include <vector>

#include "../beanstalk/bodies.h"
#include "../beanstalk/connection.h"
#include "../beanstalk/dialect.h"
#include "task_queue.h"

namespace carillon::bench {
namespace {

struct Producer {
  Connection connection;
  bool idle = true;
  std::uint64_t number = 0;
};

struct Consumer {
  Connection connection;
  std::string id;  // the job that it has or had last
  std::uint64_t number = 0;
};

class CarillonQueue final : public TaskQueue {
 public:
  CarillonQueue(const Plan& plan, QueueEvents& events)
      : plan_(plan),
        events_(events),
        dialect_(beanstalk_dialect()),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    for (std::size_t i = 0; i < plan.producers; ++i) producers_.push_back({connect(i)});
    for (std::size_t i = 0; i < plan.consumers; ++i)
      consumers_.push_back({connect(plan.producers + i), {}});
  }
  CarillonQueue(const CarillonQueue&) = delete;
  CarillonQueue& operator=(const CarillonQueue&) = delete;
  ~CarillonQueue() override { ::close(epoll_); }

  int epoll() const override { return epoll_; }

  bool put(std::uint64_t number, std::uint64_t now_us, std::uint64_t due_us,
           std::string_view body) override {
    for (Producer& producer : producers_) {
      if (!producer.idle) continue;
      producer.idle = false;
      producer.number = number;
      const std::uint64_t delay_ms = (due_us - now_us) / 1'000;
      out_ = "put-ms 0 " + std::to_string(delay_ms) + " 60000 " + std::to_string(body.size());
      out_.append("\r\n").append(body).append("\r\n");
      producer.connection.send(out_, 1);
      return true;
    }
    return false;
  }

  void start() override {
    for (Consumer& consumer : consumers_) consumer.connection.send("reserve\r\n", 1);
  }

  void finish(Download download) override {
    Consumer& consumer = consumers_[download.handle];
    consumer.connection.send("delete " + consumer.id + "\r\nreserve\r\n", 2);
  }

  void on_input() override {
    epoll_event ready[64];
    const int count = ::epoll_wait(epoll_, ready, 64, 0);
    for (int i = 0; i < count; ++i) {
      const auto index = static_cast<std::size_t>(ready[i].data.u64);
      if (index < plan_.producers) {
        on_input(producers_[index]);
      } else {
        on_input(index - plan_.producers);
      }
    }
  }

  std::optional<std::uint64_t> on_time(std::uint64_t) override { return std::nullopt; }

 private:
  Connection connect(std::size_t index) const {
    const std::size_t colon = plan_.server.rfind(':');
    Connection connection(plan_.server.substr(0, colon),
                          static_cast<std::uint16_t>(std::stoul(plan_.server.substr(colon + 1))),
                          *dialect_);
    epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLET, .data = {.u64 = index}};
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.fd(), &event);
    return connection;
  }

  void on_input(Producer& producer) {
    producer.connection.step([&](std::string_view reply) {
      dialect_->expect_changes(reply);
      producer.idle = true;
      events_.put_answered(producer.number);
    });
  }

  void on_input(std::size_t index) {
    Consumer& consumer = consumers_[index];
    bool reserved = false;
    consumer.connection.step([&](std::string_view reply) {
      if (reply == "DELETED\r\n") return events_.finish_answered(consumer.number);
      if (reply == "RELEASED\r\n") return;
      jobs_.clear();
      dialect_->read_jobs(reply, jobs_);
      if (jobs_.empty()) throw std::runtime_error("a reserve timed out");
      consumer.id = jobs_[0].id;
      consumer.number = Bodies::due_us(jobs_[0].body);  // the centre keeps the number there
      reserved = true;
    });
    if (!reserved) return;
    if (events_.take_place(consumer.number)) {
      events_.begin({consumer.number, index});
    } else {
      events_.comes_back_us(consumer.number);
      consumer.connection.send("release-ms " + consumer.id + " 0 " +
                                   std::to_string(plan_.comes_back_ms) + "\r\nreserve\r\n",
                               2);
    }
  }

  const Plan& plan_;
  QueueEvents& events_;
  std::unique_ptr<Dialect> dialect_;
  int epoll_;
  std::vector<Producer> producers_;
  std::vector<Consumer> consumers_;
  std::vector<ReservedJob> jobs_;
  std::string out_;
};

}  // namespace

std::unique_ptr<TaskQueue> carillon_queue(const Plan& plan, QueueEvents& events) {
  return std::make_unique<CarillonQueue>(plan, events);
}

}  // namespace carillon::bench
