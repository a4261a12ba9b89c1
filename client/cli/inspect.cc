// SPDX-License-Identifier: Apache-2.0
// kiln inspect: what Kiln makes of a program, on this machine, without a server. Every legal
// program is shown, also one that no family takes yet.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands.h"
#include "client/cli/json.h"
#include "client/cli/select.h"
#include "client/cli/words.h"
#include "proto/contract/error.h"
#include "worker/compiler/analysis/contraction.h"
#include "worker/compiler/compiler.h"
#include "worker/device/host_probe.h"

namespace kiln::cli {
namespace {

constexpr int64_t kCountLimit = 1'000'000;  // a larger space is said to have so many or more
constexpr int kBest = 10;
constexpr size_t kAsked = 1500;  // predictions in all, each some 40 us
constexpr int kSamples = 500;    // of a space that is too large to be asked in full
constexpr int kClimbs = 40;      // steps from the best towards better neighbours

struct Ranked {
  double predicted_ns;
  std::string text;  // of the schedule, for ties that break the same way every time
  Schedule schedule;
  bool operator<(const Ranked& other) const {
    return predicted_ns != other.predicted_ns ? predicted_ns < other.predicted_ns
                                              : text < other.text;
  }
};

// Schedules that the model has been asked about, best first.
class ModelRanking {
 public:
  ModelRanking(const Workload& workload, const DeviceFingerprint& device)
      : workload_(workload), device_(device) {}

  void Add(const Schedule& schedule) {
    std::string text = Print(schedule);
    if (seen_.size() >= kAsked || !seen_.insert(text).second) return;
    const absl::StatusOr<double> ns = compiler::Predict(workload_, device_, schedule);
    if (ns.ok()) ranked_.insert({*ns, std::move(text), schedule});
  }

  std::vector<Ranked> Best() const {
    std::vector<Ranked> best;
    for (const Ranked& one : ranked_) {
      if (static_cast<int>(best.size()) == kBest) break;
      best.push_back(one);
    }
    return best;
  }

 private:
  const Workload& workload_;
  const DeviceFingerprint& device_;
  std::set<std::string> seen_;
  std::set<Ranked> ranked_;
};

// Samples, then the neighbours of the best until none of them gets better.
std::vector<Ranked> FindBest(const compiler::Space& space, const Workload& workload,
                             const DeviceFingerprint& device) {
  ModelRanking ranking(workload, device);
  ranking.Add(space.default_schedule());
  for (uint64_t i = 0; i < kSamples; ++i) ranking.Add(space.Sample(i * 0x9e3779b97f4a7c15u));
  std::set<std::string> expanded;
  for (int climb = 0; climb < kClimbs; ++climb) {
    bool any = false;
    for (const Ranked& one : ranking.Best()) {
      if (!expanded.insert(one.text).second) continue;
      any = true;
      for (const Schedule& neighbour : space.Neighbours(one.schedule)) ranking.Add(neighbour);
    }
    if (!any) break;
  }
  return ranking.Best();
}

Json AxisJson(const std::string& name, const std::string& role, const Interval& extent) {
  if (extent.lo == extent.hi) return {{"name", name}, {"role", role}, {"extent", extent.lo}};
  return {{"name", name}, {"role", role}, {"extent", {extent.lo, extent.hi}}};
}

void AddContractionAxes(const compiler::ContractionForm& form, Json* axes) {
  const std::pair<const char*, const std::vector<compiler::ContractionAxis>*> groups[] = {
      {"batch", &form.batch}, {"m", &form.m}, {"n", &form.n}, {"k", &form.k}};
  for (const auto& [role, group] : groups) {
    for (const compiler::ContractionAxis& axis : *group)
      axes->push_back(AxisJson(axis.name, role, {axis.extent, axis.extent}));
  }
}

// The axes of every output and temporary, and what is reduced over.
void AddGraphAxes(const Graph& graph, Json* axes) {
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind != TensorKind::kOutput && tensor.kind != TensorKind::kTemporary) continue;
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      const std::string axis =
          i < tensor.axis_names.size() ? tensor.axis_names[i] : absl::StrCat(i);
      axes->push_back(AxisJson(absl::StrCat(tensor.name, ".", axis), "output",
                               Bounds(graph, tensor.shape[i], {})));
    }
  }
  int reductions = 0;
  for (const Node& node : graph.nodes) {
    if (node.op != Op::kReduce && node.op != Op::kSoftmax) continue;
    for (const Range& range : node.bound) {
      // Bounds that follow other variables or a tensor's contents have no extent of their own.
      const bool closed = range.hi.vars.empty() && range.lo.vars.empty();
      Interval extent = closed ? Bounds(graph, range.hi, {}) : Interval{0, -1};
      if (closed) {
        const Interval low = Bounds(graph, range.lo, {});
        extent = {std::max<int64_t>(0, extent.lo - low.hi),
                  std::max<int64_t>(0, extent.hi - low.lo)};
      }
      const std::string name = absl::StrCat("r", reductions++);
      if (closed) {
        axes->push_back(AxisJson(name, "reduction", extent));
      } else {
        axes->push_back({{"name", name},
                         {"role", "reduction"},
                         {"extent", "depends on other axes or on data"}});
      }
    }
  }
}

Json AxesJson(const Workload& workload) {
  Json axes = Json::array();
  const auto form = compiler::MatchContraction(workload);
  if (form.ok()) {
    AddContractionAxes(*form, &axes);
  } else {
    AddGraphAxes(workload.graph, &axes);
  }
  return axes;
}

struct Inspection {
  const compiler::Family* family = nullptr;
  std::map<std::string, std::string> refused;
  std::unique_ptr<compiler::Space> space;
  std::vector<Ranked> best;
};

absl::StatusOr<Inspection> Inspect(const Workload& workload, const DeviceFingerprint& device) {
  Inspection found;
  const auto family = compiler::MatchFamily(workload, device, &found.refused);
  if (!family.ok()) return found;
  found.family = *family;
  KILN_ASSIGN_OR_RETURN(found.space, found.family->MakeSpace(workload, device));
  found.best = FindBest(*found.space, workload, device);
  return found;
}

Json InspectionJson(const Workload& workload, const DeviceFingerprint& device,
                    const Inspection& found) {
  Json knobs = Json::object(), best = Json::array();
  if (found.space != nullptr) {
    for (const compiler::Knob& knob : found.space->knobs()) knobs[knob.name] = knob.values;
  }
  for (const Ranked& one : found.best)
    best.push_back({{"schedule", one.text}, {"predicted_ns", one.predicted_ns}});
  Json family = nullptr;
  if (found.family != nullptr)
    family = absl::StrCat(found.family->name(), "/", found.family->version());
  const compiler::SpaceSize size =
      found.space == nullptr ? compiler::SpaceSize{} : found.space->Count(kCountLimit);
  return {{"signature", workload.signature},
          {"canonical", workload.canonical},
          {"family", family},
          {"refused", Json(found.refused)},
          {"axes", AxesJson(workload)},
          {"space",
           {{"size", size.schedules},
            {"exact", size.exact},
            {"at_least", size.schedules >= kCountLimit},
            {"knobs", knobs}}},
          {"best", best},
          {"device", DeviceId(device)}};
}

std::string InspectionWords(const Workload& workload, const Inspection& found, const Json& json) {
  std::string text = absl::StrCat("signature  ", workload.signature, "\ncanonical\n");
  absl::StrAppend(&text, workload.canonical,
                  workload.canonical.empty() || workload.canonical.back() != '\n' ? "\n" : "");
  absl::StrAppend(&text, "axes       ");
  for (const Json& axis : json["axes"]) {
    absl::StrAppend(&text, axis["name"].get<std::string>(), " (", axis["role"].get<std::string>(),
                    ") ", axis["extent"].dump(), "  ");
  }
  absl::StrAppend(&text, "\n");
  for (const auto& [family, why] : found.refused)
    absl::StrAppend(&text, "refused    ", family, ": ", why, "\n");
  if (found.family == nullptr) return text + "family     none takes it yet\n";
  absl::StrAppend(&text, "family     ", found.family->name(), "/", found.family->version(), "\n");
  const int64_t size = json["space"]["size"].get<int64_t>();
  absl::StrAppend(&text, "space      ", json["space"]["exact"].get<bool>() ? "" : "about ", size,
                  size >= kCountLimit ? " schedules or more\n" : " schedules\n");
  for (const compiler::Knob& knob : found.space->knobs()) {
    absl::StrAppend(&text, "  ", knob.name, " in {", absl::StrJoin(knob.values, ","),
                    "}: ", knob.meaning, "\n");
  }
  absl::StrAppend(&text, "best by the model\n");
  const std::optional<double> operations = OperationsOf(workload);
  for (const Ranked& one : found.best) {
    absl::StrAppend(&text, "  ", TimeWords(one.predicted_ns),
                    RateWords(operations, one.predicted_ns), "  ", one.text, "\n");
  }
  return text;
}

}  // namespace

absl::Status RunInspect(Session& session) {
  KILN_ASSIGN_OR_RETURN(const client::Selection selection, ParseSelect(session.options().select));
  KILN_ASSIGN_OR_RETURN(const Workload workload, CheckWorkload(selection.workload));
  KILN_ASSIGN_OR_RETURN(const DeviceFingerprint device, worker::ProbeHost(0));
  if (selection.device != "cpu" && selection.device != DeviceId(device)) {
    return MakeError(
        absl::StatusCode::kUnimplemented,
        absl::StrCat("--device: ", selection.device,
                     " cannot be inspected yet; allowed: cpu, which is this machine, ",
                     DeviceId(device)),
        {"DEVICE_NOT_INSPECTABLE", {{"field", "--device"}, {"value", selection.device}}});
  }
  KILN_ASSIGN_OR_RETURN(const Inspection found, Inspect(workload, device));
  const Json json = InspectionJson(workload, device, found);
  session.output().Print(json, InspectionWords(workload, found, json));
  return absl::OkStatus();
}

}  // namespace kiln::cli
