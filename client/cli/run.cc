// SPDX-License-Identifier: Apache-2.0
// kiln run: the stored plan through the client's own runtime, on given or random data, checked and
// timed.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands.h"
#include "client/cli/npy.h"
#include "client/cli/reference_check.h"
#include "client/cli/select.h"
#include "client/cli/words.h"
#include "proto/contract/error.h"
#include "worker/measure/sampler.h"
#include "worker/measure/stopping.h"
#include "worker/verify/inputs.h"

namespace kiln::cli {
namespace {

using compiler::HostTensor;

constexpr uint64_t kDataSeed = 1;
constexpr uint8_t kPoison = 0xff;  // NaN in floats: what the kernel leaves out shows

// "A=a.npy,B=b.npy"
absl::StatusOr<std::map<std::string, std::string>> ParseFiles(const std::string& option,
                                                              const std::string& text) {
  std::map<std::string, std::string> files;
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (pair.first.empty() || pair.second.empty() || !files.insert(pair).second) {
      return InvalidField("INVALID_FILES", option, part,
                          "not of the form TENSOR=FILE, once per tensor", "A=a.npy,B=b.npy");
    }
  }
  return files;
}

bool IsGiven(const Tensor& tensor) {
  return tensor.kind == TensorKind::kInput || tensor.kind == TensorKind::kConstant;
}

// A tensor's memory as a deployment would have it: no more aligned than the workload promises to be
// needed.
struct FreeDeleter {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<void, FreeDeleter>;

Memory Allocate(size_t bytes) {
  constexpr size_t kAlignment = 4096;
  return Memory(std::aligned_alloc(
      kAlignment, std::max<size_t>(bytes + kAlignment - 1, kAlignment) / kAlignment * kAlignment));
}

class Run {
 public:
  Run(Session& session, const client::Selection& selection)
      : session_(session), selection_(selection) {}

  absl::Status Execute() {
    KILN_ASSIGN_OR_RETURN(workload_, CheckWorkload(selection_.workload));
    KILN_RETURN_IF_ERROR(LoadFiles());
    KILN_ASSIGN_OR_RETURN(client::Client* const client, session_.Connect());
    KILN_ASSIGN_OR_RETURN(answer_, client->GetSchedule(selection_));
    KILN_ASSIGN_OR_RETURN(kernel_, client::LoadedKernel::Load(selection_.workload, answer_.record,
                                                              client->Artifacts()));
    KILN_RETURN_IF_ERROR(MakeData());
    // Pinned only for the timing: what this thread starts before, compiler and reference, is to
    // have all cores.
    KILN_ASSIGN_OR_RETURN(pool_, client::ThreadPool::Make(Threads(), /*pin=*/false));
    KILN_RETURN_IF_ERROR(kernel_->Launch(*binding_, *pool_));
    KILN_RETURN_IF_ERROR(SaveOutputs());
    KILN_RETURN_IF_ERROR(Check());
    KILN_RETURN_IF_ERROR(Time());
    Print();
    return absl::OkStatus();
  }

 private:
  int Threads() const { return std::max(answer_.record.device.threads, 1); }

  absl::Status LoadFiles() {
    const Graph& graph = workload_.graph;
    if (!graph.is_static()) {
      return MakeError(absl::StatusCode::kUnimplemented,
                       "dims: plans of dynamic dims cannot be run yet; bind every dim",
                       {"DYNAMIC_DIMS", {}});
    }
    KILN_ASSIGN_OR_RETURN(input_files_, ParseFiles("--in", session_.options().inputs));
    KILN_ASSIGN_OR_RETURN(output_files_, ParseFiles("--out", session_.options().outputs));
    if (input_files_.empty()) {
      inputs_ = verify::MakeInputs(workload_, verify::SetKind::kRandom, kDataSeed);
    }
    std::map<std::string, std::string> left = input_files_, left_out = output_files_;
    for (const Tensor& tensor : graph.tensors) {
      if (tensor.kind == TensorKind::kOutput) left_out.erase(tensor.name);
      if (!IsGiven(tensor) || input_files_.empty()) continue;
      const auto file = left.find(tensor.name);
      if (file == left.end())
        return InvalidField("MISSING_INPUT", "--in", session_.options().inputs,
                            absl::StrCat("without ", tensor.name),
                            "a file for every input and constant");
      inputs_.push_back(compiler::MakeHostTensor(graph, tensor, kPoison));
      KILN_RETURN_IF_ERROR(
          Annotate(LoadTensor(file->second, &inputs_.back()), absl::StrCat("--in ", tensor.name)));
      left.erase(file);
    }
    if (!left.empty())
      return InvalidField("NO_SUCH_TENSOR", "--in", left.begin()->first,
                          "no input or constant of the program", "its own");
    if (!left_out.empty())
      return InvalidField("NO_SUCH_TENSOR", "--out", left_out.begin()->first,
                          "no output of the program", "its own");
    return absl::OkStatus();
  }

  // Memory for all tensors; an alias shares that of its input.
  absl::Status MakeData() {
    const Graph& graph = workload_.graph;
    std::vector<client::TensorView> views;
    for (size_t i = 0; i < graph.tensors.size(); ++i) {
      const Tensor& tensor = graph.tensors[i];
      if (tensor.kind == TensorKind::kTemporary) continue;
      if (tensor.kind == TensorKind::kOutput)
        outputs_.push_back(compiler::MakeHostTensor(graph, tensor, kPoison));
      const HostTensor& value = IsGiven(tensor) ? inputs_[i] : outputs_.back();
      memory_.push_back(tensor.alias_of >= 0 ? nullptr : Allocate(value.bytes.size()));
      void* data = tensor.alias_of >= 0 ? views[tensor.alias_of].data : memory_.back().get();
      if (data == nullptr) {
        return MakeError(
            absl::StatusCode::kResourceExhausted,
            absl::StrCat("no memory for ", tensor.name, ": ", value.bytes.size(), " bytes"),
            {"OUT_OF_MEMORY", {{"tensor", tensor.name}}});
      }
      if (tensor.alias_of < 0 && !value.bytes.empty())
        std::memcpy(data, value.bytes.data(), value.bytes.size());
      views.push_back({data, tensor.type, value.shape, value.strides});
    }
    data_ = views;
    KILN_ASSIGN_OR_RETURN(binding_, kernel_->Bind(views));
    return absl::OkStatus();
  }

  absl::Status SaveOutputs() {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      HostTensor& output = outputs_[i];
      if (!output.bytes.empty())
        std::memcpy(output.bytes.data(), data_[inputs_.size() + i].data, output.bytes.size());
      const auto file = output_files_.find(workload_.graph.tensors[inputs_.size() + i].name);
      if (file != output_files_.end()) KILN_RETURN_IF_ERROR(SaveTensor(file->second, output));
    }
    return absl::OkStatus();
  }

  absl::Status Check() {
    const absl::StatusOr<CheckResult> checked =
        CheckAgainstReference(workload_, inputs_, outputs_, pool_->threads());
    if (absl::IsFailedPrecondition(checked.status()) || absl::IsUnimplemented(checked.status())) {
      session_.output().Note(
          absl::StrCat("kiln: the result is not checked: ", checked.status().message()));
      return absl::OkStatus();
    }
    if (!checked.ok()) return checked.status();
    check_ = *checked;
    if (check_.right) return absl::OkStatus();
    return MakeError(absl::StatusCode::kDataLoss,
                     absl::StrCat("the result differs from the reference: ", check_.reason),
                     {"RESULT_DIFFERS",
                      {{"record", answer_.record.id},
                       {"max_error", absl::StrCat(check_.max_error)},
                       {"tolerance", absl::StrCat(check_.tolerance)}}});
  }

  // As a worker samples, but shorter: this is to be believed roughly, the record exactly.
  absl::Status Time() {
    KILN_ASSIGN_OR_RETURN(pool_, client::ThreadPool::Make(Threads(), /*pin=*/true));
    const worker::StoppingLimits limits{
        .min_samples = 10, .max_samples = 200, .half_width = 0.01, .total_ns = 1e9};
    worker::SamplerOptions options;
    options.objective = answer_.record.key.objective;
    std::function<void()> chill;
    if (options.objective.cache == CacheState::kCold) {
      chill = [chiller = std::make_shared<worker::CacheChiller>(answer_.record.device.l3_bytes)] {
        (*chiller)();
      };
    }
    const std::unique_ptr<worker::Clock> clock = worker::MakeRawClock();
    absl::Status launched;
    worker::Sampler sampler(
        clock.get(), options, [&] { return (launched = kernel_->Launch(*binding_, *pool_)).ok(); },
        chill);
    worker::StoppingRule rule(limits);
    if (sampler.Calibrate().has_value()) {
      while (!rule.done() && !sampler.failed()) {
        if (const std::optional<worker::Sample> sample = sampler.Take())
          rule.Add(sample->ns, sample->spent_ns);
      }
    }
    KILN_RETURN_IF_ERROR(launched);
    measurement_ = sampler.Finish();
    return absl::OkStatus();
  }

  void Print() {
    const double median = measurement_.median_ns;
    const Json json = {{"median_ns", median},
                       {"max_error", check_.max_error},
                       {"tolerance", check_.tolerance},
                       {"checked", check_.checked},
                       {"ci95_ns", {measurement_.ci95_lo_ns, measurement_.ci95_hi_ns}},
                       {"samples", measurement_.samples},
                       {"recorded_ns", answer_.record.measurement.median_ns},
                       {"record", answer_.record.id},
                       {"signature", answer_.record.key.signature},
                       {"device", answer_.record.key.device},
                       {"schedule", kiln::Print(answer_.record.schedule)},
                       {"threads", pool_->threads()}};
    session_.output().Print(
        json, absl::StrCat("record ", answer_.record.id, ": ", TimeWords(median),
                           RateWords(OperationsOf(workload_), median),
                           " (recorded: ", TimeWords(answer_.record.measurement.median_ns), "; ",
                           pool_->threads(), " threads)\n",
                           check_.checked > 0 || outputs_.empty()
                               ? absl::StrFormat("checked %d elements: largest error %.3g of %.3g",
                                                 check_.checked, check_.max_error, check_.tolerance)
                               : "nothing to check"));
  }

  Session& session_;
  const client::Selection& selection_;
  Workload workload_;
  client::Answer answer_;
  std::map<std::string, std::string> input_files_, output_files_;
  std::vector<HostTensor> inputs_, outputs_;
  std::vector<Memory> memory_;
  std::vector<client::TensorView> data_;
  std::unique_ptr<client::LoadedKernel> kernel_;
  std::unique_ptr<client::ThreadPool> pool_;
  std::unique_ptr<client::LoadedKernel::Binding> binding_;
  CheckResult check_;
  Measurement measurement_;
};

}  // namespace

absl::Status RunRun(Session& session) {
  KILN_ASSIGN_OR_RETURN(const client::Selection selection, ParseSelect(session.options().select));
  return Run(session, selection).Execute();
}

}  // namespace kiln::cli
