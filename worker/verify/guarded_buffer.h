// SPDX-License-Identifier: Apache-2.0
// Memory for one tensor between two inaccessible pages, so that an access beyond it faults, at the
// place where it can be told from the tensor's bytes alone. What lies between the tensor and the
// pages is filled with a canary and checked. Movable; one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kiln::verify {

// Where the tensor lies. The base pointer always has the alignment that was promised.
enum class Placement {
  kEnd,      // as near to the page after it as the alignment allows: reads and writes past the end
             // fault
  kAligned,  // as near to it as alignment allows that is no better than promised: code that relies
             // on more faults
  kStart,    // right behind the page before it: accesses before the first byte fault
};

class GuardedBuffer {
 public:
  // `alignment` in bytes, a power of two up to 4096. RESOURCE_EXHAUSTED: no memory. `name`: of the
  // tensor, for faults.
  static absl::StatusOr<GuardedBuffer> Make(absl::string_view name, int64_t bytes,
                                            int64_t alignment);
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept;
  ~GuardedBuffer();

  // Moves the tensor; contents and canaries are undefined until filled.
  void Place(Placement placement);
  uint8_t* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

  // Fills everything accessible but the tensor itself with the canary.
  void SetCanary();
  // Empty, or which byte before or after the tensor was written: "wrote 8 bytes past the end".
  std::string CheckCanary() const;

 private:
  GuardedBuffer() = default;

  uint8_t* mapping_ = nullptr;
  int64_t mapped_ = 0;       // bytes, both guard pages included
  uint8_t* data_ = nullptr;  // the tensor's first byte
  int64_t bytes_ = 0;
  int64_t alignment_ = 1;
  int slot_ = -1;  // in the table of guard_fault.h
};

}  // namespace kiln::verify
