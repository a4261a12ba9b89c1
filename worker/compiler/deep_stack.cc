// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/deep_stack.h"

#include <pthread.h>

#include <cstddef>

namespace kiln::compiler {
namespace {

// 4,096 nodes, some four frames each, and sanitizers' frames are ten times as large. Memory is
// taken only as far as it is touched.
constexpr size_t kStackBytes = size_t{256} << 20;

void* Run(void* work) {
  (*static_cast<absl::FunctionRef<void()>*>(work))();
  return nullptr;
}

}  // namespace

void OnDeepStack(absl::FunctionRef<void()> work) {
  pthread_attr_t attributes;
  pthread_t thread;
  bool started = false;
  if (pthread_attr_init(&attributes) == 0) {
    started = pthread_attr_setstacksize(&attributes, kStackBytes) == 0 &&
              pthread_create(&thread, &attributes, Run, &work) == 0;
    pthread_attr_destroy(&attributes);
  }
  if (started) {
    pthread_join(thread, nullptr);
  } else {
    work();
  }
}

}  // namespace kiln::compiler
