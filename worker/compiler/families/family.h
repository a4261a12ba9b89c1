// SPDX-License-Identifier: Apache-2.0
// A family: one way of mapping a class of programs to hardware. Stateless and pure; one folder
// each. Adding a family is adding a folder and a line in registry.cc.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/contract/device.h"
#include "proto/contract/plan.h"
#include "proto/contract/schedule.h"
#include "proto/contract/workload.h"
#include "worker/compiler/tile/program.h"

namespace kiln::compiler {

// All legal settings for one workload and device: a list of named knobs with their values, and what
// settings are legal. Never empty: the default is always legal.
struct Knob {
  std::string name;
  std::vector<int64_t> values;  // ascending
  std::string meaning;          // one line, for `kiln inspect`
};

// How many schedules are legal. Not exact: estimated from a fixed sample, or the limit at which the
// count ended.
struct SpaceSize {
  int64_t schedules = 0;
  bool exact = true;
};

class Space {
 public:
  virtual ~Space() = default;
  virtual const std::vector<Knob>& knobs() const = 0;
  virtual const Schedule& default_schedule() const = 0;
  // OK, or FAILED_PRECONDITION with the limit that the schedule breaks ("A block and B panel
  // take 1.5 MiB of 512 KiB L2"). INVALID_ARGUMENT: not this family's, or a knob or value that it
  // has not.
  virtual absl::Status Check(const Schedule& schedule) const = 0;
  // Number of legal schedules, at most `limit`.
  virtual SpaceSize Count(int64_t limit) const = 0;
  // A legal schedule that `random` (any 64 bits) picks; every legal one can come out.
  virtual Schedule Sample(uint64_t random) const = 0;
  // Legal schedules that differ in one knob by one step.
  virtual std::vector<Schedule> Neighbours(const Schedule& schedule) const = 0;
};

class Family {
 public:
  virtual ~Family() = default;
  virtual absl::string_view name() const = 0;
  virtual int version() const = 0;
  // OK, or UNIMPLEMENTED with the reason in a sentence.
  virtual absl::Status Match(const Workload& workload, const DeviceFingerprint& device) const = 0;
  // Of a workload that it matched.
  virtual absl::StatusOr<std::unique_ptr<Space>> MakeSpace(
      const Workload& workload, const DeviceFingerprint& device) const = 0;
  // The tile program of a legal schedule; the errors of Space::Check otherwise.
  virtual absl::StatusOr<tile::Program> Build(const Workload& workload,
                                              const DeviceFingerprint& device,
                                              const Schedule& schedule) const = 0;
};

// Those that are built, in the order in which they are asked.
const std::vector<const Family*>& Families();

// The first family that takes the workload. UNIMPLEMENTED with all the reasons; `refused` (may be
// null) gets them by name.
absl::StatusOr<const Family*> MatchFamily(const Workload& workload, const DeviceFingerprint& device,
                                          std::map<std::string, std::string>* refused);

}  // namespace kiln::compiler
