// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <utility>

#include "client/runtime/error.h"
#include "client/runtime/sha256.h"

#ifndef MFD_EXEC  // Linux 6.3; needed where vm.memfd_noexec makes "not executable" the default
#define MFD_EXEC 0x0010U
#endif

namespace kiln::runtime {
namespace {

constexpr uint16_t kElfMachineCuda = 190;  // EM_CUDA
#if defined(__x86_64__)
constexpr uint16_t kElfMachineHere = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kElfMachineHere = EM_AARCH64;
#else
constexpr uint16_t kElfMachineHere = EM_NONE;
#endif

// Says what is wrong before the dynamic linker sees bytes that it would misunderstand.
kiln_code CheckElf(const std::string& digest, const void* bytes, size_t size) {
  Elf64_Ehdr header;
  if (size < sizeof(header) || memcmp(bytes, ELFMAG, SELFMAG) != 0) {
    return Fail(KILN_BAD_ARTIFACT, "artifact %s: %zu bytes that are no ELF shared object",
                digest.c_str(), size);
  }
  memcpy(&header, bytes, sizeof(header));
  if (header.e_machine == kElfMachineCuda) {
    return Fail(KILN_UNSUPPORTED, "artifact %s: code for a GPU; this runtime runs CPU kernels only",
                digest.c_str());
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kElfMachineHere ||
      header.e_type != ET_DYN) {
    return Fail(KILN_BAD_ARTIFACT,
                "artifact %s: an ELF file of type %u for machine %u; needed: a shared object "
                "(type %u) for machine %u",
                digest.c_str(), header.e_type, header.e_machine, ET_DYN, kElfMachineHere);
  }
  return KILN_OK;
}

int CreateMemoryFile() {
  const int fd = memfd_create("kiln", MFD_CLOEXEC | MFD_EXEC);
  return fd >= 0 || errno != EINVAL ? fd : memfd_create("kiln", MFD_CLOEXEC);  // an older kernel
}

bool WriteAll(int fd, const void* bytes, size_t size) {
  const char* data = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t written = write(fd, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    size -= written;
  }
  return true;
}

// A path of the descriptor that no load before had. The dynamic linker takes a name that it knows
// for the library that it knows, and descriptors' numbers come again: plain paths would give the
// second of two plans the code of the first. A number spelt in "/." and "//" changes the name and
// not the file.
std::string UniquePath(int fd) {
  static std::atomic<uint32_t> loads{0};
  std::string path = "/proc/self/fd";
  for (uint32_t rest = loads.fetch_add(1); rest != 0; rest >>= 1) path += rest & 1 ? "/." : "//";
  return path + "/" + std::to_string(fd);
}

}  // namespace

Module::~Module() {
  if (handle_ != nullptr) dlclose(handle_);
  if (fd_ >= 0) close(fd_);
}

Module::Module(Module&& other) noexcept { *this = std::move(other); }

Module& Module::operator=(Module&& other) noexcept {
  std::swap(digest_, other.digest_);
  std::swap(handle_, other.handle_);
  std::swap(fd_, other.fd_);
  return *this;
}

kiln_code Module::Load(const std::string& digest, const void* bytes, size_t size) {
  const std::string actual = Sha256Hex(bytes, size);
  if (actual != digest) {
    return Fail(KILN_BAD_ARTIFACT, "artifact %s: its %zu bytes have the digest %s", digest.c_str(),
                size, actual.c_str());
  }
  if (const kiln_code code = CheckElf(digest, bytes, size); code != KILN_OK) return code;
  const int fd = CreateMemoryFile();
  if (fd < 0) {
    return Fail(KILN_UNSUPPORTED, "artifact %s: no memory file for it: %s", digest.c_str(),
                strerror(errno));
  }
  if (!WriteAll(fd, bytes, size)) {
    const int error = errno;
    close(fd);
    return Fail(KILN_OUT_OF_MEMORY, "artifact %s: no memory for %zu bytes: %s", digest.c_str(),
                size, strerror(error));
  }
  handle_ = dlopen(UniquePath(fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    close(fd);
    return Fail(KILN_BAD_ARTIFACT, "artifact %s: cannot be loaded: %s", digest.c_str(), dlerror());
  }
  // The mapping would stay without it, but the loader knows libraries by their path: the next file
  // would get this number, and dlopen would give it this code.
  fd_ = fd;
  digest_ = digest;
  return KILN_OK;
}

kiln_cpu_kernel Module::FindEntry(const std::string& symbol) const {
  return reinterpret_cast<kiln_cpu_kernel>(dlsym(handle_, symbol.c_str()));
}

}  // namespace kiln::runtime
