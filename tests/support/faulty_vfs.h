// SPDX-License-Identifier: Apache-2.0
// A file system under SQLite that fails when it is told to: the system's own, with faults on
// writing calls. While one is alive it is SQLite's default, so that it must outlive the stores
// opened meanwhile.
#pragma once

#include <atomic>
#include <cstdint>

namespace kiln {

class FaultyVfs {
 public:
  FaultyVfs();
  ~FaultyVfs();
  FaultyVfs(const FaultyVfs&) = delete;

  enum Call { kWrite = 1, kSync = 2, kTruncate = 4, kLock = 8, kRead = 16 };
  // From the n-th call of these kinds on (0: the next), `times` of them fail with an SQLite code. A
  // write that fails with SQLITE_FULL has written half of its bytes.
  void Fail(int calls, int64_t nth, int code, int64_t times = 1);
  void Heal();
  int64_t injected() const { return injected_; }

  // Used by the file system's functions: the code to fail with, or 0.
  int Next(Call call);

 private:
  std::atomic<int> calls_{0}, code_{0};
  std::atomic<int64_t> before_{0}, left_{0}, injected_{0};
};

}  // namespace kiln
