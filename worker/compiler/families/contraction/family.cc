// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/families/contraction/family.h"

#include "absl/strings/str_cat.h"
#include "worker/compiler/families/contraction/build.h"
#include "worker/compiler/families/contraction/space.h"
#include "worker/compiler/families/epilogue.h"
#include "worker/compiler/tile/check.h"

namespace kiln::compiler {
namespace {

class Contraction : public Family {
 public:
  absl::string_view name() const override { return "contraction"; }
  int version() const override { return 1; }

  absl::Status Match(const Workload& workload, const DeviceFingerprint& device) const override {
    return FormOf(workload, device).status();
  }

  absl::StatusOr<std::unique_ptr<Space>> MakeSpace(const Workload& workload,
                                                   const DeviceFingerprint& device) const override {
    auto form = FormOf(workload, device);
    if (!form.ok()) return form.status();
    return std::make_unique<contraction::ContractionSpace>(workload, *form, device);
  }

  absl::StatusOr<tile::Program> Build(const Workload& workload, const DeviceFingerprint& device,
                                      const Schedule& schedule) const override {
    auto form = FormOf(workload, device);
    if (!form.ok()) return form.status();
    const contraction::ContractionSpace space(workload, *form, device);
    if (absl::Status s = space.Check(schedule); !s.ok()) return s;
    const contraction::Knobs knobs = space.Read(schedule);
    tile::Program program = contraction::BuildProgram(space.problem(knobs.lanes), space.limits(),
                                                      knobs, Print(schedule));
    if (absl::Status s = tile::Check(program); !s.ok()) return s;
    return program;
  }

 private:
  static absl::StatusOr<ContractionForm> FormOf(const Workload& workload,
                                                const DeviceFingerprint& device) {
    if (device.kind != DeviceKind::kCpu)
      return absl::UnimplementedError("no contraction: only CPU kernels are built");
    auto form = MatchContraction(workload);
    if (!form.ok()) return form;
    if (form->type != DType::kF32 && form->type != DType::kF64) {
      return absl::UnimplementedError(
          absl::StrCat("no contraction: ", Print(form->type), " operands"));
    }
    if (form->accumulator != form->type) {
      return absl::UnimplementedError(absl::StrCat("no contraction: ", Print(form->type),
                                                   " operands accumulated in ",
                                                   Print(form->accumulator)));
    }
    for (int tensor : {form->a, form->b, form->c}) {
      if (absl::Status s = Aligned(workload.graph.tensors[tensor]); !s.ok()) return s;
    }
    for (const EpilogueOperand& operand : form->operands) {
      if (absl::Status s = Aligned(workload.graph.tensors[operand.tensor]); !s.ok()) return s;
    }
    if (absl::Status s = MakeEpilogue(workload.graph, *form).status(); !s.ok()) return s;
    return form;
  }

  static absl::Status Aligned(const Tensor& tensor) {
    if (tensor.alignment * 8 >= Bits(tensor.type)) return absl::OkStatus();
    return absl::UnimplementedError(absl::StrCat("no contraction: ", tensor.name, " is promised ",
                                                 tensor.alignment,
                                                 "-byte alignment, less than an element"));
  }
};

}  // namespace

const Family* ContractionFamily() {
  static const Contraction* family = new Contraction;
  return family;
}

}  // namespace kiln::compiler
