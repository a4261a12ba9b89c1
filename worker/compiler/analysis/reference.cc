// SPDX-License-Identifier: Apache-2.0
// The stages of a reference: one per kept node and per computed tensor, each a parallel loop over
// its elements.
#include "worker/compiler/analysis/reference.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/compiler/analysis/host_tensor.h"
#include "worker/compiler/analysis/reference_body.h"
#include "worker/compiler/analysis/reference_inner.h"
#include "worker/compiler/analysis/reference_prelude.h"

namespace kiln::compiler {
namespace {

using Error = ReferenceValue::Error;

// Elements of the innermost variable that one task computes: their accumulators stay in the first
// cache.
constexpr int64_t kBlock = 256;

class Emitter {
 public:
  explicit Emitter(const Workload& workload)
      : graph_(workload.graph),
        scene_{graph_,
               workload.policy,
               ReferencePlan(graph_),
               AffineTable(graph_),
               std::vector<bool>(graph_.nodes.size()),
               std::vector<bool>(graph_.tensors.size())} {}

  std::string Emit();

 private:
  void BindInputs();
  void EmitStage(NodeId id);
  void EmitTensor(int t);
  void Array(const std::string& type, const std::string& name, int64_t elements);
  InnerLoop BeginTask(ReferenceBody& body, const Box& box, int inner,
                      const std::vector<std::string>& own);
  void EndTask(const std::string& name, const ReferenceBody& body, const Box& box, int inner);

  const Graph& graph_;
  ReferenceScene scene_;
  std::string members_, stages_, entry_;
  std::map<std::string, std::string> types_;  // of the context's arrays
};

void Emitter::Array(const std::string& type, const std::string& name, int64_t elements) {
  types_[name] = type;
  absl::StrAppend(&members_, "  ", type, "* ", name, " = nullptr;\n");
  if (elements < 0) return;
  absl::StrAppend(&entry_, "  if (!c.Allocate(&c.", name, ", INT64_C(", elements,
                  "))) return 1;\n");
}

// Inputs narrower than what they compute in are widened once, so that inner loops stay plain.
void Emitter::BindInputs() {
  for (size_t t = 0; t < graph_.tensors.size(); ++t) {
    const Tensor& tensor = graph_.tensors[t];
    if (tensor.kind != TensorKind::kInput && tensor.kind != TensorKind::kConstant) continue;
    const std::string name = absl::StrCat("T", t), in = absl::StrCat("inputs[", t, "]");
    const int64_t span = SpanElements(graph_, tensor);
    auto direct = [&](const std::string& type) {
      Array(absl::StrCat("const ", type), name, -1);
      absl::StrAppend(&entry_, "  c.", name, " = static_cast<const ", type, "*>(", in, ");\n");
    };
    auto widened = [&](const std::string& type, const std::string& raw, const std::string& value) {
      Array(type, name, span);
      absl::StrAppend(&entry_, "  for (int64_t i = 0; i < INT64_C(", span,
                      "); ++i) {\n    const int64_t x = static_cast<const ", raw, "*>(", in, ")[",
                      Bits(tensor.type) == 4 ? "i / 2" : "i", "];\n    c.", name, "[i] = ", value,
                      ";\n  }\n");
    };
    switch (tensor.type) {
      case DType::kF64:
        direct("double");
        break;
      case DType::kF32:
        direct("float");
        break;
      case DType::kI64:
        direct("int64_t");
        break;
      case DType::kI32:
        direct("int32_t");
        break;
      case DType::kI16:
        direct("int16_t");
        break;
      case DType::kI8:
        direct("int8_t");
        break;
      case DType::kU8:
        direct("uint8_t");
        break;
      case DType::kBool:
        widened("uint8_t", "uint8_t", "x != 0");
        break;
      case DType::kI4:
        widened("int8_t", "uint8_t", "static_cast<int8_t>(WrapSigned(x >> (i % 2 * 4), 4))");
        break;
      case DType::kU4:
        widened("uint8_t", "uint8_t", "static_cast<uint8_t>(x >> (i % 2 * 4) & 15)");
        break;
      case DType::kF16:
        widened("float", "uint16_t", "static_cast<float>(Decode(x, 10, 5, 15, false))");
        break;
      case DType::kBf16:
        widened("float", "uint16_t", "static_cast<float>(Decode(x, 7, 8, 127, false))");
        break;
      case DType::kE4m3:
        widened("float", "uint8_t", "static_cast<float>(Decode(x, 3, 4, 7, true))");
        break;
      case DType::kE5m2:
        widened("float", "uint8_t", "static_cast<float>(Decode(x, 2, 5, 15, false))");
        break;
    }
  }
}

// Decodes the task into the outer variables and a block of the inner one (if any).
InnerLoop Emitter::BeginTask(ReferenceBody& body, const Box& box, int inner,
                             const std::vector<std::string>& own) {
  int64_t outer = 1;
  for (size_t v = 0; v < own.size(); ++v) {
    if (static_cast<int>(v) != inner) outer *= box.extent[v];
  }
  body.Line(absl::StrCat("int64_t rest = task % INT64_C(", outer, ");"));
  for (size_t v = own.size(); v-- > 0;) {
    if (static_cast<int>(v) == inner) continue;
    body.Line(absl::StrCat("const int64_t ", own[v], " = INT64_C(", box.lo[v],
                           ") + rest % INT64_C(", box.extent[v], "); rest /= INT64_C(",
                           box.extent[v], "); static_cast<void>(", own[v], ");"));
  }
  if (inner < 0) return {};
  body.Line(absl::StrCat("const int64_t begin = INT64_C(", box.lo[inner], ") + task / INT64_C(",
                         outer, ") * ", kBlock, ";"));
  body.Line(absl::StrCat("const int64_t end = IMin(begin + ", kBlock, ", INT64_C(",
                         box.lo[inner] + box.extent[inner], "));"));
  return {own[inner], "begin", "end", std::min(kBlock, box.extent[inner])};
}

void Emitter::EndTask(const std::string& name, const ReferenceBody& body, const Box& box,
                      int inner) {
  if (box.elements() == 0) return;
  int64_t tasks = 1;
  for (size_t v = 0; v < box.extent.size(); ++v) {
    tasks *= static_cast<int>(v) == inner ? (box.extent[v] + kBlock - 1) / kBlock : box.extent[v];
  }
  absl::StrAppend(&stages_, "void ", name, "(const Context& c, int64_t task) {\n");
  for (const std::string& array : body.arrays()) {
    absl::StrAppend(&stages_, "  ", types_[array], "* __restrict ", array, " = c.", array, ";\n");
  }
  absl::StrAppend(&stages_, body.text(), "}\n\n");
  absl::StrAppend(&entry_, "  ParallelFor(INT64_C(", tasks, "), threads, [&](int64_t task) { ",
                  name, "(c, task); });\n");
}

void Emitter::EmitStage(NodeId id) {
  const Node& node = graph_.nodes[id];
  const Box& box = scene_.plan.BoxOf(id);
  std::vector<std::string> own;
  for (int v = 0; v < node.free_vars; ++v) own.push_back(absl::StrCat("f", v));
  ReferenceBody body(scene_);
  const std::string suffix = absl::StrCat(id);
  if (node.op == Op::kSoftmax) {
    for (const char* array : {"N", "Z", "M", "W"})
      Array("double", absl::StrCat(array, suffix), box.elements());
    BeginTask(body, box, -1, own);
    body.EmitSoftmaxRow(id, own);
    EndTask(absl::StrCat("Row", id), body, box, -1);
    return;
  }
  const bool index = node.reduce == ReduceOp::kArgmax || node.reduce == ReduceOp::kArgmin;
  const int inner = index ? -1 : ChooseInner(scene_, id);
  const InnerLoop loop = BeginTask(body, box, inner, own);
  ReferenceValue value;
  if (index) {
    value = body.EmitArgReduction(node, own);
  } else {
    const auto sums = body.EmitReduction(node, own, inner < 0 ? nullptr : &loop);
    if (inner >= 0) {
      body.Open(absl::StrCat("for (int64_t ", loop.variable, " = begin; ", loop.variable,
                             " < end; ++", loop.variable, ") {"));
    }
    value = body.Result(sums, inner >= 0 ? absl::StrCat(loop.variable, " - begin") : "0");
  }
  Array(CType(node.type), absl::StrCat("N", suffix), box.elements());
  const std::string at = absl::StrCat("[", body.KeptIndex(id, own), "] = ");
  body.Line(absl::StrCat(body.Use(absl::StrCat("N", suffix)), at, value.text, ";"));
  scene_.inexact_nodes[id] = value.kind != Error::kExact;
  if (value.kind != Error::kExact) {
    Array("double", absl::StrCat("M", suffix), box.elements());
    body.Line(absl::StrCat(body.Use(absl::StrCat("M", suffix)), at, body.ErrorOf(value), ";"));
  }
  if (inner >= 0) body.Close();
  EndTask(absl::StrCat("Reduce", id), body, box, inner);
}

void Emitter::EmitTensor(int t) {
  const Tensor& tensor = graph_.tensors[t];
  const bool output = tensor.kind == TensorKind::kOutput;
  Box box;
  box.extent = StaticShape(graph_, tensor);
  box.lo.assign(box.extent.size(), 0);
  const int inner = static_cast<int>(box.extent.size()) - 1;
  std::vector<std::string> own;
  std::string index;
  int64_t stride = 1;
  for (size_t v = 0; v < box.extent.size(); ++v) own.push_back(absl::StrCat("f", v));
  for (size_t v = own.size(); v-- > 0;) {
    absl::StrAppend(&index, index.empty() ? "" : " + ", own[v], " * INT64_C(", stride, ")");
    stride *= box.extent[v];
  }
  if (index.empty()) absl::StrAppend(&index, "0");

  ReferenceBody body(scene_);
  const InnerLoop loop = BeginTask(body, box, inner, own);
  if (inner >= 0) {
    body.Open(absl::StrCat("for (int64_t ", loop.variable, " = begin; ", loop.variable,
                           " < end; ++", loop.variable, ") {"));
  }
  ReferenceValue value = body.Emit(tensor.definition, own);
  // Floats are rounded by whoever compares or reads; a temporary of its expression's own type does
  // not round.
  const bool rounds = !IsFloat(tensor.type) || (!output && tensor.type != value.type);
  if (rounds) value = body.Cast(tensor.type, value);
  if (IsFloat(tensor.type)) value = body.ConvertTo(ComputeType(tensor.type), value);
  std::string text = value.text;
  if (output && !IsFloat(tensor.type)) {
    text = tensor.type == DType::kI64 ? absl::StrCat("BitsToDouble(", text, ")")
                                      : absl::StrCat("static_cast<double>(", text, ")");
  }
  const std::string suffix = absl::StrCat(t);
  Array(output ? "double" : CType(value.type), absl::StrCat("T", suffix),
        output ? -1 : box.elements());
  body.Line(absl::StrCat(body.Use(absl::StrCat("T", suffix)), "[", index, "] = ", text, ";"));
  scene_.inexact_tensors[t] = value.kind != Error::kExact;
  if (output || value.kind != Error::kExact) {
    Array("double", absl::StrCat("E", suffix), output ? -1 : box.elements());
    body.Line(absl::StrCat(body.Use(absl::StrCat("E", suffix)), "[", index,
                           "] = ", body.ErrorOf(value), ";"));
  }
  if (inner >= 0) body.Close();
  EndTask(absl::StrCat("Tensor", t), body, box, inner);
}

std::string Emitter::Emit() {
  BindInputs();
  int output = 0;
  for (size_t t = 0; t < graph_.tensors.size(); ++t) {
    if (graph_.tensors[t].kind != TensorKind::kOutput) continue;
    absl::StrAppend(&entry_, "  c.T", t, " = values[", output, "];\n  c.E", t, " = errors[", output,
                    "];\n");
    ++output;
  }
  std::set<NodeId> emitted;
  for (int t : graph_.order) {
    for (NodeId id : scene_.plan.KeptBelow(graph_.tensors[t].definition)) {
      if (emitted.insert(id).second) EmitStage(id);
    }
    EmitTensor(t);
  }
  return absl::StrCat(
      kReferencePrelude, "struct Context {\n", members_,
      "  std::atomic<int>* fault = nullptr;\n  std::vector<void*> owned;\n\n",
      "  template <typename T>\n  bool Allocate(T** array, int64_t elements) {\n",
      "    void* memory = ::operator new(static_cast<size_t>(elements) * sizeof(T) + 64, "
      "std::nothrow);\n",
      "    if (memory == nullptr) return false;\n    owned.push_back(memory);\n",
      "    *array = static_cast<T*>(memory);\n    return true;\n  }\n",
      "  ~Context() { for (void* memory : owned) ::operator delete(memory); }\n};\n\n", stages_,
      "}  // namespace\n\nextern \"C\" int kiln_reference(const void* const* inputs, double* "
      "const* values, double* const* errors, ",
      "int threads) {\n  static_cast<void>(inputs);\n  Context c;\n  std::atomic<int> fault{0};\n  "
      "c.fault = &fault;\n",
      entry_, "  return fault.load();\n}\n");
}

}  // namespace

absl::StatusOr<std::string> EmitReference(const Workload& workload) {
  if (!workload.graph.is_static()) {
    return absl::UnimplementedError("no reference of dynamic dims yet; bind them first");
  }
  return Emitter(workload).Emit();
}

}  // namespace kiln::compiler
