// SPDX-License-Identifier: Apache-2.0
// Says to whoever waits that nobody wants the result any more. Set once, from any thread; waits
// poll its descriptor, so that a cancel interrupts a compile or a measurement in the middle.
// Thread-safe.
#pragma once

#include <atomic>

namespace kiln::worker {

class CancelToken {
 public:
  CancelToken();
  ~CancelToken();
  CancelToken(const CancelToken&) = delete;
  CancelToken& operator=(const CancelToken&) = delete;

  void Cancel();
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  int descriptor() const {
    return descriptor_;
  }  // readable once cancelled; -1 if none could be made

 private:
  std::atomic<bool> cancelled_{false};
  int descriptor_ = -1;
};

}  // namespace kiln::worker
