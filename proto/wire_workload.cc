// SPDX-License-Identifier: Apache-2.0
// Workload specs, devices and objectives.
#include "kiln/v1/types.pb.h"
#include "proto/wire.h"
#include "proto/wire_values.h"

namespace kiln::wire {
namespace {

// A little above the language's own limits, so that its checks speak first (64 KiB, 32 dims, 64
// tensors, rank 8).
constexpr int kMaxNames = 256;
constexpr int kMaxRank = 64;
constexpr int kMaxFeatures = 256;

static_assert(EnumToWire<v1::DeviceKind>(DeviceKind::kCuda) == v1::DEVICE_KIND_CUDA);
static_assert(EnumToWire<v1::Backing>(Backing::kSimulated) == v1::BACKING_SIMULATED);
static_assert(EnumToWire<v1::Objective::Cache>(CacheState::kCold) == v1::Objective::CACHE_COLD);
static_assert(EnumToWire<v1::Objective::Burst>(Burst::kSustained) ==
              v1::Objective::BURST_SUSTAINED);

absl::Status TypeFromWire(const std::string& word, absl::string_view field, DType* type) {
  const std::optional<DType> parsed = ParseDType(word);
  if (!parsed) return InvalidField("UNKNOWN_TYPE", field, word, "no type", AllDTypes());
  *type = *parsed;
  return absl::OkStatus();
}

}  // namespace

void ToWire(const WorkloadSpec& spec, v1::WorkloadSpec* message) {
  message->Clear();
  message->set_program(spec.program);
  for (const auto& [name, binding] : spec.dims) {
    auto& range = (*message->mutable_dims())[name];
    range.set_lo(binding.lo);
    range.set_hi(binding.hi);
  }
  for (const auto& [name, type] : spec.types)
    (*message->mutable_types())[name] = std::string(Print(type));
  for (const auto& [name, strides] : spec.strides) {
    auto& elements = *(*message->mutable_strides())[name].mutable_elements();
    elements.Assign(strides.begin(), strides.end());
  }
  MapToWire(spec.alignment, message->mutable_alignment());
  MapToWire(spec.alias, message->mutable_alias());
  auto* policy = message->mutable_policy();
  for (const auto& [name, type] : spec.policy.accumulate) {
    (*policy->mutable_accumulate())[name] = std::string(Print(type));
  }
  policy->set_tf32(spec.policy.tf32);
  policy->set_finite_only(spec.policy.finite_only);
  policy->set_approximate(spec.policy.approximate);
  policy->set_fixed_order(spec.policy.fixed_order);
  policy->set_no_library(!spec.policy.library);
}

absl::StatusOr<WorkloadSpec> FromWire(const v1::WorkloadSpec& message, absl::string_view at) {
  WorkloadSpec spec;
  if (message.program().empty()) {
    return InvalidField("MISSING_PROGRAM", absl::StrCat(at, ".program"), "", "empty",
                        "the text of one operator");
  }
  KILN_RETURN_IF_ERROR(CheckSize(message.program(), 1 << 20, absl::StrCat(at, ".program")));
  spec.program = message.program();
  KILN_RETURN_IF_ERROR(CheckCount(message.dims_size(), kMaxNames, absl::StrCat(at, ".dims")));
  for (const auto& [name, range] : message.dims()) spec.dims[name] = {range.lo(), range.hi()};
  KILN_RETURN_IF_ERROR(CheckCount(message.types_size(), kMaxNames, absl::StrCat(at, ".types")));
  for (const auto& [name, word] : message.types()) {
    KILN_RETURN_IF_ERROR(
        TypeFromWire(word, absl::StrCat(at, ".types[", name, "]"), &spec.types[name]));
  }
  KILN_RETURN_IF_ERROR(CheckCount(message.strides_size(), kMaxNames, absl::StrCat(at, ".strides")));
  for (const auto& [name, strides] : message.strides()) {
    KILN_RETURN_IF_ERROR(
        CheckCount(strides.elements_size(), kMaxRank, absl::StrCat(at, ".strides[", name, "]")));
    spec.strides[name].assign(strides.elements().begin(), strides.elements().end());
  }
  KILN_RETURN_IF_ERROR(
      MapFromWire(message.alignment(), kMaxNames, absl::StrCat(at, ".alignment"), &spec.alignment));
  KILN_RETURN_IF_ERROR(
      MapFromWire(message.alias(), kMaxNames, absl::StrCat(at, ".alias"), &spec.alias));
  const auto& policy = message.policy();
  KILN_RETURN_IF_ERROR(
      CheckCount(policy.accumulate_size(), kMaxNames, absl::StrCat(at, ".policy.accumulate")));
  for (const auto& [name, word] : policy.accumulate()) {
    KILN_RETURN_IF_ERROR(TypeFromWire(word, absl::StrCat(at, ".policy.accumulate[", name, "]"),
                                      &spec.policy.accumulate[name]));
  }
  spec.policy.tf32 = policy.tf32();
  spec.policy.finite_only = policy.finite_only();
  spec.policy.approximate = policy.approximate();
  spec.policy.fixed_order = policy.fixed_order();
  spec.policy.library = !policy.no_library();
  return spec;
}

void ToWire(const DeviceFingerprint& device, v1::Device* message) {
  message->Clear();
  message->set_kind(EnumToWire<v1::DeviceKind>(device.kind));
  message->set_backing(EnumToWire<v1::Backing>(device.backing));
  message->set_architecture(device.architecture);
  message->set_model(device.model);
  message->mutable_features()->Assign(device.features.begin(), device.features.end());
  message->set_cores(device.cores);
  message->set_threads(device.threads);
  message->set_numa_nodes(device.numa_nodes);
  message->set_vector_bits(device.vector_bits);
  message->set_l1d_bytes(device.l1d_bytes);
  message->set_l2_bytes(device.l2_bytes);
  message->set_l3_bytes(device.l3_bytes);
  message->set_l2_sharing(device.l2_sharing);
  message->set_l3_sharing(device.l3_sharing);
  message->set_line_bytes(device.line_bytes);
  message->set_multiprocessors(device.multiprocessors);
  message->set_shared_bytes_per_block(device.shared_bytes_per_block);
  message->set_registers_per_block(device.registers_per_block);
  message->set_mig(device.mig);
  message->set_name(device.name);
  message->set_memory_bytes(device.memory_bytes);
  message->set_id(DeviceId(device));
}

absl::StatusOr<DeviceFingerprint> FromWire(const v1::Device& message, absl::string_view at) {
  DeviceFingerprint device;
  KILN_RETURN_IF_ERROR(
      EnumFromWire(message.kind(), DeviceKind::kCuda, absl::StrCat(at, ".kind"), &device.kind));
  KILN_RETURN_IF_ERROR(EnumFromWire(message.backing(), Backing::kSimulated,
                                    absl::StrCat(at, ".backing"), &device.backing));
  const std::pair<const char*, int64_t> counts[] = {
      {"cores", message.cores()},
      {"threads", message.threads()},
      {"numa_nodes", message.numa_nodes()},
      {"vector_bits", message.vector_bits()},
      {"l1d_bytes", message.l1d_bytes()},
      {"l2_bytes", message.l2_bytes()},
      {"l3_bytes", message.l3_bytes()},
      {"l2_sharing", message.l2_sharing()},
      {"l3_sharing", message.l3_sharing()},
      {"line_bytes", message.line_bytes()},
      {"multiprocessors", message.multiprocessors()},
      {"shared_bytes_per_block", message.shared_bytes_per_block()},
      {"registers_per_block", message.registers_per_block()},
      {"memory_bytes", message.memory_bytes()}};
  for (const auto& [name, value] : counts) {
    KILN_RETURN_IF_ERROR(CheckAtLeast(value, 0, absl::StrCat(at, ".", name)));
  }
  if (device.kind == DeviceKind::kCpu) {
    KILN_RETURN_IF_ERROR(CheckAtLeast(message.threads(), 1, absl::StrCat(at, ".threads")));
  }
  const std::pair<const char*, const std::string*> texts[] = {
      {"architecture", &message.architecture()},
      {"model", &message.model()},
      {"mig", &message.mig()},
      {"name", &message.name()}};
  for (const auto& [name, text] : texts)
    KILN_RETURN_IF_ERROR(CheckSize(*text, 256, absl::StrCat(at, ".", name)));
  if (message.architecture().empty()) {
    return InvalidField("MISSING_FIELD", absl::StrCat(at, ".architecture"), "", "empty",
                        "x86-64, aarch64, sm_*");
  }
  KILN_RETURN_IF_ERROR(
      CheckCount(message.features_size(), kMaxFeatures, absl::StrCat(at, ".features")));
  device.architecture = message.architecture();
  device.model = message.model();
  device.features.assign(message.features().begin(), message.features().end());
  device.cores = message.cores();
  device.threads = message.threads();
  device.numa_nodes = message.numa_nodes();
  device.vector_bits = message.vector_bits();
  device.l1d_bytes = message.l1d_bytes();
  device.l2_bytes = message.l2_bytes();
  device.l3_bytes = message.l3_bytes();
  device.l2_sharing = message.l2_sharing();
  device.l3_sharing = message.l3_sharing();
  device.line_bytes = message.line_bytes();
  device.multiprocessors = message.multiprocessors();
  device.shared_bytes_per_block = message.shared_bytes_per_block();
  device.registers_per_block = message.registers_per_block();
  device.mig = message.mig();
  device.name = message.name();
  device.memory_bytes = message.memory_bytes();
  return device;
}

Objective DefaultObjective(DeviceKind kind) {
  return {kind == DeviceKind::kCpu ? CacheState::kWarm : CacheState::kCold, Burst::kBurst};
}

void ToWire(const Objective& objective, v1::Objective* message) {
  message->set_cache(EnumToWire<v1::Objective::Cache>(objective.cache));
  message->set_burst(EnumToWire<v1::Objective::Burst>(objective.burst));
}

absl::StatusOr<Objective> FromWire(const v1::Objective& message, const Objective& fallback,
                                   absl::string_view at) {
  Objective objective = fallback;
  if (message.cache() != v1::Objective::CACHE_UNSPECIFIED) {
    KILN_RETURN_IF_ERROR(EnumFromWire(message.cache(), CacheState::kCold,
                                      absl::StrCat(at, ".cache"), &objective.cache));
  }
  if (message.burst() != v1::Objective::BURST_UNSPECIFIED) {
    KILN_RETURN_IF_ERROR(EnumFromWire(message.burst(), Burst::kSustained,
                                      absl::StrCat(at, ".burst"), &objective.burst));
  }
  return objective;
}

}  // namespace kiln::wire
