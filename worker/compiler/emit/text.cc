// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/emit/text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace kiln::compiler::emit {

using tile::Loop;

std::string RealName(DType type) { return type == DType::kF32 ? "float" : "double"; }

std::string VectorName(DType type, int lanes) {
  return lanes == 1 ? RealName(type) : absl::StrCat(RealName(type), lanes);
}

std::string Sum(const std::vector<std::pair<std::string, int64_t>>& terms, int64_t offset) {
  std::string text;
  for (const auto& [name, factor] : terms) {
    if (factor == 0) continue;
    const int64_t size = std::abs(factor);
    absl::StrAppend(&text, text.empty() ? (factor < 0 ? "-" : "") : (factor < 0 ? " - " : " + "),
                    name);
    if (size != 1) absl::StrAppend(&text, " * ", size);
  }
  if (offset != 0 || text.empty()) {
    absl::StrAppend(&text, text.empty() ? (offset < 0 ? "-" : "") : (offset < 0 ? " - " : " + "),
                    std::abs(offset));
  }
  return text;
}

std::string Scope::Position(int axis, const std::vector<int>& around) const {
  std::string text;
  for (int loop : around) {
    if (step_.loops[loop].axis != axis || !HasVariable(loop)) continue;
    absl::StrAppend(&text, text.empty() ? "" : " + ", Variable(loop));
  }
  return text;
}

std::string Scope::Remaining(int axis, int64_t span, const std::vector<int>& around) const {
  const int64_t extent = program_.axes[axis].extent;
  const std::string position = Position(axis, around);
  if (position.empty()) return absl::StrCat(std::min(span, extent));
  // The innermost loop around decides: if its steps fill the axis, a span within one is always
  // whole.
  int64_t step = extent;
  for (int loop : around) {
    if (step_.loops[loop].axis == axis && HasVariable(loop)) step = step_.loops[loop].step;
  }
  if (extent % step == 0 && span <= step) return absl::StrCat(span);
  return absl::StrCat("smaller(", span, ", ", extent, " - (", position, "))");
}

std::string Scope::Pointer(const tile::View& view) const {
  std::vector<std::pair<std::string, int64_t>> terms;
  for (const auto& [loop, factor] : view.loops) {
    if (!HasVariable(loop) || factor == 0) continue;
    const int64_t step = step_.loops[loop].step;
    if (factor % step == 0) {
      terms.push_back({Variable(loop), factor / step});
    } else {
      terms.push_back({absl::StrCat(Variable(loop), " / ", step), factor});
    }
  }
  const std::string& name = program_.buffers[view.buffer].name;
  const std::string sum = Sum(terms, view.offset);
  if (sum == "0") return name;
  if (terms.empty()) return absl::StrCat(name, " + ", view.offset);
  return absl::StrCat(name, " + (", sum, ")");
}

}  // namespace kiln::compiler::emit
