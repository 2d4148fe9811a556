// A checkpoint of the store, which a client asks for to back it up: it opens as a store, and has
// what the store had at a moment since then (server.h).

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>

#include "simulator/requests.h"
#include "simulator/server.h"
#include "simulator/trace.h"

namespace carillon::simulator {

void Server::poll_checkpoint() {
  constexpr int kLong = 1'000;
  if (died() || !service_.checkpoint().pending()) return;
  const auto result = service_.checkpoint().poll();
  if (died()) return;
  if (!result) {
    if (++checkpoint_polls_ > kLong && !excuses().fails)
      throw Violation("a checkpoint is never made");
    return;
  }
  checkpoint_polls_ = 0;
  const auto found = std::find_if(
      connections_.begin(), connections_.end(),
      [&](const auto& connection) { return connection->session().client() == result->client; });
  if (found == connections_.end()) throw Violation("a checkpoint is made for nobody");
  if (result->checkpoint) look_at_checkpoint(*result->checkpoint);
  if (died()) return;
  Connection& connection = **found;
  connection.session().checkpoint_made(*result);
  const std::string replies = connection.new_replies();
  std::string_view rest = replies;
  const auto reply = take_answer(rest);
  if (!reply || !rest.empty()) throw Violation("a checkpoint is answered '" + replies + "'");
  trace(connection.number(), "waited and got", reply->line);
  model_.judge_checkpoint(connection.number(), *reply, excuses());
  note_reply(connection, {}, *reply, 0);
  join_line(connection);
}

// A user would back it up, and open the copy. Here it is opened in place: that must not hurt the
// store.
void Server::look_at_checkpoint(const queue::Checkpoint& checkpoint) {
  try {
    const queue::DiskStore copy(checkpoint.path, options_.store);
    history_.expect_state_since(checkpoint_from_, copy);
  } catch (const queue::StoreError& error) {
    if (!died() && !excuses().fails)
      throw Violation(std::string("a checkpoint cannot be opened: ") + error.what());
  }
}

// What a process has left when it died, the next one removes.
void Server::expect_no_checkpoints() const {
  for (const auto& entry : std::filesystem::directory_iterator(kDirectory)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("checkpoint-") && !died() && !excuses().fails)
      throw Violation(name + " is left of a process that is gone");
  }
}

}  // namespace carillon::simulator
