// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

namespace kiln::runtime {

Pages::~Pages() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

Pages::Pages(Pages&& other) noexcept { *this = std::move(other); }

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  std::swap(data_, other.data_);
  std::swap(usable_, other.usable_);
  return *this;
}

bool Pages::Map(int64_t bytes) {
  if (bytes == 0) return true;
  constexpr int64_t kHuge = int64_t{2} << 20;
  constexpr int64_t kLargest = int64_t{1} << 46;  // beyond any address space
  if (bytes < 0 || bytes > kLargest) return false;
  const int64_t page = sysconf(_SC_PAGESIZE);
  usable_ = (bytes + page - 1) / page * page;
  mapped_ = usable_ + kHuge + page;
  void* mapping = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return false;
  mapping_ = static_cast<char*>(mapping);
  const uintptr_t start = reinterpret_cast<uintptr_t>(mapping_);
  data_ = mapping_ + ((start + kHuge - 1) / kHuge * kHuge - start);
  // Neither is needed for correctness: without the first there are small pages, without the second
  // no guard.
  if (usable_ >= kHuge) (void)madvise(data_, usable_, MADV_HUGEPAGE);
  (void)mprotect(end(), page, PROT_NONE);
  return true;
}

}  // namespace kiln::runtime
