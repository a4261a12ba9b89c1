// SPDX-License-Identifier: Apache-2.0
#include "worker/compile/cancel.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace kiln::worker {

CancelToken::CancelToken() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

CancelToken::~CancelToken() {
  if (descriptor_ >= 0) close(descriptor_);
}

void CancelToken::Cancel() {
  if (cancelled_.exchange(true, std::memory_order_acq_rel)) return;
  const uint64_t one = 1;
  // Nobody reads the counter, so a full one cannot happen and the descriptor stays readable.
  [[maybe_unused]] const ssize_t written = write(descriptor_, &one, sizeof one);
}

}  // namespace kiln::worker
