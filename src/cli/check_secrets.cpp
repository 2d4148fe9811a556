// `carillon check`: the files of the certificate and of the tokens (checks.h).

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "base/start_error.h"
#include "cli/checks.h"
#include "cli/counted.h"
#include "server/api/tokens.h"
#include "server/net/tls_context.h"

namespace carillon::cli {
namespace {

using std::chrono::system_clock;

constexpr std::chrono::days kSoon{21};

void check_times(const server::TlsContext& tls, Findings& findings) {
  const auto left = tls.not_after() - system_clock::now();
  using std::chrono::days;
  const days whole = std::max(std::chrono::duration_cast<days>(left), days(0));
  const std::string more = counted(static_cast<std::uint64_t>(whole.count()), "day") + " more";
  const std::string& file = tls.files().certificate;
  constexpr std::string_view kRenew = "renew it, and send SIGHUP to the server";
  if (left.count() <= 0) {
    findings.fail("tls", fmt::format("the certificate in {} has ended: clients refuse it", file),
                  std::string(kRenew));
  } else if (tls.not_before() > system_clock::now()) {
    findings.fail("tls", fmt::format("the certificate in {} does not hold yet", file),
                  "wait, or set the clock right");
  } else if (left < kSoon) {
    findings.warn("tls", fmt::format("the certificate in {} holds for {}", file, more),
                  std::string(kRenew));
  } else {
    findings.ok("tls",
                fmt::format("the certificate in {} fits its key, and holds for {}", file, more));
  }
}

void check_tls(const std::string& certificate, const std::string& key, Findings& findings) {
  try {
    const server::TlsContext tls({.certificate = certificate, .key = key});
    check_times(tls, findings);
    const std::string why = server::key_exposure(key);
    if (!why.empty()) findings.warn("tls", why, "chmod 600 " + key);
  } catch (const base::StartError& error) {
    findings.fail("tls", error.what(), "carillon serve would not start with it");
  }
}

}  // namespace

void check_secrets(const SecretFiles& files, Findings& findings) {
  if (files.certificate && files.key) check_tls(*files.certificate, *files.key, findings);
  if (!files.tokens) return;
  try {
    const server::Tokens tokens(*files.tokens);
    findings.ok("tokens", fmt::format("{} in {}", tokens.size(), *files.tokens));
  } catch (const base::StartError& error) {
    findings.fail("tokens", error.what(), "carillon serve would not start with it");
  }
}

}  // namespace carillon::cli
