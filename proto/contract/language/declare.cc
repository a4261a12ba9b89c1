// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/declare.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/contract/error.h"
#include "proto/contract/language/check_int.h"
#include "proto/contract/language/limits.h"
#include "proto/contract/language/printer.h"

namespace kiln::language {
namespace {

constexpr absl::string_view kAllowedDims = "an integer 0..2^40-1, or a range lo..hi of such";

std::string DimList(const Scope& scope) {
  std::vector<std::string> names;
  for (const Dim& dim : scope.dims) names.push_back(dim.name);
  return names.empty() ? "no dims" : absl::StrJoin(names, ", ");
}

std::string Print(const DimBinding& binding) {
  return binding.is_static() ? absl::StrCat(binding.lo)
                             : absl::StrCat(binding.lo, "..", binding.hi);
}

absl::Status CheckBinding(absl::string_view name, const DimBinding& binding) {
  std::string field = absl::StrCat("dims.", name), value = Print(binding);
  if (binding.lo < 0) {
    return InvalidField("DIM_OUT_OF_RANGE", field, value, "negative", kAllowedDims);
  }
  if (binding.lo > binding.hi) {
    return InvalidField("DIM_OUT_OF_RANGE", field, value, "an empty range", kAllowedDims);
  }
  if (binding.hi > kMaxExtent) {
    return InvalidField("DIM_OUT_OF_RANGE", field, value, "too large", kAllowedDims);
  }
  return absl::OkStatus();
}

absl::Status CheckAllBound(const WorkloadSpec& spec, const Scope& scope) {
  std::vector<std::string> unbound;
  for (const Dim& dim : scope.dims) {
    if (spec.dims.count(dim.name) == 0) unbound.push_back(dim.name);
  }
  if (!unbound.empty()) {
    return InvalidField("UNBOUND_DIM", absl::StrCat("dims.", unbound[0]), "(nothing)",
                        absl::StrCat("not bound (unbound: ", absl::StrJoin(unbound, ", "), ")"),
                        kAllowedDims);
  }
  for (const auto& [name, binding] : spec.dims) {
    if (scope.FindDim(name) == nullptr) {
      return InvalidField("UNKNOWN_DIM", absl::StrCat("dims.", name), Print(binding),
                          "of a dim that the program does not have", DimList(scope));
    }
    KILN_RETURN_IF_ERROR(CheckBinding(name, binding));
  }
  return absl::OkStatus();
}

class Declarer {
 public:
  Declarer(const WorkloadSpec& spec, Scope* scope) : spec_(spec), scope_(*scope) {}

  absl::Status Run() {
    for (Statement& statement : scope_.program.statements) {
      if (!statement.is_declaration) continue;
      for (DeclSyntax& decl : statement.decls) Declare(statement.kind, &decl);
    }
    return CheckTypes();
  }

 private:
  void Declare(TensorKind kind, DeclSyntax* decl) {
    const NamePosition& name = decl->name;
    if (const Dim* dim = scope_.FindDim(name.name)) {
      scope_.errors.Add(name.offset, absl::StrCat(Quote(dim->name), " is a dim already"),
                        "dims and tensors share one name space: choose another name");
      return;
    }
    if (scope_.FindTensor(name.name) != nullptr) {
      scope_.errors.Add(name.offset, absl::StrCat(Quote(name.name), " is declared twice"),
                        "declare each tensor once");
      return;
    }
    if (scope_.tensors.size() == kMaxTensors) {
      scope_.errors.Add(name.offset, absl::StrCat("more than ", kMaxTensors, " tensors"),
                        "join tensors of one shape into one with one more axis");
      return;
    }
    TensorSymbol tensor;
    tensor.kind = kind;
    tensor.name = std::string(name.name.data(), name.name.size());
    tensor.offset = name.offset;
    auto given = spec_.types.find(tensor.name);
    tensor.type = decl->type                   ? *decl->type
                  : given != spec_.types.end() ? given->second
                                               : DType::kF32;
    AddAxes(decl, &tensor);
    scope_.tensor_names[name.name] = static_cast<int>(scope_.tensors.size());
    scope_.tensors.push_back(std::move(tensor));
  }

  void AddAxes(DeclSyntax* decl, TensorSymbol* tensor) {
    if (decl->dims.size() > kMaxRank) {
      scope_.errors.Add(decl->name.offset,
                        absl::StrCat(Quote(tensor->name), " has more than ", kMaxRank, " axes"),
                        "fold axes that are always used together into one");
      tensor->poisoned = true;
      return;
    }
    for (Expr* extent : decl->dims) {
      if (!CheckExtent(&scope_, extent, Quote(tensor->name))) tensor->poisoned = true;
      Axis axis{extent, extent->reference == Reference::kDim ? extent->index : -1};
      tensor->axes.push_back(axis);
      tensor->axis_names.push_back(PrintExpr(*extent));
    }
  }

  absl::Status CheckTypes() const {
    for (const auto& [name, type] : spec_.types) {
      std::string field = absl::StrCat("types.", name);
      const TensorSymbol* tensor = scope_.FindTensor(name);
      if (tensor == nullptr) {
        std::vector<std::string> names;
        for (const TensorSymbol& declared : scope_.tensors) names.push_back(declared.name);
        return InvalidField("UNKNOWN_TENSOR", field, kiln::Print(type),
                            "of a tensor that the program does not declare",
                            absl::StrJoin(names, ", "));
      }
      if (*tensor->type != type) {
        return InvalidField("TYPE_CONTRADICTS_PROGRAM", field, kiln::Print(type),
                            "not what the program declares", kiln::Print(*tensor->type));
      }
    }
    return absl::OkStatus();
  }

  const WorkloadSpec& spec_;
  Scope& scope_;
};

}  // namespace

absl::Status BindDims(const WorkloadSpec& spec, Scope* scope) {
  size_t errors = scope->errors.size();
  for (const NamePosition& name : scope->program.dims) {
    int index = static_cast<int>(scope->dims.size());
    if (!scope->dim_names.try_emplace(name.name, index).second) {
      scope->errors.Add(name.offset, absl::StrCat(Quote(name.name), " is named twice in the head"),
                        "name each dim once");
    }
    Dim dim;
    dim.name = std::string(name.name.data(), name.name.size());
    dim.offset = name.offset;
    scope->dims.push_back(std::move(dim));
  }
  if (scope->errors.size() > errors) return scope->errors.ToStatus();
  KILN_RETURN_IF_ERROR(CheckAllBound(spec, *scope));
  std::vector<Interval> dynamic;
  for (Dim& dim : scope->dims) {
    dim.range = spec.dims.at(dim.name);
    if (dim.range.is_static()) continue;
    dim.dynamic = static_cast<int>(dynamic.size());
    dynamic.push_back({dim.range.lo, dim.range.hi});
  }
  scope->affine = std::make_unique<Affine>(std::move(dynamic));
  return absl::OkStatus();
}

absl::Status DeclareTensors(const WorkloadSpec& spec, Scope* scope) {
  return Declarer(spec, scope).Run();
}

}  // namespace kiln::language
