// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/guarded_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/verify/guard_fault.h"

namespace kiln::verify {
namespace {

// Neither a NaN pattern nor a fill of verify.cc, so that a copy of either shows.
constexpr uint8_t kCanary = 0xC3;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// First byte in [begin, end) that is not the canary, or null.
const uint8_t* FirstWritten(const uint8_t* begin, const uint8_t* end) {
  const uint8_t* found = std::find_if(begin, end, [](uint8_t b) { return b != kCanary; });
  return found == end ? nullptr : found;
}

}  // namespace

absl::StatusOr<GuardedBuffer> GuardedBuffer::Make(absl::string_view name, int64_t bytes,
                                                  int64_t alignment) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  GuardedBuffer buffer;
  buffer.bytes_ = bytes;
  buffer.alignment_ = alignment;
  buffer.mapped_ = RoundUp(bytes + 2 * alignment, page) + 2 * page;
  void* memory = mmap(nullptr, static_cast<size_t>(buffer.mapped_), PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat(name, ": no memory for ", bytes, " bytes"));
  }
  buffer.mapping_ = static_cast<uint8_t*>(memory);
  if (mprotect(buffer.mapping_ + page, static_cast<size_t>(buffer.mapped_ - 2 * page),
               PROT_READ | PROT_WRITE) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat(name, ": no memory for ", bytes, " bytes"));
  }
  buffer.slot_ =
      RegisterGuard(std::string(name).c_str(), buffer.mapping_, buffer.mapping_ + buffer.mapped_);
  buffer.Place(Placement::kEnd);
  return buffer;
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept { *this = std::move(other); }

GuardedBuffer& GuardedBuffer::operator=(GuardedBuffer&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(alignment_, other.alignment_);
  std::swap(slot_, other.slot_);
  return *this;
}

GuardedBuffer::~GuardedBuffer() {
  if (slot_ >= 0) UnregisterGuard(slot_);
  if (mapping_ != nullptr) munmap(mapping_, static_cast<size_t>(mapped_));
}

void GuardedBuffer::Place(Placement placement) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const uintptr_t begin = reinterpret_cast<uintptr_t>(mapping_) + static_cast<uintptr_t>(page);
  const uintptr_t end = begin + static_cast<uintptr_t>(mapped_ - 2 * page);
  const uintptr_t unit = static_cast<uintptr_t>(alignment_);
  uintptr_t base = begin;
  if (placement != Placement::kStart) {
    base = (end - static_cast<uintptr_t>(bytes_)) / unit * unit;
    if (placement == Placement::kAligned && base % (2 * unit) == 0) base -= unit;
  }
  data_ = reinterpret_cast<uint8_t*>(base);
  if (slot_ >= 0) MoveGuard(slot_, data_, bytes_);
}

void GuardedBuffer::SetCanary() {
  const int64_t page = sysconf(_SC_PAGESIZE);
  uint8_t* begin = mapping_ + page;
  uint8_t* end = mapping_ + mapped_ - page;
  std::memset(begin, kCanary, static_cast<size_t>(data_ - begin));
  std::memset(data_ + bytes_, kCanary, static_cast<size_t>(end - data_ - bytes_));
}

std::string GuardedBuffer::CheckCanary() const {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const uint8_t* begin = mapping_ + page;
  const uint8_t* end = mapping_ + mapped_ - page;
  if (const uint8_t* written = FirstWritten(data_ + bytes_, end)) {
    return absl::StrCat("wrote ", written - (data_ + bytes_) + 1, " bytes past the end");
  }
  if (const uint8_t* written = FirstWritten(begin, data_)) {
    return absl::StrCat("wrote ", data_ - written, " bytes before the beginning");
  }
  return "";
}

}  // namespace kiln::verify
