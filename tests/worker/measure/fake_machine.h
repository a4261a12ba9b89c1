// SPDX-License-Identifier: Apache-2.0
// Time as a test makes it: a kernel costs what the test says, drifts, and loses its processor now
// and then.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <random>

#include "worker/measure/clock.h"

namespace kiln::worker {

class FakeClock : public Clock {
 public:
  int64_t NowNs() override { return now_ns += cost_ns; }
  int64_t BusyNs() override { return busy_ns; }
  int64_t CostNs() override { return cost_ns; }

  void Spend(int64_t ns) { now_ns += ns, busy_ns += ns; }
  void Steal(int64_t ns) { now_ns += ns; }  // somebody else runs

  int64_t now_ns = 1000, busy_ns = 1000, cost_ns = 20;
};

// A kernel of `base_ns` per call with a little noise; `drift` is what the machine makes of it as
// time goes by.
struct FakeKernel {
  FakeClock* clock;
  double base_ns;
  double noise = 0.003;
  std::function<double(int64_t now_ns)> drift = [](int64_t) { return 1.0; };
  std::mt19937_64* random;
  bool operator()() {
    std::normal_distribution<double> wobble(0, noise);
    const double slower = 1 + std::abs(wobble(*random));  // noise only ever costs time
    clock->Spend(static_cast<int64_t>(base_ns * drift(clock->now_ns) * slower));
    return true;
  }
};

}  // namespace kiln::worker
