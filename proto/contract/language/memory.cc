// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/contract/error.h"
#include "proto/contract/language/affine.h"
#include "proto/contract/language/limits.h"
#include "proto/contract/language/overlap.h"

namespace kiln::language {
namespace {

using Wide = __int128;

constexpr int64_t kMaxAlignment = 4096;  // a page: no instruction or bus asks for more

class MemoryLayout {
 public:
  MemoryLayout(const WorkloadSpec& spec, Graph* graph) : spec_(spec), graph_(*graph) {}

  absl::Status Run() {
    for (const auto& [name, strides] : spec_.strides) {
      KILN_RETURN_IF_ERROR(
          CheckName(absl::StrCat("strides.", name), name, absl::StrJoin(strides, ":")));
    }
    for (const auto& [name, alignment] : spec_.alignment) {
      KILN_RETURN_IF_ERROR(
          CheckName(absl::StrCat("alignment.", name), name, absl::StrCat(alignment)));
    }
    for (Tensor& tensor : graph_.tensors) {
      KILN_RETURN_IF_ERROR(SetStrides(&tensor));
      KILN_RETURN_IF_ERROR(SetAlignment(&tensor));
    }
    KILN_RETURN_IF_ERROR(CheckTotal());
    for (const auto& [name, of] : spec_.alias) KILN_RETURN_IF_ERROR(SetAlias(name, of));
    return absl::OkStatus();
  }

 private:
  Tensor* Find(absl::string_view name) {
    for (Tensor& tensor : graph_.tensors) {
      if (tensor.kind != TensorKind::kTemporary && tensor.name == name) return &tensor;
    }
    return nullptr;
  }

  std::string Names(std::initializer_list<TensorKind> kinds) const {
    std::vector<std::string> names;
    for (const Tensor& tensor : graph_.tensors) {
      if (std::count(kinds.begin(), kinds.end(), tensor.kind) > 0) names.push_back(tensor.name);
    }
    return absl::StrJoin(names, ", ");
  }

  absl::Status CheckName(absl::string_view field, absl::string_view name, absl::string_view value) {
    if (Find(name) != nullptr) return absl::OkStatus();
    return InvalidField("UNKNOWN_TENSOR", field, value,
                        "of a tensor that the program does not declare",
                        Names({TensorKind::kInput, TensorKind::kConstant, TensorKind::kOutput}));
  }

  // Each extent's least and greatest value.
  std::vector<Interval> Extents(const Tensor& tensor) const {
    std::vector<Interval> extents;
    for (const Term& extent : tensor.shape) extents.push_back(Bounds(graph_, extent, {}));
    return extents;
  }

  // Row-major strides; nothing where a dynamic extent behind the axis makes one an expression.
  static std::vector<int64_t> Packed(const std::vector<Interval>& extents) {
    std::vector<int64_t> strides(extents.size(), 1);
    Wide stride = 1;
    for (size_t axis = extents.size(); axis-- > 0;) {
      strides[axis] = static_cast<int64_t>(std::min<Wide>(stride, kMaxAddressBytes));
      if (axis > 0 && extents[axis].lo != extents[axis].hi) return {};
      stride = std::min<Wide>(stride * std::max<int64_t>(extents[axis].hi, 1), kMaxAddressBytes);
    }
    return strides;
  }

  // Bytes from the first to one past the last element at the upper ends of the dims.
  static Wide SpanBytes(const Tensor& tensor, const std::vector<Interval>& extents) {
    Wide last = 0, packed = 1;
    constexpr Wide kMuch = static_cast<Wide>(1) << 80;
    for (size_t axis = extents.size(); axis-- > 0;) {
      if (extents[axis].hi == 0) return 0;
      Wide stride = tensor.packed ? packed : tensor.strides[axis];
      last = std::min(kMuch, last + std::min(kMuch, stride) * (extents[axis].hi - 1));
      packed = std::min(kMuch, packed * extents[axis].hi);
    }
    return std::min(kMuch, ((last + 1) * Bits(tensor.type) + 7) / 8);
  }

  std::string DimsText() const {
    std::vector<std::string> dims;
    for (const auto& [name, binding] : spec_.dims) {
      dims.push_back(binding.is_static() ? absl::StrCat(name, "=", binding.lo)
                                         : absl::StrCat(name, "=", binding.lo, "..", binding.hi));
    }
    return absl::StrJoin(dims, ",");
  }

  absl::Status SetStrides(Tensor* tensor) {
    std::vector<Interval> extents = Extents(*tensor);
    std::vector<int64_t> packed = Packed(extents);
    auto given = tensor->kind == TensorKind::kTemporary ? spec_.strides.end()
                                                        : spec_.strides.find(tensor->name);
    std::string field = "dims", value = DimsText();
    tensor->strides = packed;
    if (given != spec_.strides.end()) {
      field = absl::StrCat("strides.", tensor->name);
      value = absl::StrJoin(given->second, ":");
      KILN_RETURN_IF_ERROR(TakeStrides(given->second, field, value, extents, packed, tensor));
    }
    Wide bytes = SpanBytes(*tensor, extents);
    total_ += bytes;
    if (bytes <= kMaxAddressBytes) return absl::OkStatus();
    return InvalidField("TENSOR_TOO_LARGE", field, value,
                        absl::StrCat("too large: ", tensor->name, " would span ",
                                     static_cast<double>(bytes), " bytes"),
                        "at most 2^62 bytes per tensor");
  }

  absl::Status TakeStrides(const std::vector<int64_t>& given, absl::string_view field,
                           absl::string_view value, const std::vector<Interval>& extents,
                           const std::vector<int64_t>& packed, Tensor* tensor) {
    if (given.size() != extents.size()) {
      return InvalidField("INVALID_STRIDES", field, value,
                          absl::StrCat("of ", given.size(), " axes"),
                          absl::StrCat(extents.size(), " strides, one per axis"));
    }
    if (std::any_of(given.begin(), given.end(), [](int64_t stride) { return stride < 0; })) {
      return InvalidField("INVALID_STRIDES", field, value, "negative",
                          "strides of 0 and more, in elements");
    }
    bool empty = std::any_of(extents.begin(), extents.end(),
                             [](const Interval& extent) { return extent.hi == 0; });
    if (empty) return absl::OkStatus();
    // Strides of extents 0 and 1 do not count: they are written as in a packed tensor.
    std::vector<int64_t> strides = given;
    std::vector<int64_t> highest;
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      highest.push_back(extents[axis].hi);
      if (extents[axis].hi <= 1) strides[axis] = packed.empty() ? 0 : packed[axis];
    }
    if (strides == packed) return absl::OkStatus();
    tensor->strides = strides;
    tensor->packed = false;
    if (Bits(tensor->type) < 8) KILN_RETURN_IF_ERROR(CheckNibbles(*tensor, highest, field, value));
    if (tensor->kind != TensorKind::kOutput) return absl::OkStatus();
    switch (FindOverlap(highest, strides)) {
      case Overlap::kNo:
        return absl::OkStatus();
      case Overlap::kYes:
        return InvalidField("OVERLAPPING_OUTPUT", field, value,
                            "overlapping: two elements of the output share memory",
                            "strides under which each element has memory of its own");
      case Overlap::kUnknown:
        break;
    }
    return InvalidField("OVERLAPPING_OUTPUT", field, value,
                        "too intricate to show that no elements overlap",
                        "strides each of which exceeds what the smaller ones span");
  }

  // Two elements share a byte along the last axis; rows begin at whole bytes.
  static absl::Status CheckNibbles(const Tensor& tensor, const std::vector<int64_t>& extents,
                                   absl::string_view field, absl::string_view value) {
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      if (extents[axis] <= 1) continue;
      bool last = axis + 1 == extents.size();
      if (last ? tensor.strides[axis] == 1 : tensor.strides[axis] % 2 == 0) continue;
      return InvalidField("INVALID_STRIDES", field, value,
                          absl::StrCat("not possible for ", Print(tensor.type)),
                          "1 along the last axis and even strides along the others");
    }
    return absl::OkStatus();
  }

  absl::Status SetAlignment(Tensor* tensor) {
    auto given = tensor->kind == TensorKind::kTemporary ? spec_.alignment.end()
                                                        : spec_.alignment.find(tensor->name);
    if (given == spec_.alignment.end()) return absl::OkStatus();
    int64_t least = std::max(1, Bits(tensor->type) / 8), bytes = given->second;
    bool power = bytes > 0 && (bytes & (bytes - 1)) == 0;
    if (!power || bytes < least || bytes > kMaxAlignment) {
      return InvalidField("INVALID_ALIGNMENT", absl::StrCat("alignment.", tensor->name),
                          absl::StrCat(bytes),
                          absl::StrCat("no alignment of ", Print(tensor->type)),
                          absl::StrCat("a power of two from ", least, " to ", kMaxAlignment));
    }
    tensor->alignment = bytes;
    return absl::OkStatus();
  }

  absl::Status CheckTotal() const {
    if (total_ <= kMaxAddressBytes) return absl::OkStatus();
    return InvalidField(
        "TENSOR_TOO_LARGE", "dims", DimsText(),
        absl::StrCat("too large: the tensors would span ", static_cast<double>(total_), " bytes"),
        "at most 2^62 bytes in all");
  }

  bool SameLayout(const Tensor& a, const Tensor& b) const {
    auto same_extent = [](const Term& x, const Term& y) { return x == y; };
    return a.type == b.type &&
           std::equal(a.shape.begin(), a.shape.end(), b.shape.begin(), b.shape.end(),
                      same_extent) &&
           a.packed == b.packed && (a.packed || a.strides == b.strides);
  }

  absl::Status SetAlias(const std::string& name, const std::string& of) {
    std::string field = absl::StrCat("alias.", name);
    Tensor* output = Find(name);
    if (output == nullptr || output->kind != TensorKind::kOutput) {
      return InvalidField("INVALID_ALIAS", field, of, "the alias of a tensor that is no output",
                          Names({TensorKind::kOutput}));
    }
    Tensor* input = Find(of);
    if (input == nullptr || input->kind != TensorKind::kInput) {
      bool constant = input != nullptr && input->kind == TensorKind::kConstant;
      return InvalidField("INVALID_ALIAS", field, of,
                          constant ? "a constant, which launches may not change" : "no input",
                          Names({TensorKind::kInput}));
    }
    int index = static_cast<int>(input - graph_.tensors.data());
    for (const Tensor& other : graph_.tensors) {
      if (other.alias_of == index) {
        return InvalidField("INVALID_ALIAS", field, of,
                            absl::StrCat("the alias of output ", other.name, " already"),
                            "one output per input");
      }
    }
    if (!SameLayout(*output, *input)) {
      return InvalidField(
          "INVALID_ALIAS", field, of, "a partial overlap: type, shape or strides differ",
          absl::StrCat("an input with exactly the type, shape and strides of ", name));
    }
    output->alias_of = index;
    return absl::OkStatus();
  }

  const WorkloadSpec& spec_;
  Graph& graph_;
  Wide total_ = 0;
};

}  // namespace

absl::Status ApplyMemory(const WorkloadSpec& spec, Graph* graph) {
  return MemoryLayout(spec, graph).Run();
}

}  // namespace kiln::language
