// SPDX-License-Identifier: Apache-2.0
// Scopes, names, reads and conversions; operations are in reference_operations.cc, loops in
// reference_loops.cc.
#include "worker/compiler/analysis/reference_body.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "worker/compiler/analysis/host_tensor.h"

namespace kiln::compiler {

using Error = ReferenceValue::Error;

Rounding RoundingOf(DType type, bool flush) {
  int precision = 24, least = -126;
  double top = std::numeric_limits<float>::max();
  switch (type) {
    case DType::kF64:
      precision = 53, least = -1022, top = std::numeric_limits<double>::max();
      break;
    case DType::kF16:
      precision = 11, least = -14, top = 65504;
      break;
    case DType::kBf16:
      precision = 8, top = std::ldexp(255, 120);
      break;
    case DType::kE4m3:
      precision = 4, least = -6, top = 448;
      break;
    case DType::kE5m2:
      precision = 3, least = -14, top = 57344;
      break;
    default:
      break;
  }
  return {std::ldexp(1, -precision), std::ldexp(1, flush ? least : least - precision), top};
}

std::string Hex(double value) {
  if (std::isnan(value)) return "kNan";
  if (std::isinf(value)) return value > 0 ? "kInf" : "(-kInf)";
  std::string text = absl::StrFormat("%a", value);
  return value < 0 || std::signbit(value) ? absl::StrCat("(", text, ")") : text;
}

std::string CType(DType type) {
  if (IsFloat(type)) return "double";
  return type == DType::kBool ? "bool" : "int64_t";
}

std::string RoundFunction(DType type) {
  switch (type) {
    case DType::kF64:
      return "RoundF64";
    case DType::kF32:
      return "RoundF32";
    case DType::kF16:
      return "RoundF16";
    case DType::kBf16:
      return "RoundBf16";
    case DType::kE4m3:
      return "RoundE4m3";
    default:
      return "RoundE5m2";
  }
}

ReferenceBody::ReferenceBody(ReferenceScene& scene) : scene_(scene), graph_(scene.graph) {
  known_.emplace_back();
}

void ReferenceBody::Line(const std::string& text) {
  absl::StrAppend(&text_, std::string(2 * indent_, ' '), text, "\n");
}

void ReferenceBody::Open(const std::string& text) {
  Line(text);
  ++indent_;
  known_.emplace_back();
}

void ReferenceBody::Close() {
  --indent_;
  known_.pop_back();
  Line("}");
}

std::string ReferenceBody::Use(const std::string& array) {
  arrays_.insert(array);
  return array;
}

std::string ReferenceBody::Fresh(const std::string& letter) {
  return absl::StrCat(letter, next_++);
}

ReferenceValue ReferenceBody::Declare(DType type, const std::string& expression) {
  ReferenceValue value{Fresh("v"), type, Error::kExact, 0, ""};
  Line(absl::StrCat("const ", CType(type), " ", value.text, " = ", expression, ";"));
  return value;
}

void ReferenceBody::SetError(ReferenceValue& value, const std::string& expression) {
  value.kind = Error::kNamed;
  value.error = Fresh("e");
  Line(absl::StrCat("const double ", value.error, " = ", expression, ";"));
}

std::string ReferenceBody::ErrorOf(const ReferenceValue& value) {
  switch (value.kind) {
    case Error::kExact:
      return "0.0";
    case Error::kNamed:
      return value.error;
    default: {
      const Rounding r = rounding(value.type);
      return absl::StrCat("Bound(", value.text, ", ", Hex(value.coefficient), " * std::fabs(",
                          value.text, ") + ", Hex(8 * r.floor), ", ", Hex(r.top), ")");
    }
  }
}

ReferenceValue ReferenceBody::Emit(const Term& term, const std::vector<std::string>& scope) {
  std::vector<std::string> own;
  own.reserve(term.vars.size());
  for (int v : term.vars) own.push_back(scope[v]);
  return EmitNode(term.node, own);
}

ReferenceValue ReferenceBody::EmitInteger(const Term& term, const std::vector<std::string>& scope) {
  const bool outer = std::exchange(subscript_, true);
  ReferenceValue value = ConvertTo(DType::kI64, Emit(term, scope));
  subscript_ = outer;
  return value;
}

ReferenceValue ReferenceBody::EmitNode(NodeId id, const std::vector<std::string>& own) {
  const Node& node = graph_.nodes[id];
  if (node.op == Op::kLiteral) return EmitLiteral(node);
  if (node.op == Op::kVar) return {own[0], DType::kI64, Error::kExact, 0, ""};
  const Key key{{id, subscript_}, own};
  for (auto scope = known_.rbegin(); scope != known_.rend(); ++scope) {
    auto found = scope->find(key);
    if (found != scope->end()) return found->second;
  }
  ReferenceValue value = EmitFresh(id, own);
  known_.back().emplace(key, value);
  return value;
}

ReferenceValue ReferenceBody::EmitLiteral(const Node& node) {
  if (node.type == DType::kBool) return {node.integer != 0 ? "true" : "false", node.type};
  if (!IsFloat(node.type)) {
    if (node.integer == std::numeric_limits<int64_t>::min()) return {"INT64_MIN", node.type};
    return {absl::StrCat("INT64_C(", node.integer, ")"), node.type};
  }
  ReferenceValue value{Hex(node.number), node.type};
  if (std::isfinite(node.number) && RoundTo(node.type, node.number) != node.number) {
    value.kind = Error::kRelative;  // a kernel holds the rounded one
    value.coefficient = rounding(node.type).unit;
  }
  return value;
}

ReferenceValue ReferenceBody::ConvertTo(DType type, const ReferenceValue& value) {
  if (value.type == type) return value;
  ReferenceValue result = value;
  result.type = type;
  if (IsFloat(type) && IsFloat(value.type)) {
    if (value.kind == Error::kRelative) {
      result.kind = Error::kExact;
      SetError(result, ErrorOf(value));
    }
    return result;  // narrowing happens at casts and stores alone, which have their own rounding
  }
  if (IsFloat(type)) {
    result = Declare(type, absl::StrCat("static_cast<double>(", value.text, ")"));
    const bool always_exact =
        value.type == DType::kBool || (type == DType::kF64 && value.type == DType::kI32);
    if (value.kind != Error::kExact || !always_exact) {
      const double unit = rounding(type).unit;
      SetError(result,
               absl::StrCat(ErrorOf(value), " + (std::fabs(", result.text, ") > ", Hex(1 / unit),
                            " ? ", Hex(unit), " * std::fabs(", result.text, ") : 0.0)"));
    }
    return result;
  }
  if (IsFloat(value.type)) return EmitCast(type, value);
  if (type == DType::kBool) {
    result.text = absl::StrCat("(", value.text, " != 0)");
  } else if (value.type == DType::kBool) {
    result.text = absl::StrCat("static_cast<int64_t>(", value.text, ")");
  } else if (type == DType::kI32) {
    result.text = absl::StrCat("WrapSigned(", value.text, ", 32)");
  }
  return result;
}

ReferenceValue ReferenceBody::LoadElement(int t, const std::string& index) {
  const Tensor& tensor = graph_.tensors[t];
  const DType type = ComputeType(tensor.type);
  const std::string array = Use(absl::StrCat("T", t));
  std::string element = absl::StrCat(array, "[", index, "]");
  if (tensor.kind == TensorKind::kOutput && !IsFloat(type)) {  // kept as doubles
    element = tensor.type == DType::kI64 ? absl::StrCat("DoubleToBits(", element, ")")
              : type == DType::kBool     ? absl::StrCat("(", element, " != 0)")
                                         : absl::StrCat("static_cast<int64_t>(", element, ")");
  }
  // An output is read as it is stored, rounded.
  const bool round = tensor.kind == TensorKind::kOutput && IsFloat(type);
  if (round) element = absl::StrCat(RoundFunction(tensor.type), "(", element, ")");
  ReferenceValue value = Declare(type, element);
  if (scene_.inexact_tensors[t]) {
    const std::string error = absl::StrCat(Use(absl::StrCat("E", t)), "[", index, "]");
    const Rounding r = rounding(tensor.type);
    SetError(value, !round ? error
                           : absl::StrCat(error, " == 0 ? 0.0 : ", error, " + ", Hex(2 * r.unit),
                                          " * std::fabs(", value.text, ") + ", Hex(2 * r.floor)));
  }
  return value;
}

ReferenceValue ReferenceBody::EmitRead(const Node& node, const std::vector<std::string>& own) {
  const Tensor& tensor = graph_.tensors[node.index];
  const std::vector<int64_t> shape = StaticShape(graph_, tensor);
  const bool packed =
      tensor.kind == TensorKind::kOutput;  // values are, whatever the output's strides
  std::string index, inside;
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  if (!packed && tensor.kind != TensorKind::kTemporary) strides = tensor.strides;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const std::string subscript = EmitInteger(node.args[axis], own).text;
    absl::StrAppend(&index, index.empty() ? "" : " + ", "(", subscript, ") * INT64_C(",
                    strides[axis], ")");
    if (!node.has_else && !scene_.plan.ReadsData(node.args[axis].node)) continue;
    absl::StrAppend(&inside, inside.empty() ? "" : " && ", subscript, " >= 0 && ", subscript,
                    " < INT64_C(", shape[axis], ")");
  }
  if (index.empty()) absl::StrAppend(&index, "0");
  if (inside.empty()) return ConvertTo(node.type, LoadElement(node.index, index));
  const ReferenceValue in = Declare(DType::kBool, inside);
  const std::string safe = Declare(DType::kI64, absl::StrCat(in.text, " ? ", index, " : 0")).text;
  if (!node.has_else) Line(absl::StrCat("if (!", in.text, ") c.fault->store(2);"));
  // A tensor without elements has nothing to load, even where the result is not used.
  bool empty = false;
  for (int64_t extent : shape) empty |= extent == 0;
  if (empty) {
    if (node.has_else) return ConvertTo(node.type, Emit(node.args.back(), own));
    return ConvertTo(node.type, {"INT64_C(0)", DType::kI64});
  }
  ReferenceValue loaded = ConvertTo(node.type, LoadElement(node.index, safe));
  if (!node.has_else) return loaded;
  ReferenceValue other = ConvertTo(node.type, Emit(node.args.back(), own));
  ReferenceValue value =
      Declare(node.type, absl::StrCat(in.text, " ? ", loaded.text, " : ", other.text));
  if (loaded.kind != Error::kExact || other.kind != Error::kExact) {
    SetError(value, absl::StrCat(in.text, " ? ", ErrorOf(loaded), " : ", ErrorOf(other)));
  }
  return value;
}

std::string ReferenceBody::KeptIndex(NodeId id, const std::vector<std::string>& own) const {
  const Box& box = scene_.plan.BoxOf(id);
  std::string index;
  int64_t stride = 1;
  for (size_t v = own.size(); v-- > 0;) {
    if (box.extent[v] != 1) {
      absl::StrAppend(&index, index.empty() ? "" : " + ", "(", own[v], " - INT64_C(", box.lo[v],
                      ")) * INT64_C(", stride, ")");
    }
    stride *= box.extent[v];
  }
  if (index.empty()) absl::StrAppend(&index, "0");
  return index;
}

ReferenceValue ReferenceBody::EmitKept(NodeId id, const std::vector<std::string>& own) {
  const std::string index = KeptIndex(id, own);
  ReferenceValue value =
      Declare(graph_.nodes[id].type, absl::StrCat(Use(absl::StrCat("N", id)), "[", index, "]"));
  if (scene_.inexact_nodes[id]) {
    SetError(value, absl::StrCat(Use(absl::StrCat("M", id)), "[", index, "]"));
  }
  return value;
}

}  // namespace kiln::compiler
