// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/families/library/library.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "worker/compiler/families/contraction/build.h"
#include "worker/compiler/families/contraction/family.h"
#include "worker/compiler/families/contraction/problem.h"
#include "worker/compiler/tile/check.h"

namespace kiln::compiler {
namespace {

using contraction::Problem;
using contraction::ProblemAxis;
using tile::CeilDiv;
using tile::For;
using tile::Level;
using tile::Tile;
using tile::View;

absl::Status Refuse(absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("library/1: ", why));
}

// A matrix as a BLAS takes it: rows x columns, row-major, or transposed.
struct Matrix {
  int64_t transposed = 0, leading = 1;
};

absl::StatusOr<Matrix> Layout(absl::string_view name, int64_t rows, int64_t row_stride,
                              int64_t columns, int64_t column_stride) {
  auto fits = [](int64_t slow_extent, int64_t slow, int64_t fast_extent, int64_t fast) {
    return (fast == 1 || fast_extent <= 1) && (slow >= fast_extent || slow_extent <= 1) &&
           slow <= INT32_MAX;
  };
  auto leading = [](int64_t slow_extent, int64_t slow, int64_t fast_extent) {
    return std::max<int64_t>(1, slow_extent <= 1 ? fast_extent : slow);
  };
  if (fits(rows, row_stride, columns, column_stride))
    return Matrix{0, leading(rows, row_stride, columns)};
  if (fits(columns, column_stride, rows, row_stride))
    return Matrix{1, leading(columns, column_stride, rows)};
  return Refuse(absl::StrCat(name, " has strides ", row_stride, " and ", column_stride,
                             "; one of them has to be 1 and the other no smaller than a row"));
}

class Builder {
 public:
  explicit Builder(const Problem& problem, const contraction::Limits& limits)
      : p_(problem), limits_(limits) {}

  absl::StatusOr<tile::Program> Run(const std::string& schedule) {
    program_.title = contraction::TitleOf(p_);
    program_.schedule = schedule;
    if (p_.empty()) return std::move(program_);
    if (p_.outer.size() > 1 || !p_.outer_depth.empty())
      return Refuse("the routine has one batch axis and one axis to sum over");
    if (p_.depth.extent == 0) return Refuse("nothing to sum");
    for (const ProblemAxis* axis : {&p_.row, &p_.column, &p_.depth}) {
      if (axis->extent > INT32_MAX)
        return Refuse(absl::StrCat("axis ", axis->name, " of ", axis->extent,
                                   " does not fit the routine's 32 bits"));
    }
    auto a = Layout("A", p_.row.extent, p_.row.a, p_.depth.extent, p_.depth.a);
    if (!a.ok()) return a.status();
    auto b = Layout("B", p_.depth.extent, p_.depth.b, p_.column.extent, p_.column.b);
    if (!b.ok()) return b.status();
    auto c = Layout("C", p_.row.extent, p_.row.c, p_.column.extent, p_.column.c);
    const bool direct = p_.trivial && c.ok() && c->transposed == 0;

    const int64_t bytes = Bits(p_.type) / 8;
    auto tensor = [&](const std::string& name, int id, int64_t elements) {
      program_.buffers.push_back({name, Level::kGlobal, p_.type, elements, bytes, id});
      return static_cast<int>(program_.buffers.size()) - 1;
    };
    const int64_t batch = p_.OuterCount();
    const int a_id = tensor("A", p_.a, p_.spans[0]), b_id = tensor("B", p_.b, p_.spans[1]);
    c_ = tensor("C", p_.c, p_.spans[2]);
    int target = c_;
    int64_t c_leading = direct ? c->leading : p_.column.extent,
            c_batch = direct && batch > 1 ? p_.outer[0].c : p_.row.extent * p_.column.extent;
    if (!direct) {
      const int64_t elements = p_.row.extent * p_.column.extent * batch;
      program_.workspace_bytes = elements * bytes;
      program_.buffers.push_back({"product", Level::kWorkspace, p_.type, elements, 64, -1, 0});
      target = static_cast<int>(program_.buffers.size()) - 1;
    }
    tile::Step call;
    call.name = "gemm";
    call.kind = tile::StepKind::kLibrary;
    call.call = {p_.type == DType::kF32 ? "openblas:sgemm" : "openblas:dgemm",
                 a_id,
                 b_id,
                 target,
                 p_.a_offset,
                 p_.b_offset,
                 0,
                 {a->transposed, b->transposed, p_.row.extent, p_.column.extent, p_.depth.extent,
                  a->leading, b->leading, c_leading, batch, batch > 1 ? p_.outer[0].a : 0,
                  batch > 1 ? p_.outer[0].b : 0, c_batch}};
    program_.steps.push_back(std::move(call));
    if (!direct) EpilogueStep(target);
    return std::move(program_);
  }

 private:
  void EpilogueStep(int product) {
    program_.axes = {{"m", p_.row.extent}, {"n", p_.column.extent}, {"b", p_.OuterCount()}};
    tile::Step step;
    step.name = "epilogue";
    const int64_t columns = 2 * limits_.lanes, rows = 4;
    const int64_t block = CeilDiv(CeilDiv(p_.row.extent, 4 * limits_.threads), rows) * rows,
                  wide = CeilDiv(p_.column.extent, columns) * columns;
    step.loops = {{"m0", 0, block, p_.row.extent},
                  {"b0", 2, 1, p_.OuterCount()},
                  {"m1", 0, rows, block},
                  {"n1", 1, columns, wide}};
    step.grid = {0, 1};
    auto view = [&](int buffer, int64_t offset, int64_t batch, int64_t row, int64_t column) {
      return View{buffer,
                  offset,
                  {{0, row * block}, {1, batch}, {2, row * rows}, {3, column * columns}},
                  {row, column}};
    };
    Tile tile;
    tile.name = "epilogue";
    tile.type = p_.type;
    tile.rows = {0, rows};
    tile.columns = {1, columns};
    tile.lanes = limits_.lanes;
    tile.joins.push_back({view(product, 0, p_.row.extent * p_.column.extent, p_.column.extent, 1)});
    auto outer = [&](int64_t ProblemAxis::*stride) {
      return p_.outer.empty() ? 0 : p_.outer[0].*stride;
    };
    tile::Store store{view(c_, 0, outer(&ProblemAxis::c), p_.row.c, p_.column.c),
                      tile::When::kAlways,
                      p_.epilogue,
                      {}};
    for (size_t x = 0; x < p_.operands.size(); ++x) {
      program_.buffers.push_back({absl::StrCat("X", x), Level::kGlobal, p_.type,
                                  p_.operand_spans[x], Bits(p_.type) / 8, p_.operands[x].tensor});
      store.operands.push_back(view(static_cast<int>(program_.buffers.size()) - 1,
                                    p_.operands[x].offset,
                                    p_.outer.empty() ? 0 : p_.outer[0].operands[x],
                                    p_.row.operands[x], p_.column.operands[x]));
    }
    tile.stores.push_back(std::move(store));
    step.body.push_back(For{2, {For{3, {std::move(tile)}}}});
    program_.steps.push_back(std::move(step));
  }

  const Problem& p_;
  const contraction::Limits& limits_;
  tile::Program program_;
  int c_ = -1;
};

}  // namespace

absl::StatusOr<tile::Program> BuildLibraryProgram(const Workload& workload,
                                                  const DeviceFingerprint& device,
                                                  const Schedule& schedule) {
  if (schedule.version != 1 || !schedule.knobs.empty())
    return absl::InvalidArgumentError("library/1 has no knobs");
  if (!workload.policy.library) return Refuse("the policy says library=no");
  if (workload.policy.fixed_order)
    return Refuse("the policy says order=fixed, which a library does not promise");
  if (absl::Status s = ContractionFamily()->Match(workload, device); !s.ok()) return s;
  auto form = MatchContraction(workload);
  if (!form.ok()) return form.status();
  const Problem problem = contraction::MakeProblem(workload, *form, false);
  const contraction::Limits limits = contraction::LimitsOf(device, form->type);
  auto program = Builder(problem, limits).Run(Print(schedule));
  if (!program.ok()) return program;
  if (absl::Status s = tile::Check(*program); !s.ok()) return s;
  return program;
}

}  // namespace kiln::compiler
