// SPDX-License-Identifier: Apache-2.0
#include "client/answer_cache.h"

namespace kiln::client {

std::optional<Answer> AnswerCache::Find(const std::string& request, absl::Time now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = by_request_.find(request);
  if (found == by_request_.end()) return std::nullopt;
  if (found->second->until <= now) {
    entries_.erase(found->second);
    by_request_.erase(found);
    return std::nullopt;
  }
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->answer;
}

void AnswerCache::Insert(const std::string& request, const Answer& answer, absl::Time now) {
  if (capacity_ == 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto found = by_request_.find(request); found != by_request_.end()) {
    entries_.erase(found->second);
    by_request_.erase(found);
  }
  entries_.push_front({request, answer, now + lifetime_});
  by_request_[request] = entries_.begin();
  if (entries_.size() > capacity_) {
    by_request_.erase(entries_.back().request);
    entries_.pop_back();
  }
}

}  // namespace kiln::client
