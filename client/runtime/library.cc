// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <cstring>
#include <mutex>
#include <new>

#include "client/runtime/cpu.h"
#include "client/runtime/error.h"
#include "client/runtime/pool.h"

namespace kiln::runtime {
namespace {

constexpr char kOpenblasFile[] = "libopenblas.so.0";
constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;  // cblas.h

using SgemmFunction = void (*)(int, int, int, int, int, int, float, const float*, int, const float*,
                               int, float, float*, int);
using DgemmFunction = void (*)(int, int, int, int, int, int, double, const double*, int,
                               const double*, int, double, double*, int);

struct Openblas {
  SgemmFunction sgemm = nullptr;
  DgemmFunction dgemm = nullptr;
  void (*set_num_threads)(int) = nullptr;
  std::string identity;  // empty: it is not here, and `problem` says why
  std::string problem;
  std::mutex in_use;
};

// "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..." and "Zen" give "openblas 0.3.21 zen".
std::string Identify(const char* config, const char* core) {
  std::string words = config == nullptr ? "" : config;
  const size_t start = words.find(' ');
  std::string version = start == std::string::npos
                            ? ""
                            : words.substr(start + 1, words.find(' ', start + 1) - start - 1);
  std::string identity = "openblas " + version + " " + (core == nullptr ? "" : core);
  for (char& c : identity) c = static_cast<char>(tolower(static_cast<unsigned char>(c)));
  return identity;
}

template <typename Function>
bool Find(void* handle, const char* symbol, Function* function, std::string* problem) {
  *function = reinterpret_cast<Function>(dlsym(handle, symbol));
  if (*function == nullptr) *problem = std::string(kOpenblasFile) + " has no " + symbol;
  return *function != nullptr;
}

void Open(Openblas* library) {
  const Unpinned unpinned;  // it starts its threads as it is loaded
  void* handle = dlopen(kOpenblasFile, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    library->problem = dlerror();
    return;
  }
  char* (*config)() = nullptr;
  char* (*core)() = nullptr;
  if (!Find(handle, "cblas_sgemm", &library->sgemm, &library->problem) ||
      !Find(handle, "cblas_dgemm", &library->dgemm, &library->problem) ||
      !Find(handle, "openblas_set_num_threads", &library->set_num_threads, &library->problem) ||
      !Find(handle, "openblas_get_config", &config, &library->problem) ||
      !Find(handle, "openblas_get_corename", &core, &library->problem)) {
    return;
  }
  if (strstr(config(), "USE64BITINT") != nullptr) {
    library->problem = std::string(kOpenblasFile) + " takes 64-bit integers";
    return;
  }
  library->identity = Identify(config(), core());
}

// Opened once per process and never closed: its threads would be left without code.
Openblas& GetOpenblas() {
  static Openblas* library = [] {
    auto* made = new Openblas;
    Open(made);
    return made;
  }();
  return *library;
}

template <typename Real, typename Function>
void CallOne(Function function, const Gemm& g, int64_t item) {
  function(kRowMajor, g.trans_a ? kTranspose : kNoTranspose, g.trans_b ? kTranspose : kNoTranspose,
           static_cast<int>(g.m), static_cast<int>(g.n), static_cast<int>(g.k), Real{1},
           static_cast<const Real*>(g.a) + item * g.batch_stride_a, static_cast<int>(g.lda),
           static_cast<const Real*>(g.b) + item * g.batch_stride_b, static_cast<int>(g.ldb),
           Real{0}, static_cast<Real*>(g.c) + item * g.batch_stride_c, static_cast<int>(g.ldc));
}

struct BatchCall {
  const Openblas* library;
  GemmType type;
  const Gemm* gemm;
};

void CallItem(void* context, int64_t item, int /*slot*/) {
  const auto& call = *static_cast<const BatchCall*>(context);
  if (call.type == GemmType::kF32) {
    CallOne<float>(call.library->sgemm, *call.gemm, item);
  } else {
    CallOne<double>(call.library->dgemm, *call.gemm, item);
  }
}

// With several small items per thread, one item per thread is the library at its best: no item then
// pays for bringing the threads together.
bool ItemPerThread(const Gemm& g, int threads) {
  constexpr double kSmallItem = 64e6;  // operations
  return g.batch >= 2 * threads && 2.0 * g.m * g.n * g.k <= kSmallItem;
}

}  // namespace

kiln_code ResolveGemm(const std::string& routine, GemmType* type) {
  if (routine == "openblas:sgemm") {
    *type = GemmType::kF32;
  } else if (routine == "openblas:dgemm") {
    *type = GemmType::kF64;
  } else {
    return Fail(KILN_UNSUPPORTED,
                "library routine %s: not known; known: openblas:sgemm, openblas:dgemm",
                routine.c_str());
  }
  const Openblas& library = GetOpenblas();
  if (!library.identity.empty()) return KILN_OK;
  return Fail(KILN_UNSUPPORTED, "library routine %s: %s", routine.c_str(), library.problem.c_str());
}

kiln_code CheckGemm(const Gemm& g) {
  struct Number {
    const char* name;
    int64_t value, least, most;
  };
  const int64_t columns_a = g.trans_a ? g.m : g.k, columns_b = g.trans_b ? g.k : g.n;
  const int64_t kMost = INT_MAX;
  const Number numbers[] = {{"trans_a", g.trans_a, 0, 1},
                            {"trans_b", g.trans_b, 0, 1},
                            {"m", g.m, 0, kMost},
                            {"n", g.n, 0, kMost},
                            {"k", g.k, 0, kMost},
                            {"lda", g.lda, std::max<int64_t>(1, columns_a), kMost},
                            {"ldb", g.ldb, std::max<int64_t>(1, columns_b), kMost},
                            {"ldc", g.ldc, std::max<int64_t>(1, g.n), kMost},
                            {"batch", g.batch, 0, int64_t{1} << 40}};
  for (const Number& number : numbers) {
    if (number.value >= number.least && number.value <= number.most) continue;
    return Fail(KILN_BAD_ARGUMENT, "library gemm: %s: %lld; allowed: %lld to %lld", number.name,
                static_cast<long long>(number.value), static_cast<long long>(number.least),
                static_cast<long long>(number.most));
  }
  return KILN_OK;
}

void RunGemm(GemmType type, const Gemm& gemm, kiln_pool& pool) {
  if (gemm.m == 0 || gemm.n == 0) return;
  Openblas& library = GetOpenblas();
  BatchCall call{&library, type, &gemm};
  const std::lock_guard<std::mutex> lock(library.in_use);
  if (ItemPerThread(gemm, pool.threads())) {
    library.set_num_threads(1);
    pool.ForEachBlock(gemm.batch, CallItem, &call);
    return;
  }
  pool.set_quiet(true);
  {
    library.set_num_threads(pool.threads());
    for (int64_t item = 0; item < gemm.batch; ++item) CallItem(&call, item, 0);
  }
  pool.set_quiet(false);
}

}  // namespace kiln::runtime

extern "C" const char* kiln_library_identity(const char* library) {
  using kiln::runtime::Fail;
  if (library == nullptr || strcmp(library, "openblas") != 0) {
    Fail(KILN_UNSUPPORTED, "library %s: not known; known: openblas",
         library == nullptr ? "(null)" : library);
    return nullptr;
  }
  try {
    const auto& openblas = kiln::runtime::GetOpenblas();
    if (!openblas.identity.empty()) return openblas.identity.c_str();
    Fail(KILN_UNSUPPORTED, "library openblas: %s", openblas.problem.c_str());
  } catch (const std::bad_alloc&) {
    Fail(KILN_OUT_OF_MEMORY, "library openblas: out of memory");
  }
  return nullptr;
}
