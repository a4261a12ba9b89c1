// SPDX-License-Identifier: Apache-2.0
#include "client/cli/reference_check.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/runtime/module.h"
#include "proto/contract/error.h"
#include "worker/compile/host_compiler.h"
#include "worker/compile/temp_root.h"
#include "worker/compiler/analysis/reference.h"
#include "worker/verify/verdict.h"

namespace kiln::cli {
namespace {

using compiler::HostTensor;
using ReferenceEntry = int (*)(const void* const* inputs, double* const* values,
                               double* const* errors, int threads);

constexpr absl::Duration kCompileLimit = absl::Minutes(3);  // on a machine that is busy otherwise
// Elements of all tensors below which compiling longer pays less than running longer.
constexpr int64_t kSmallElements = 1 << 18;
constexpr int64_t kTempBytes = 64 << 20;  // free space that a compile may need

absl::StatusOr<std::string> Compile(const std::string& source, bool small) {
  std::error_code error;
  const std::string directory = std::filesystem::temp_directory_path(error).string();
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<worker::TempRoot> root,
                        worker::TempRoot::Make(directory, kTempBytes));
  worker::CompilerOptions options;
  options.supervisor = std::filesystem::read_symlink("/proc/self/exe", error).string();
  options.limit = kCompileLimit;
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<worker::HostCompiler> compiler,
                        worker::HostCompiler::Make(options, *root));
  KILN_ASSIGN_OR_RETURN(
      worker::CompileResult result,
      compiler->Compile(source, {small ? "-O1" : "-O3", "-march=native", "-pthread"}, nullptr));
  if (result.artifact.has_value()) return std::move(result.artifact->bytes);
  return MakeError(absl::StatusCode::kInternal,
                   absl::StrCat("the reference does not compile: ", result.reason),
                   {"REFERENCE_FAILED", {}});
}

// One f64 per element of every output, and how far a right kernel may be from it.
std::vector<verify::Expected> MakeExpected(const std::vector<HostTensor>& outputs) {
  std::vector<verify::Expected> expected;
  for (const HostTensor& output : outputs) {
    const size_t elements = static_cast<size_t>(output.elements());
    expected.push_back({std::vector<double>(elements), std::vector<double>(elements)});
  }
  return expected;
}

absl::Status Evaluate(ReferenceEntry entry, const std::vector<HostTensor>& inputs, int threads,
                      std::vector<verify::Expected>* expected) {
  std::vector<const void*> pointers;
  std::vector<double*> values, errors;
  for (const HostTensor& input : inputs) pointers.push_back(input.bytes.data());
  for (verify::Expected& output : *expected) {
    values.push_back(output.values.data());
    errors.push_back(output.errors.data());
  }
  switch (entry(pointers.data(), values.data(), errors.data(), threads)) {
    case 0:
      return absl::OkStatus();
    case 1:
      return MakeError(absl::StatusCode::kResourceExhausted, "the reference has too little memory",
                       {"OUT_OF_MEMORY", {}});
    default:
      return MakeError(absl::StatusCode::kInvalidArgument,
                       "the data break a promise of the program: a subscript or bound that depends "
                       "on them falls outside its tensor",
                       {"PROMISE_BROKEN", {}});
  }
}

bool IsSmall(const std::vector<HostTensor>& inputs, const std::vector<HostTensor>& outputs) {
  int64_t elements = 0;
  for (const std::vector<HostTensor>* group : {&inputs, &outputs}) {
    for (const HostTensor& tensor : *group) elements += tensor.elements();
  }
  return elements < kSmallElements;
}

bool AllIntegers(const std::vector<HostTensor>& tensors) {
  return std::none_of(tensors.begin(), tensors.end(),
                      [](const HostTensor& tensor) { return IsFloat(tensor.type); });
}

}  // namespace

absl::StatusOr<CheckResult> CheckAgainstReference(const Workload& workload,
                                                  const std::vector<HostTensor>& inputs,
                                                  const std::vector<HostTensor>& outputs,
                                                  int threads) {
  KILN_ASSIGN_OR_RETURN(const std::string source, compiler::EmitReference(workload));
  KILN_ASSIGN_OR_RETURN(const std::string bytes, Compile(source, IsSmall(inputs, outputs)));
  runtime::Module module;
  if (module.Load(Sha256Hex(bytes), bytes.data(), bytes.size()) != KILN_OK) {
    return MakeError(absl::StatusCode::kInternal,
                     absl::StrCat("the reference cannot be loaded: ", kiln_error()),
                     {"REFERENCE_FAILED", {}});
  }
  // A symbol is an address; what it is called with is the reference's own signature.
  const auto entry =
      reinterpret_cast<ReferenceEntry>(reinterpret_cast<void*>(module.FindEntry("kiln_reference")));
  if (entry == nullptr)
    return MakeError(absl::StatusCode::kInternal, "the reference has no entry",
                     {"REFERENCE_FAILED", {}});
  std::vector<verify::Expected> expected = MakeExpected(outputs);
  KILN_RETURN_IF_ERROR(Evaluate(entry, inputs, threads, &expected));

  CheckResult result;
  const bool exact = AllIntegers(inputs) && AllIntegers(outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = workload.graph.tensors[inputs.size() + i].name;
    const verify::Verdict verdict =
        verify::Judge(name, outputs[i], expected[i], exact, workload.policy);
    result.max_error = std::max(result.max_error, verdict.max_error);
    result.tolerance = 1;  // errors are shares of what is allowed
    result.checked += outputs[i].elements() - verdict.unchecked;
    if (!verdict.right && result.right) {
      result.right = false;
      result.reason = verdict.reason;
    }
  }
  return result;
}

}  // namespace kiln::cli
