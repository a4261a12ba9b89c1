// SPDX-License-Identifier: Apache-2.0
// The code of one artifact, loaded from memory: no file is written, nothing stays behind.
#pragma once

#include <cstddef>
#include <string>

#include "client/runtime/kiln_runtime.h"

namespace kiln::runtime {

class Module {
 public:
  Module() = default;
  ~Module();
  Module(Module&& other) noexcept;
  Module& operator=(Module&& other) noexcept;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // KILN_BAD_ARTIFACT if the bytes have another digest or are no shared object for this machine;
  // KILN_UNSUPPORTED for a GPU's code.
  kiln_code Load(const std::string& digest, const void* bytes, size_t size);

  const std::string& digest() const { return digest_; }
  // Null if there is none.
  kiln_cpu_kernel FindEntry(const std::string& symbol) const;

 private:
  std::string digest_;
  void* handle_ = nullptr;
  int fd_ = -1;  // of the memory file; open as long as the code is loaded, see Load
};

}  // namespace kiln::runtime
