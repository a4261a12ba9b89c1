// SPDX-License-Identifier: Apache-2.0
// Answers that this process got lately, by the request's bytes. Bounded, least recently used out
// first; an answer is forgotten after its lifetime, since a better one may have been published.
// Thread-safe.
#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/time/time.h"
#include "client/kiln_client.h"

namespace kiln::client {

class AnswerCache {
 public:
  AnswerCache(size_t capacity, absl::Duration lifetime)
      : capacity_(capacity), lifetime_(lifetime) {}

  std::optional<Answer> Find(const std::string& request, absl::Time now);
  void Insert(const std::string& request, const Answer& answer, absl::Time now);

 private:
  struct Entry {
    std::string request;
    Answer answer;
    absl::Time until;
  };

  const size_t capacity_;
  const absl::Duration lifetime_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // the most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_request_;
};

}  // namespace kiln::client
