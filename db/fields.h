// SPDX-License-Identifier: Apache-2.0
// The fields of the contract's values as JSON has them (json.h), and how their enums are spelt. For
// columns.cc alone.
#pragma once

#include <array>
#include <optional>
#include <type_traits>

#include "db/json.h"
#include "proto/contract/job.h"
#include "proto/contract/outcome.h"
#include "proto/contract/record.h"

namespace kiln {

// Found by argument-dependent lookup, beside the contract's own Print of enums.
inline absl::string_view Print(StepKind kind) {
  constexpr absl::string_view kWords[] = {"kernel", "library", "fill", "prepack"};
  return kWords[static_cast<int>(kind)];
}
inline absl::string_view Print(ArgumentKind kind) {
  constexpr absl::string_view kWords[] = {"tensor", "dim", "scalar", "workspace"};
  return kWords[static_cast<int>(kind)];
}

}  // namespace kiln

namespace kiln::db {

template <typename Enum>
std::optional<Enum> FindWord(absl::string_view word, int count) {
  for (int i = 0; i < count; ++i) {
    if (Print(static_cast<Enum>(i)) == word) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

template <>
inline std::optional<DType> ParseWord<DType>(absl::string_view word) {
  return ParseDType(word);
}
template <>
inline std::optional<Timer> ParseWord<Timer>(absl::string_view word) {
  return ParseTimer(word);
}
template <>
inline std::optional<StepKind> ParseWord<StepKind>(absl::string_view word) {
  return FindWord<StepKind>(word, 4);
}
template <>
inline std::optional<ArgumentKind> ParseWord<ArgumentKind>(absl::string_view word) {
  return FindWord<ArgumentKind>(word, 4);
}

}  // namespace kiln::db

// Fields must be found by argument-dependent lookup too, so they live beside the types they are of.
namespace kiln {

using db::Is;

// --- WorkloadSpec ---

template <typename Archive, Is<DimBinding> T>
void Fields(Archive& a, T& d) {
  a.Field("lo", d.lo);
  a.Field("hi", d.hi);
}

template <typename Archive, Is<Policy> T>
void Fields(Archive& a, T& p) {
  a.Field("accumulate", p.accumulate);
  a.Field("tf32", p.tf32);
  a.Field("finite_only", p.finite_only);
  a.Field("approximate", p.approximate);
  a.Field("fixed_order", p.fixed_order);
  a.Field("library", p.library);
}

template <typename Archive, Is<WorkloadSpec> T>
void Fields(Archive& a, T& s) {
  a.Field("program", s.program);
  a.Field("dims", s.dims);
  a.Field("types", s.types);
  a.Field("strides", s.strides);
  a.Field("alignment", s.alignment);
  a.Field("alias", s.alias);
  a.Field("policy", s.policy);
}

// --- Plan ---

template <typename Archive, Is<Count> T>
void Fields(Archive& a, T& c) {
  a.Field("value", c.value);
  a.Field("expression", c.expression);
}

// One by one by one, as most are on a CPU.
inline bool IsOne(const std::array<Count, 3>& counts) {
  for (const Count& count : counts) {
    if (count.value != 1 || !count.expression.empty()) return false;
  }
  return true;
}

// A launch's shape, left out where it is that.
template <typename Archive, typename Counts>
void ShapeField(Archive& a, absl::string_view name, Counts& counts) {
  std::optional<std::array<Count, 3>> shape;
  if (!IsOne(counts)) shape = counts;
  a.Field(name, shape);
  if constexpr (!std::is_const_v<Counts>) {
    counts.fill(Count());
    if (shape) counts = *shape;
  }
}

template <typename Archive, Is<Argument> T>
void Fields(Archive& a, T& x) {
  a.Field("kind", x.kind);
  a.Field("index", x.index);
  a.Field("offset", x.offset);
  a.Field("persistent", x.persistent);
  a.Field("is_float", x.is_float);
  a.Field("number", x.number);
  a.Field("integer", x.integer);
}

template <typename Archive, Is<Step> T>
void Fields(Archive& a, T& s) {
  a.Field("kind", s.kind);
  a.Field("entry", s.entry);
  ShapeField(a, "grid", s.grid);
  ShapeField(a, "block", s.block);
  ShapeField(a, "cluster", s.cluster);
  a.Field("shared_bytes", s.shared_bytes);
  a.Field("attributes", s.attributes);
  a.Field("artifact", s.artifact);
  a.Field("arguments", s.arguments);
}

template <typename Archive, Is<TensorNeed> T>
void Fields(Archive& a, T& n) {
  a.Field("alignment", n.alignment);
  a.Field("span_bytes", n.span_bytes);
  a.Field("written", n.written);
  // Counted from 1: what is left out is read back as 0, and is no alias.
  int alias = n.alias_of + 1;
  a.Field("alias", alias);
  if constexpr (!std::is_const_v<T>) n.alias_of = alias - 1;
}

template <typename Archive, Is<Plan> T>
void Fields(Archive& a, T& p) {
  a.Field("steps", p.steps);
  a.Field("workspace_bytes", p.workspace_bytes);
  a.Field("persistent_bytes", p.persistent_bytes);
  a.Field("tensors", p.tensors);
  a.Field("features", p.features);
  a.Field("needs", p.needs);
}

// --- Measurement and what goes with it ---

template <typename Archive, Is<Objective> T>
void Fields(Archive& a, T& o) {
  bool cold = o.cache == CacheState::kCold;
  bool sustained = o.burst == Burst::kSustained;
  a.Field("cold", cold);
  a.Field("sustained", sustained);
  if constexpr (!std::is_const_v<T>) {
    o.cache = cold ? CacheState::kCold : CacheState::kWarm;
    o.burst = sustained ? Burst::kSustained : Burst::kBurst;
  }
}

template <typename Archive, Is<Measurement> T>
void Fields(Archive& a, T& m) {
  a.Field("timer", m.timer);
  a.Field("method_version", m.method_version);
  a.Field("objective", m.objective);
  a.Field("samples_ns", m.samples_ns);
  a.Field("samples", m.samples);
  a.Field("median_ns", m.median_ns);
  a.Field("min_ns", m.min_ns);
  a.Field("mean_ns", m.mean_ns);
  a.Field("iqr_ns", m.iqr_ns);
  a.Field("ci95_lo_ns", m.ci95_lo_ns);
  a.Field("ci95_hi_ns", m.ci95_hi_ns);
  a.Field("inner_iterations", m.inner_iterations);
  a.Field("rejected", m.rejected);
  a.Field("conditions", m.conditions);
}

template <typename Archive, Is<Verification> T>
void Fields(Archive& a, T& v) {
  a.Field("method", v.method);
  a.Field("sets", v.sets);
  a.Field("max_error", v.max_error);
  a.Field("tolerance", v.tolerance);
  a.Field("seed", v.seed);
  a.Field("set_names", v.set_names);
}

template <typename Archive, Is<Baseline> T>
void Fields(Archive& a, T& b) {
  a.Field("name", b.name);
  a.Field("median_ns", b.median_ns);
  a.Field("ratio", b.ratio);
}

template <typename Archive, Is<Budget> T>
void Fields(Archive& a, T& b) {
  a.Field("trials", b.trials);
  a.Field("seconds", b.seconds);
  a.Field("seed", b.seed);
  a.Field("wait_worker_seconds", b.wait_worker_seconds);
}

template <typename Archive, Is<Progress> T>
void Fields(Archive& a, T& p) {
  a.Field("phase", p.phase);
  a.Field("queue_position", p.queue_position);
  a.Field("done", p.done);
  a.Field("total", p.total);
  a.Field("failed", p.failed);
  a.Field("best_ns", p.best_ns);
  a.Field("best_schedule", p.best_schedule);
  a.Field("seconds_left", p.seconds_left);
  a.Field("changed", p.changed);
}

}  // namespace kiln
