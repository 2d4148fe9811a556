// Jobs that are made from their number alone, for tests of DiskStore.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>

#include "carillon/queue/store.h"
#include "queue/file_bytes.h"

namespace carillon::queue {

inline JobRecord job(JobId id, std::size_t body_bytes = 0) {
  return {.id = id,
          .tube = 1,
          .priority = 0,
          .due = 1'000 + id,
          .ttr = 1'000,
          .created = 1,
          .body_bytes = static_cast<std::uint32_t>(body_bytes),
          .history = {}};
}

// Returns bytes that do not compress, different for each job.
inline std::string body_of(JobId id, std::size_t size) {
  std::mt19937_64 random(id);
  std::string body(size, '\0');
  for (char& byte : body) byte = static_cast<char>(random());
  return body;
}

inline Sequence put(Store& store, JobId id, std::size_t size = 100) {
  const std::string body = body_of(id, size);
  return store.append(
      {.jobs = {{{}, job(id), body}}, .tubes = {{1, "default", id, 0}}, .watermarks = {}});
}

inline Sequence erase(Store& store, JobId id) {
  return store.append({.jobs = {{job(id), {}, {}}}, .tubes = {}, .watermarks = {}});
}

// Returns the text of the StoreError that `action` throws; empty if it throws none.
inline std::string complaint(const std::function<void()>& action) {
  try {
    action();
  } catch (const StoreError& error) {
    return error.what();
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace carillon::queue
