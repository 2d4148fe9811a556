// The text that Prometheus reads (src/server/metrics).
// Row Q18 of the product's table.
#include "server/metrics/metrics.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <sstream>
#include <string>

#include "test_server.h"

namespace carillon::server::metrics {
namespace {

using Kind = Exposition::Kind;

std::string text_of(Service& service, queue::ClientId client) {
  Scrape scrape(service, client);
  while (!scrape.look()) {
  }
  return scrape.text();
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(Exposition, NamesAFamilyItsLabelsAndItsValue) {
  Exposition text;
  text.family("jobs_put_total", Kind::kCounter, "Jobs put.");
  text.sample({{"tube", "mail"}, {"state", "a\"b\\c\nd"}}, std::uint64_t{42});
  EXPECT_EQ(text.take(),
            "# HELP jobs_put_total Jobs put.\n# TYPE jobs_put_total counter\n"
            "jobs_put_total{tube=\"mail\",state=\"a\\\"b\\\\c\\nd\"} 42\n");
}

TEST(Exposition, CountsTheBucketsOfAHistogramUp) {
  base::Histogram histogram;
  histogram.observe(0.0001);
  for (int n = 0; n < 3; ++n) histogram.observe(0.0002);
  histogram.observe(61);
  Exposition text;
  text.family("commit_seconds", Kind::kHistogram, "Commits.");
  text.sample(histogram);
  const std::string all = text.take();
  EXPECT_TRUE(has_line(all, "commit_seconds_bucket{le=\"0.0001\"} 1")) << all;
  EXPECT_TRUE(has_line(all, "commit_seconds_bucket{le=\"0.00025\"} 4"));
  EXPECT_TRUE(has_line(all, "commit_seconds_bucket{le=\"60\"} 4"));
  EXPECT_TRUE(has_line(all, "commit_seconds_bucket{le=\"+Inf\"} 5"));
  EXPECT_TRUE(has_line(all, "commit_seconds_count 5"));
}

TEST(Metrics, TellOfJobsByTubeAndState) {
  beanstalk::TestServer server;
  beanstalk::Client client(server);
  client.say("use mail\r\nput 0 0 60 1\r\na\r\nput 0 60 60 1\r\nb\r\n");
  client.say("watch mail\r\nreserve\r\n");
  server.service.commits().observe(0.002);
  const std::string text = text_of(server.service, client.session().client());
  EXPECT_TRUE(has_line(text, "carillon_jobs{tube=\"mail\",state=\"reserved\"} 1")) << text;
  EXPECT_TRUE(has_line(text, "carillon_jobs{tube=\"mail\",state=\"delayed\"} 1"));
  EXPECT_TRUE(has_line(text, "carillon_jobs{tube=\"*\",state=\"delayed\"} 0"));
  EXPECT_TRUE(has_line(text, "carillon_jobs_put_total{tube=\"mail\"} 2"));
  EXPECT_TRUE(has_line(text, "carillon_tubes 2"));
  EXPECT_TRUE(has_line(text, "carillon_wheel_timers{wheel=\"ttrs\",level=\"1\"} 1")) << text;
  EXPECT_TRUE(has_line(text, "carillon_wheel_timers{wheel=\"due\",level=\"2\"} 1"));
  EXPECT_TRUE(has_line(text, "carillon_wheel_timers{wheel=\"waits\",level=\"0\"} 0"));
  EXPECT_TRUE(has_line(text, "carillon_takes_jobs 1"));
  EXPECT_TRUE(has_line(text, "carillon_commit_duration_seconds_count 1"));
}

TEST(Metrics, TellHowLateJobsAre) {
  beanstalk::TestServer server;
  beanstalk::Client client(server);
  client.say("use mail\r\nwatch mail\r\nput 0 3 60 1\r\na\r\nput 0 9 60 1\r\nb\r\n");
  client.say("put-job 1 max-attempts=1\r\nc\r\nreserve\r\nfail-job 3 0\r\n\r\n");
  const auto text = [&] { return text_of(server.service, client.session().client()); };
  EXPECT_TRUE(has_line(text(), "carillon_dead_total{tube=\"mail\"} 1")) << text();
  EXPECT_TRUE(has_line(text(), "carillon_jobs_fired_total 0"));
  EXPECT_TRUE(has_line(text(), "carillon_oldest_ready_age_seconds{tube=\"mail\"} 0"));
  EXPECT_TRUE(has_line(text(), "carillon_next_due_timestamp_seconds{tube=\"mail\"} 1700000003"));
  server.pass(5'000);
  EXPECT_TRUE(has_line(text(), "carillon_jobs_fired_total 1"));
  EXPECT_TRUE(has_line(text(), "carillon_oldest_ready_age_seconds{tube=\"mail\"} 2"));
  EXPECT_TRUE(has_line(text(), "carillon_next_due_timestamp_seconds{tube=\"mail\"} 1700000009"));
  client.say("reserve\r\n");
  EXPECT_TRUE(has_line(text(), "carillon_job_lateness_seconds_bucket{le=\"0.001\"} 1"));
  EXPECT_TRUE(has_line(text(), "carillon_job_lateness_seconds_bucket{le=\"1\"} 1"));
  EXPECT_TRUE(has_line(text(), "carillon_job_lateness_seconds_bucket{le=\"5\"} 2"));
  EXPECT_TRUE(has_line(text(), "carillon_job_lateness_seconds_sum 2"));
  EXPECT_TRUE(has_line(text(), "carillon_job_lateness_seconds_count 2"));
}

TEST(Metrics, NameEachFamilyOnce) {
  beanstalk::TestServer server;
  beanstalk::Client client(server);
  std::istringstream lines(text_of(server.service, client.session().client()));
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("# TYPE ")) continue;
    const std::string name = line.substr(7, line.rfind(' ') - 7);
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_GT(names.size(), 10u);
}

TEST(Metrics, TellOfTheFirstJobOfAllGroups) {
  beanstalk::TestServer server;
  beanstalk::Client client(server);
  client.say("use mail\r\nput 0 9 60 1\r\na\r\n");
  for (int n = 100; n > 0; --n) {
    const std::string number = std::to_string(n);
    client.say("put-job 1 delay=" + number + "s group=g" + number + "\r\na\r\n");
  }
  const auto text = [&] { return text_of(server.service, client.session().client()); };
  EXPECT_TRUE(has_line(text(), "carillon_next_due_timestamp_seconds{tube=\"mail\"} 1700000001"));
  server.pass(3'500);
  EXPECT_TRUE(has_line(text(), "carillon_oldest_ready_age_seconds{tube=\"mail\"} 2.5")) << text();
  EXPECT_TRUE(has_line(text(), "carillon_next_due_timestamp_seconds{tube=\"mail\"} 1700000004"));
}

// A list keeps what the engine notes of tubes that are forgotten.
TEST(Metrics, LeaveNoListOfTubesOpen) {
  beanstalk::TestServer server;
  beanstalk::Client client(server);
  for (int n = 0; n < 300; ++n)
    client.say("use t" + std::to_string(n) + "\r\nput 0 0 60 1\r\na\r\n");
  const queue::ClientId id = client.session().client();
  server.service.engine().list_tubes(id);
  EXPECT_EQ(server.service.engine().next_tubes(id)->size(), 128u);
  text_of(server.service, id);
  EXPECT_DEATH(server.service.engine().next_tubes(id), "requires: .*has_value");
}

// Each series costs the scraper memory, and there may be a million tubes.
TEST(Metrics, ShowTheFirstTubesAndTheSumOfTheOthers) {
  beanstalk::TestServer server;
  beanstalk::Client client(server);
  for (int n = 0; n < 300; ++n)
    client.say("use t" + std::to_string(n) + "\r\nput 0 0 60 1\r\na\r\n");
  const std::string text = text_of(server.service, client.session().client());
  std::size_t tubes = 0;
  for (auto at = text.find("jobs_put_total{"); at != std::string::npos;
       at = text.find("jobs_put_total{", at + 1))
    ++tubes;
  EXPECT_EQ(tubes, kMostTubes);
  EXPECT_TRUE(has_line(text, "carillon_jobs{tube=\"*\",state=\"ready\"} 201")) << "and default";
  EXPECT_NE(text.find("carillon_puts_total 300\n"), std::string::npos);
}

}  // namespace
}  // namespace carillon::server::metrics
