// SPDX-License-Identifier: Apache-2.0
// The clocks of a measurement, as an interface: tests measure on made-up time, in which a kernel
// costs what they say.
#pragma once

#include <cstdint>
#include <memory>

namespace kiln::worker {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t NowNs() = 0;   // CLOCK_MONOTONIC_RAW: no step and no slewing reaches it
  virtual int64_t BusyNs() = 0;  // processor time of this process, all threads
  virtual int64_t CostNs() = 0;  // of one NowNs, with its resolution
};

// CostNs is measured once, at construction.
std::unique_ptr<Clock> MakeRawClock();

// Effective clock rate of this core from a chain of dependent additions, in MHz: a condition of a
// measurement.
double ProbeClockMhz();

}  // namespace kiln::worker
