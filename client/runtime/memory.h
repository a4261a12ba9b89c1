// SPDX-License-Identifier: Apache-2.0
// Pages from the system: zeroed, 2 MiB-aligned, on huge pages where the system gives them, with a
// guard page behind. Physical memory comes with the first touch, so that a generous reservation
// costs address space only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::runtime {

class Pages {
 public:
  Pages() = default;
  ~Pages();
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  // False if the system has none. `bytes` 0: nothing is mapped, data() is null.
  bool Map(int64_t bytes);

  char* data() const { return data_; }
  // One past the last usable byte, where the guard begins.
  char* end() const { return data_ + usable_; }

 private:
  char* mapping_ = nullptr;
  size_t mapped_ = 0;
  char* data_ = nullptr;
  size_t usable_ = 0;
};

}  // namespace kiln::runtime
