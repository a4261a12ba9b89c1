// SPDX-License-Identifier: Apache-2.0
// Tier 1 of the cost model: nanoseconds of one launch from device facts and a tile program's exact
// counts. Ranks schedules; its absolute numbers are estimates. Pure.
#pragma once

#include "proto/contract/device.h"
#include "worker/compiler/model/costs.h"
#include "worker/compiler/tile/program.h"

namespace kiln::compiler::model {

double PredictNanoseconds(const tile::Program& program, const DeviceFingerprint& device,
                          const Costs& costs = {});

}  // namespace kiln::compiler::model
