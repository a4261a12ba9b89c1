// SPDX-License-Identifier: Apache-2.0
#include "tests/worker/compiler/kernels/harness.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <algorithm>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "worker/compiler/emit/cpp.h"
#include "worker/compiler/emit/plan.h"
#include "worker/compiler/families/family.h"

namespace kiln::compiler {
namespace {

constexpr size_t kGuard = 256;           // bytes around every buffer
constexpr unsigned char kPoison = 0xff;  // NaN in every float type
constexpr int kPerSource = 24;           // kernels in one compiler run

// Zeroes the parts of a struct that the emitted code declares itself.
union Arg {
  void* pointer;
  long long integer;
  double number;
};
struct Block {
  long long index[3], grid[3];
  void* shared;
};

// Bytes with guards of their own.
class Guarded {
 public:
  explicit Guarded(size_t size) : bytes_(size + 2 * kGuard + 64, kPoison), size_(size) {
    const uintptr_t start = reinterpret_cast<uintptr_t>(bytes_.data()) + kGuard;
    data_ = bytes_.data() + kGuard + (64 - start % 64) % 64;
  }
  unsigned char* data() { return data_; }
  bool Intact() const {
    for (const unsigned char* p = bytes_.data(); p < data_; ++p) {
      if (*p != kPoison) return false;
    }
    for (const unsigned char* p = data_ + size_; p < bytes_.data() + bytes_.size(); ++p) {
      if (*p != kPoison) return false;
    }
    return true;
  }
  void Poison() { std::memset(data_, kPoison, size_); }

 private:
  std::vector<unsigned char> bytes_;
  unsigned char* data_;
  size_t size_;
};

}  // namespace

DeviceFingerprint TestDevice(int threads) {
  DeviceFingerprint device;
  device.cores = device.threads = threads;
  device.l1d_bytes = 32768;
  device.l2_bytes = 524288;
  device.l3_bytes = 16 << 20;
  device.l3_sharing = 2;
#if defined(__x86_64__)
  device.architecture = "x86-64";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    device.features = {"avx2", "fma"};
    device.vector_bits = 256;
  }
#else
  device.architecture = "aarch64";
  device.features = {"neon"};
#endif
  return device;
}

Workload MakeWorkload(const WorkloadSpec& spec) {
  auto workload = CheckWorkload(spec);
  EXPECT_TRUE(workload.ok()) << workload.status() << "\n" << spec.program;
  return workload.ok() ? *workload : Workload{};
}

KernelBatch::KernelBatch(std::string optimisation) : optimisation_(std::move(optimisation)) {
  std::string pattern = (std::filesystem::temp_directory_path() / "kiln-kernels-XXXXXX").string();
  EXPECT_NE(mkdtemp(pattern.data()), nullptr);
  directory_ = pattern;
}

KernelBatch::~KernelBatch() {
  for (void* library : libraries_) dlclose(library);
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

absl::StatusOr<int> KernelBatch::Add(const Workload& workload, const DeviceFingerprint& device,
                                     const Schedule& schedule) {
  auto family = MatchFamily(workload, device, nullptr);
  if (!family.ok()) return family.status();
  auto program = (*family)->Build(workload, device, schedule);
  if (!program.ok()) return program.status();
  Kernel kernel;
  kernel.workload = workload;
  kernel.prefix = absl::StrCat("k", kernels_.size());
  kernel.source = emit::PrintCpp(*program, kernel.prefix);
  kernel.plan = emit::MakePlan(*program, workload.graph, device);
  flags_ = emit::CompilerFlags(device);
  kernels_.push_back(std::move(kernel));
  return static_cast<int>(kernels_.size()) - 1;
}

absl::Status KernelBatch::Compile() {
  for (size_t first = 0; first < kernels_.size(); first += kPerSource) {
    const std::string base = absl::StrCat(directory_, "/", first);
    std::ofstream file(base + ".cc");
    const size_t end = std::min(kernels_.size(), first + kPerSource);
    for (size_t i = first; i < end; ++i)
      file << "namespace n" << i << " {\n" << kernels_[i].source << "}\n";
    file.close();
    const std::string command =
        absl::StrCat("g++ ", absl::StrJoin(flags_, " "), " ", optimisation_, " -w -shared -fPIC ",
                     base, ".cc -o ", base, ".so 2> ", base, ".log");
    if (std::system(command.c_str()) != 0) {
      std::stringstream log;
      log << std::ifstream(base + ".log").rdbuf();
      return absl::InternalError(absl::StrCat(command, "\n", log.str()));
    }
    void* library = dlopen((base + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return absl::InternalError(dlerror());
    libraries_.push_back(library);
    for (size_t i = first; i < end; ++i) kernels_[i].library = library;
  }
  return absl::OkStatus();
}

absl::StatusOr<HostTensor> KernelBatch::Run(int number, const std::vector<HostTensor>& inputs,
                                            bool backwards) const {
  const Kernel& kernel = kernels_[number];
  const Graph& graph = kernel.workload.graph;
  std::vector<Guarded> memory;
  std::vector<unsigned char*> bases;
  memory.reserve(graph.tensors.size());
  int output = -1;
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    const Tensor& tensor = graph.tensors[t];
    if (tensor.kind == TensorKind::kTemporary) continue;
    memory.emplace_back(static_cast<size_t>(SpanElements(graph, tensor)) * Bits(tensor.type) / 8);
    if (t < inputs.size())
      std::copy(inputs[t].bytes.begin(), inputs[t].bytes.end(), memory[t].data());
    if (tensor.kind == TensorKind::kOutput) output = static_cast<int>(t);
    bases.push_back(tensor.alias_of >= 0 ? bases[tensor.alias_of] : memory[t].data());
  }
  Guarded workspace(kernel.plan.workspace_bytes), persistent(kernel.plan.persistent_bytes);
  for (const Step& step : kernel.plan.steps) {
    const std::string symbol = absl::StrReplaceAll(step.entry, {{"kiln_", kernel.prefix + "_"}});
    auto entry =
        reinterpret_cast<void (*)(const Arg*, const Block*)>(dlsym(kernel.library, symbol.c_str()));
    if (entry == nullptr) return absl::InternalError(absl::StrCat("no entry ", symbol));
    std::vector<Arg> args;
    for (const Argument& argument : step.arguments) {
      unsigned char* base = argument.kind == ArgumentKind::kTensor ? bases[argument.index]
                            : argument.persistent                  ? persistent.data()
                                                                   : workspace.data();
      args.push_back({.pointer = base + argument.offset});
    }
    Guarded scratch(step.shared_bytes);
    const int64_t blocks = step.grid[0].value;
    for (int64_t b = 0; b < blocks; ++b) {
      scratch.Poison();
      const Block block{{backwards ? blocks - 1 - b : b, 0, 0}, {blocks, 1, 1}, scratch.data()};
      entry(args.data(), &block);
    }
    if (!scratch.Intact())
      return absl::InternalError(absl::StrCat(step.entry, " wrote beside its scratch"));
  }
  if (!workspace.Intact() || !persistent.Intact())
    return absl::InternalError("wrote beside the workspace");
  for (size_t t = 0; t < memory.size(); ++t) {
    if (!memory[t].Intact()) return absl::InternalError(absl::StrCat("wrote beside tensor ", t));
    const bool aliased = graph.tensors[output].alias_of == static_cast<int>(t);
    if (t < inputs.size() && !aliased &&
        !std::equal(inputs[t].bytes.begin(), inputs[t].bytes.end(), memory[t].data())) {
      return absl::InternalError(absl::StrCat("wrote into input ", t));
    }
  }
  const Tensor& tensor = graph.tensors[output];
  HostTensor result{tensor.type, StaticShape(graph, tensor), tensor.strides, {}};
  result.bytes.assign(bases[output],
                      bases[output] + SpanElements(graph, tensor) * Bits(tensor.type) / 8);
  return result;
}

std::vector<HostTensor> MakeInputs(const Workload& workload, uint64_t seed, bool integers) {
  std::mt19937_64 random(seed);
  std::vector<HostTensor> inputs;
  for (const Tensor& tensor : workload.graph.tensors) {
    if (tensor.kind != TensorKind::kInput && tensor.kind != TensorKind::kConstant) continue;
    HostTensor value{tensor.type, StaticShape(workload.graph, tensor), tensor.strides, {}};
    const int64_t span = SpanElements(workload.graph, tensor);
    value.bytes.resize(static_cast<size_t>(span) * Bits(tensor.type) / 8);
    for (int64_t i = 0; i < span; ++i) {
      const double x = integers ? static_cast<double>(random() % 9) - 4
                                : std::uniform_real_distribution<double>(-1, 1)(random);
      StoreDouble(value, i, x);
    }
    inputs.push_back(std::move(value));
  }
  return inputs;
}

double LargestError(const HostTensor& got, const HostTensor& want) {
  double largest = 0;
  std::vector<int64_t> at(got.shape.size(), 0);
  for (int64_t e = 0; e < got.elements(); ++e) {
    int64_t x = 0, y = 0, rest = e;
    for (size_t d = got.shape.size(); d-- > 0;) {
      const int64_t i = rest % got.shape[d];
      rest /= got.shape[d];
      x += i * got.strides[d];
      y += i * want.strides[d];
    }
    const double g = LoadAsDouble(got, x), w = LoadAsDouble(want, y);
    if (std::isnan(g) && std::isnan(w)) continue;
    if (g == w) continue;
    const double error = std::fabs(g - w) / (1 + std::fabs(w));
    largest =
        std::max(largest, std::isnan(error) ? std::numeric_limits<double>::infinity() : error);
  }
  return largest;
}

}  // namespace kiln::compiler
