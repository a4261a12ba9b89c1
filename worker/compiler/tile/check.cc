// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/tile/check.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "worker/compiler/tile/reach.h"
#include "worker/compiler/tile/shape.h"

namespace kiln::compiler::tile {
namespace {

absl::Status Wrong(const Step& step, const Buffer& buffer, absl::string_view what) {
  return absl::InternalError(absl::StrCat("step ", step.name, ": ", buffer.name, ": ", what));
}

// Elements that the routine reads or writes of one operand, over all of its batch.
Reach ReachOfMatrix(int64_t offset, int64_t rows, int64_t columns, int64_t leading, int64_t batch,
                    int64_t batch_stride) {
  if (rows <= 0 || columns <= 0 || batch <= 0) return {};
  const int64_t over_batch = (batch - 1) * batch_stride;
  return {offset + std::min<int64_t>(0, over_batch),
          offset + std::max<int64_t>(0, over_batch) + (rows - 1) * leading + columns - 1};
}

class Checker {
 public:
  explicit Checker(const Program& program) : program_(program) {}

  absl::Status Run() {
    for (const Step& step : program_.steps) {
      // Scratch is undefined when a block begins.
      std::erase_if(written_, [&](const auto& entry) {
        return program_.buffers[entry.first].level == Level::kScratch;
      });
      absl::Status status = CheckPlaces(step);
      if (status.ok()) status = CheckRaces(step);
      if (status.ok() && step.kind == StepKind::kLibrary) status = CheckCall(step);
      if (step.kind != StepKind::kLibrary) {
        ForEachLeaf(step, [&](const Statement& leaf, const std::vector<int>& around) {
          if (status.ok()) status = CheckLeaf(step, leaf, around);
        });
      }
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  // Two buffers of one level that a step uses have no byte in common, and end within their level.
  absl::Status CheckPlaces(const Step& step) const {
    std::set<int> used;
    if (step.kind == StepKind::kLibrary) {
      used = {step.call.a, step.call.b, step.call.c};
    } else {
      ForEachLeaf(step, [&](const Statement& leaf, const std::vector<int>&) {
        ForEachView(leaf, [&](const View& view, const std::vector<TileDim>&, bool) {
          used.insert(view.buffer);
        });
      });
    }
    auto end = [](const Buffer& buffer) {
      return buffer.base + buffer.elements * Bits(buffer.type) / 8;
    };
    for (int id : used) {
      const Buffer& buffer = program_.buffers[id];
      if (buffer.level == Level::kGlobal) continue;
      if ((buffer.level == Level::kWorkspace && end(buffer) > program_.workspace_bytes) ||
          (buffer.level == Level::kPersistent && end(buffer) > program_.persistent_bytes)) {
        return Wrong(step, buffer,
                     absl::StrCat("ends at byte ", end(buffer), " beyond its level's memory"));
      }
      for (int other : used) {
        const Buffer& second = program_.buffers[other];
        if (other <= id || second.level != buffer.level) continue;
        if (buffer.base < end(second) && second.base < end(buffer))
          return Wrong(step, buffer, absl::StrCat("shares memory with ", second.name));
      }
    }
    return absl::OkStatus();
  }

  // What a step writes, it reads at the very place that the same block writes, and nowhere else:
  // the others' blocks run at the same time.
  absl::Status CheckRaces(const Step& step) const {
    std::vector<const View*> written;
    absl::Status status;
    auto same = [](const View& a, const View& b) {
      return a.buffer == b.buffer && a.offset == b.offset && a.strides == b.strides &&
             std::map(a.loops.begin(), a.loops.end()) == std::map(b.loops.begin(), b.loops.end());
    };
    for (bool collect : {true, false}) {
      ForEachLeaf(step, [&](const Statement& leaf, const std::vector<int>&) {
        ForEachView(leaf, [&](const View& view, const std::vector<TileDim>&, bool writes) {
          if (program_.buffers[view.buffer].level == Level::kScratch) return;
          if (collect && writes) written.push_back(&view);
          if (collect || writes || !status.ok()) return;
          bool shared = false, own = false;
          for (const View* target : written) {
            shared |= target->buffer == view.buffer;
            own |= same(*target, view);
          }
          if (shared && !own) {
            status = Wrong(step, program_.buffers[view.buffer],
                           "is read where another block may write at the same time");
          }
        });
      });
    }
    return status;
  }

  absl::Status CheckCall(const Step& step) {
    const LibraryCall& call = step.call;
    const std::vector<int64_t>& n = call.numbers;
    const int64_t m = n[2], columns = n[3], depth = n[4], batch = n[8];
    const auto matrix = [&](bool transposed, int64_t rows, int64_t cols, int64_t offset,
                            int64_t leading, int64_t batch_stride) {
      return ReachOfMatrix(offset, transposed ? cols : rows, transposed ? rows : cols, leading,
                           batch, batch_stride);
    };
    if (absl::Status s =
            Touch(step, call.a, matrix(n[0] != 0, m, depth, call.a_offset, n[5], n[9]), false);
        !s.ok())
      return s;
    if (absl::Status s = Touch(
            step, call.b, matrix(n[1] != 0, depth, columns, call.b_offset, n[6], n[10]), false);
        !s.ok())
      return s;
    return Touch(step, call.c, matrix(false, m, columns, call.c_offset, n[7], n[11]), true);
  }

  // Accesses `reach` of a buffer: inside it, and of memory that is the program's own only where
  // something was written before.
  absl::Status Touch(const Step& step, int id, const Reach& reach, bool writes) {
    const Buffer& buffer = program_.buffers[id];
    if (reach.first > reach.last) return absl::OkStatus();
    if (reach.first < 0 || reach.last >= buffer.elements) {
      return Wrong(
          step, buffer,
          absl::StrCat("elements ", reach.first, "..", reach.last, " of 0..", buffer.elements - 1));
    }
    if (writes) {
      auto [entry, first] = written_.insert({id, reach});
      if (!first) {
        entry->second = {std::min(entry->second.first, reach.first),
                         std::max(entry->second.last, reach.last)};
      }
      return absl::OkStatus();
    }
    if (buffer.level == Level::kGlobal) return absl::OkStatus();
    const auto written = written_.find(id);
    if (written == written_.end()) return Wrong(step, buffer, "is read before it is written");
    if (reach.first >= written->second.first && reach.last <= written->second.last)
      return absl::OkStatus();
    return Wrong(step, buffer,
                 absl::StrCat("elements ", reach.first, "..", reach.last, " are read, ",
                              written->second.first, "..", written->second.last, " were written"));
  }

  // A tile is clipped to its full size or to the axis's last, partial one: all loops over its axis
  // must move in whole tiles, and the innermost one by exactly one.
  absl::Status CheckDim(const Step& step, const TileDim& dim, const std::vector<int>& around,
                        absl::string_view what) const {
    int64_t before = -1;
    for (int id : around) {
      const Loop& loop = step.loops[id];
      if (loop.axis != dim.axis) continue;
      if (before >= 0 && before % loop.step != 0) {
        return absl::InternalError(absl::StrCat("step ", step.name, ": loop ", loop.name,
                                                " does not divide the loop around it"));
      }
      before = loop.step;
    }
    const int64_t extent = program_.axes[dim.axis].extent;
    if (before >= 0 && before < extent && before % dim.size != 0) {
      return absl::InternalError(absl::StrCat("step ", step.name, ": ", what, " of ", dim.size,
                                              " does not fit steps of ", before));
    }
    return absl::OkStatus();
  }

  absl::Status CheckView(const Step& step, const View& view, const std::vector<TileDim>& dims,
                         bool writes, const std::vector<int>& around) {
    const Buffer& buffer = program_.buffers[view.buffer];
    for (const TileDim& dim : dims) {
      if (absl::Status s = CheckDim(step, dim, around, buffer.name); !s.ok()) return s;
    }
    const Reach reach = ReachOf(program_, step, view, dims, around);
    if (absl::Status s = Touch(step, view.buffer, reach, writes); !s.ok() || !writes) return s;
    if (buffer.level == Level::kScratch || BlocksAreDisjoint(program_, step, view, dims, around))
      return absl::OkStatus();
    if (buffer.level == Level::kGlobal &&
        BlocksHaveTheirOwnPositions(program_, step, view, dims, around))
      return absl::OkStatus();
    return Wrong(step, buffer, "two blocks may write one element");
  }

  absl::Status CheckLeaf(const Step& step, const Statement& leaf, const std::vector<int>& around) {
    if (const Tile* tile = std::get_if<Tile>(&leaf)) {
      if (absl::Status s = CheckJoins(step, *tile, around); !s.ok()) return s;
    }
    absl::Status status;
    ForEachView(leaf, [&](const View& view, const std::vector<TileDim>& dims, bool writes) {
      if (status.ok()) status = CheckView(step, view, dims, writes, around);
    });
    return status;
  }

  absl::Status CheckJoins(const Step& step, const Tile& tile, const std::vector<int>& around) {
    const std::vector<TileDim> place{tile.rows, tile.columns};
    for (const Join& join : tile.joins) {
      // It reads what an earlier iteration stored: the first one does not run it.
      for (const Store& store : tile.stores) {
        if (join.when != When::kNotFirst || store.target.buffer != join.source.buffer) continue;
        const Reach stored = ReachOf(program_, step, store.target, place, around);
        if (absl::Status s = Touch(step, store.target.buffer, stored, true); !s.ok()) return s;
      }
      Reach reach = ReachOf(program_, step, join.source, place, around);
      if (reach.first > reach.last) continue;
      (join.stride < 0 ? reach.first : reach.last) += (join.count - 1) * join.stride;
      if (absl::Status s = Touch(step, join.source.buffer, reach, false); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  const Program& program_;
  std::map<int, Reach> written_;  // from the first to the last element
};

}  // namespace

absl::Status Check(const Program& program) {
  if (absl::Status s = CheckShape(program); !s.ok()) return s;
  return Checker(program).Run();
}

}  // namespace kiln::compiler::tile
