// SPDX-License-Identifier: Apache-2.0
// What runs, in order. Plain data with a text form, in the standard library alone: the runtime that
// deploys it has no absl. A plan is of one workload: its arguments name tensors by position (the
// asker's names are added by whoever asks).
//
// On a CPU a kernel's `grid` counts blocks and `shared_bytes` is scratch memory that the runtime
// gives to each thread that runs blocks (64-byte aligned, contents undefined); the runtime brings
// the threads, and a step begins when the one before it has ended. On a GPU they are what CUDA
// means by them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kiln {

enum class StepKind : uint8_t {
  kKernel,
  kLibrary,  // `entry` names a routine of a vendor library, see LibraryGemm below
  kFill,     // set `arguments[0]` (a tensor or workspace) to zero bytes
  kPrepack,  // a kernel that is run once, at load, for constant inputs
};

// A launch number: a constant, or an expression over dynamic dims in the grammar of LANGUAGE.md's
// `int` with the dims written $0, $1, ... ("($0+127)/128").
struct Count {
  int64_t value = 1;
  std::string expression;  // empty: `value`
  bool operator==(const Count&) const = default;
};

enum class ArgumentKind : uint8_t { kTensor, kDim, kScalar, kWorkspace };

struct Argument {
  ArgumentKind kind = ArgumentKind::kTensor;
  int index = 0;       // kTensor: position among inputs, constants and outputs; kDim: dynamic dim
  int64_t offset = 0;  // kTensor, kWorkspace: bytes from the base pointer
  bool persistent =
      false;  // kWorkspace: memory that prepack filled and that lives as long as the loaded plan
  bool is_float = false;  // kScalar: which of the two below
  double number = 0;
  int64_t integer = 0;
  bool operator==(const Argument&) const = default;
};

struct Step {
  StepKind kind = StepKind::kKernel;
  std::string entry;  // symbol in the artifact, or library routine
  std::array<Count, 3> grid{}, block{}, cluster{};
  int64_t shared_bytes = 0;
  std::map<std::string, int64_t> attributes;  // function attributes (GPU); for kFill "bytes"
  std::string artifact;  // SHA-256 of the compiled artifact; empty for kLibrary and kFill
  std::vector<Argument> arguments;
  bool operator==(const Step&) const = default;
};

// The arguments of "openblas:sgemm" and "openblas:dgemm", in order: A, B, C (tensors or workspace),
// then integers trans_a, trans_b (0 or 1), m, n, k, lda, ldb, ldc, batch, batch_stride_a,
// batch_stride_b, batch_stride_c (in elements). Row-major; C = op(A) * op(B), with alpha 1 and beta
// 0. Threads: those of the pool.
inline constexpr int kLibraryGemmArguments = 15;

struct TensorNeed {
  int64_t alignment = 1;   // bytes that the kernel relies on
  int64_t span_bytes = 0;  // from the base pointer to one past the last byte touched (static dims)
  bool written = false;    // an output: overlaps no other tensor's memory but its alias's
  int alias_of = -1;       // of an output: the tensor whose memory it is, in place; -1: none
  bool operator==(const TensorNeed&) const = default;
};

struct Plan {
  std::vector<Step> steps;
  int64_t workspace_bytes = 0;
  int64_t persistent_bytes = 0;       // for prepacked constants
  std::vector<TensorNeed> tensors;    // one per input, constant and output
  std::vector<std::string> features;  // that the device must have ("avx2", "fma")
  std::map<std::string, int64_t>
      needs;  // other limits and versions: "driver" => 580, "threads" => 2
  bool operator==(const Plan&) const = default;
};

// Lines of text; Parse(Print(p)) == p. Parse returns false and says in `error` which line is wrong
// and why.
std::string PrintPlan(const Plan& plan);
bool ParsePlan(const std::string& text, Plan* plan, std::string* error);

// The value of a launch number for these dims; false with a reason if it is malformed or not in [0,
// 2^62].
bool Evaluate(const Count& count, const std::vector<int64_t>& dims, int64_t* value,
              std::string* error);

}  // namespace kiln
