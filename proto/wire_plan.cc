// SPDX-License-Identifier: Apache-2.0
// Schedules and plans.
#include "kiln/v1/types.pb.h"
#include "proto/wire.h"
#include "proto/wire_values.h"

namespace kiln::wire {
namespace {

constexpr int kMaxKnobs = 256;
constexpr int kMaxSteps = 256;
constexpr int kMaxArguments = 256;
constexpr int kMaxTensors = 64;
constexpr int kMaxAttributes = 64;

static_assert(EnumToWire<v1::Step::Kind>(StepKind::kKernel) == v1::Step::KIND_KERNEL);
static_assert(EnumToWire<v1::Step::Kind>(StepKind::kLibrary) == v1::Step::KIND_LIBRARY);
static_assert(EnumToWire<v1::Step::Kind>(StepKind::kFill) == v1::Step::KIND_FILL);
static_assert(EnumToWire<v1::Step::Kind>(StepKind::kPrepack) == v1::Step::KIND_PREPACK);
static_assert(EnumToWire<v1::Argument::Kind>(ArgumentKind::kTensor) == v1::Argument::KIND_TENSOR);
static_assert(EnumToWire<v1::Argument::Kind>(ArgumentKind::kDim) == v1::Argument::KIND_DIM);
static_assert(EnumToWire<v1::Argument::Kind>(ArgumentKind::kScalar) == v1::Argument::KIND_SCALAR);
static_assert(EnumToWire<v1::Argument::Kind>(ArgumentKind::kWorkspace) ==
              v1::Argument::KIND_WORKSPACE);

using WireCounts = google::protobuf::RepeatedPtrField<v1::Count>;

void CountsToWire(const std::array<Count, 3>& counts, WireCounts* message) {
  for (const Count& count : counts) {
    auto* c = message->Add();
    c->set_value(count.value);
    c->set_expression(count.expression);
  }
}

absl::Status CountsFromWire(const WireCounts& message, absl::string_view field,
                            std::array<Count, 3>* counts) {
  if (message.empty()) return absl::OkStatus();  // 1, 1, 1
  if (message.size() != 3) {
    return InvalidField("WRONG_COUNT", field, absl::StrCat(message.size()), "not three numbers",
                        "3, or none");
  }
  for (int i = 0; i < 3; ++i) {
    KILN_RETURN_IF_ERROR(CheckAtLeast(message[i].value(), 0, absl::StrCat(field, "[", i, "]")));
    KILN_RETURN_IF_ERROR(
        CheckSize(message[i].expression(), 1024, absl::StrCat(field, "[", i, "]")));
    (*counts)[i] = {message[i].value(), message[i].expression()};
  }
  return absl::OkStatus();
}

void ArgumentToWire(const Argument& argument, v1::Argument* message) {
  message->set_kind(EnumToWire<v1::Argument::Kind>(argument.kind));
  message->set_index(argument.index);
  message->set_offset(argument.offset);
  message->set_persistent(argument.persistent);
  if (argument.kind != ArgumentKind::kScalar) return;
  if (argument.is_float) {
    message->set_number(argument.number);
  } else {
    message->set_integer(argument.integer);
  }
}

absl::Status ArgumentFromWire(const v1::Argument& message, absl::string_view field,
                              Argument* argument) {
  KILN_RETURN_IF_ERROR(EnumFromWire(message.kind(), ArgumentKind::kWorkspace,
                                    absl::StrCat(field, ".kind"), &argument->kind));
  KILN_RETURN_IF_ERROR(CheckAtLeast(message.index(), 0, absl::StrCat(field, ".index")));
  KILN_RETURN_IF_ERROR(CheckAtLeast(message.offset(), 0, absl::StrCat(field, ".offset")));
  argument->index = message.index();
  argument->offset = message.offset();
  argument->persistent = message.persistent();
  argument->is_float = message.scalar_case() == v1::Argument::kNumber;
  argument->number = message.number();
  argument->integer = message.integer();
  return absl::OkStatus();
}

void StepToWire(const Step& step, v1::Step* message) {
  message->set_kind(EnumToWire<v1::Step::Kind>(step.kind));
  message->set_entry(step.entry);
  CountsToWire(step.grid, message->mutable_grid());
  CountsToWire(step.block, message->mutable_block());
  CountsToWire(step.cluster, message->mutable_cluster());
  message->set_shared_bytes(step.shared_bytes);
  MapToWire(step.attributes, message->mutable_attributes());
  message->set_artifact(step.artifact);
  for (const Argument& argument : step.arguments)
    ArgumentToWire(argument, message->add_arguments());
}

absl::Status StepFromWire(const v1::Step& message, absl::string_view at, Step* step) {
  KILN_RETURN_IF_ERROR(
      EnumFromWire(message.kind(), StepKind::kPrepack, absl::StrCat(at, ".kind"), &step->kind));
  KILN_RETURN_IF_ERROR(CheckSize(message.entry(), 512, absl::StrCat(at, ".entry")));
  KILN_RETURN_IF_ERROR(CheckSize(message.artifact(), 64, absl::StrCat(at, ".artifact")));
  KILN_RETURN_IF_ERROR(CountsFromWire(message.grid(), absl::StrCat(at, ".grid"), &step->grid));
  KILN_RETURN_IF_ERROR(CountsFromWire(message.block(), absl::StrCat(at, ".block"), &step->block));
  KILN_RETURN_IF_ERROR(
      CountsFromWire(message.cluster(), absl::StrCat(at, ".cluster"), &step->cluster));
  KILN_RETURN_IF_ERROR(CheckAtLeast(message.shared_bytes(), 0, absl::StrCat(at, ".shared_bytes")));
  KILN_RETURN_IF_ERROR(MapFromWire(message.attributes(), kMaxAttributes,
                                   absl::StrCat(at, ".attributes"), &step->attributes));
  KILN_RETURN_IF_ERROR(
      CheckCount(message.arguments_size(), kMaxArguments, absl::StrCat(at, ".arguments")));
  step->entry = message.entry();
  step->artifact = message.artifact();
  step->shared_bytes = message.shared_bytes();
  step->arguments.resize(message.arguments_size());
  for (int i = 0; i < message.arguments_size(); ++i) {
    KILN_RETURN_IF_ERROR(ArgumentFromWire(
        message.arguments(i), absl::StrCat(at, ".arguments[", i, "]"), &step->arguments[i]));
  }
  return absl::OkStatus();
}

}  // namespace

void ToWire(const Schedule& schedule, v1::Schedule* message) {
  message->Clear();
  message->set_family(schedule.family);
  message->set_version(schedule.version);
  MapToWire(schedule.knobs, message->mutable_knobs());
}

absl::StatusOr<Schedule> FromWire(const v1::Schedule& message, absl::string_view at) {
  Schedule schedule;
  if (message.family().empty() || message.family().size() > 64) {
    return InvalidField("BAD_FAMILY", absl::StrCat(at, ".family"), message.family(), "no name",
                        "1..64 bytes");
  }
  KILN_RETURN_IF_ERROR(CheckAtLeast(message.version(), 1, absl::StrCat(at, ".version")));
  schedule.family = message.family();
  schedule.version = message.version();
  KILN_RETURN_IF_ERROR(
      MapFromWire(message.knobs(), kMaxKnobs, absl::StrCat(at, ".knobs"), &schedule.knobs));
  return schedule;
}

void ToWire(const Plan& plan, v1::Plan* message) {
  message->Clear();
  for (const Step& step : plan.steps) StepToWire(step, message->add_steps());
  message->set_workspace_bytes(plan.workspace_bytes);
  message->set_persistent_bytes(plan.persistent_bytes);
  for (const TensorNeed& need : plan.tensors) {
    auto* tensor = message->add_tensors();
    tensor->set_alignment(need.alignment);
    tensor->set_span_bytes(need.span_bytes);
    tensor->set_written(need.written);
    if (need.alias_of >= 0) tensor->set_alias_of(need.alias_of);
  }
  message->mutable_features()->Assign(plan.features.begin(), plan.features.end());
  MapToWire(plan.needs, message->mutable_needs());
}

absl::StatusOr<Plan> FromWire(const v1::Plan& message, absl::string_view at) {
  Plan plan;
  KILN_RETURN_IF_ERROR(CheckCount(message.steps_size(), kMaxSteps, absl::StrCat(at, ".steps")));
  plan.steps.resize(message.steps_size());
  for (int i = 0; i < message.steps_size(); ++i) {
    KILN_RETURN_IF_ERROR(
        StepFromWire(message.steps(i), absl::StrCat(at, ".steps[", i, "]"), &plan.steps[i]));
  }
  KILN_RETURN_IF_ERROR(
      CheckAtLeast(message.workspace_bytes(), 0, absl::StrCat(at, ".workspace_bytes")));
  KILN_RETURN_IF_ERROR(
      CheckAtLeast(message.persistent_bytes(), 0, absl::StrCat(at, ".persistent_bytes")));
  plan.workspace_bytes = message.workspace_bytes();
  plan.persistent_bytes = message.persistent_bytes();
  KILN_RETURN_IF_ERROR(
      CheckCount(message.tensors_size(), kMaxTensors, absl::StrCat(at, ".tensors")));
  for (int i = 0; i < message.tensors_size(); ++i) {
    const auto& need = message.tensors(i);
    const std::string field = absl::StrCat(at, ".tensors[", i, "]");
    KILN_RETURN_IF_ERROR(CheckAtLeast(need.alignment(), 1, absl::StrCat(field, ".alignment")));
    KILN_RETURN_IF_ERROR(CheckAtLeast(need.span_bytes(), 0, absl::StrCat(field, ".span_bytes")));
    const int alias_of = need.has_alias_of() ? need.alias_of() : -1;
    KILN_RETURN_IF_ERROR(CheckAtLeast(alias_of, -1, absl::StrCat(field, ".alias_of")));
    plan.tensors.push_back({need.alignment(), need.span_bytes(), need.written(), alias_of});
  }
  KILN_RETURN_IF_ERROR(
      CheckCount(message.features_size(), kMaxAttributes, absl::StrCat(at, ".features")));
  plan.features.assign(message.features().begin(), message.features().end());
  KILN_RETURN_IF_ERROR(
      MapFromWire(message.needs(), kMaxAttributes, absl::StrCat(at, ".needs"), &plan.needs));
  return plan;
}

void NameArguments(const Workload& workload, v1::Plan* message) {
  const auto& tensors = workload.graph.tensors;
  const auto& dims = workload.graph.dims;
  for (auto& step : *message->mutable_steps()) {
    for (auto& argument : *step.mutable_arguments()) {
      const size_t index = argument.index();
      if (argument.kind() == v1::Argument::KIND_TENSOR && index < tensors.size()) {
        argument.set_name(tensors[index].name);
      } else if (argument.kind() == v1::Argument::KIND_DIM && index < dims.size()) {
        argument.set_name(dims[index].name);
      }
    }
  }
  for (int i = 0; i < message->tensors_size() && i < static_cast<int>(tensors.size()); ++i) {
    message->mutable_tensors(i)->set_name(tensors[i].name);
  }
}

}  // namespace kiln::wire
