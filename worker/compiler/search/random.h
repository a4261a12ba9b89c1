// SPDX-License-Identifier: Apache-2.0
// SplitMix64 (Steele, Lea, Flood 2014): the search's only source of chance. Its own, because
// std::distributions give other numbers with each standard library, and a seed must mean the same
// search on any machine.
#pragma once

#include <cstdint>

namespace kiln::compiler {

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // 0 .. n-1, n > 0. The bias of the remainder, n / 2^64, is far below anything that a search
  // notices.
  uint64_t Below(uint64_t n) { return Next() % n; }
  // True in `percent` of 100 cases.
  bool Chance(int percent) { return Below(100) < static_cast<uint64_t>(percent); }

 private:
  uint64_t state_;
};

}  // namespace kiln::compiler
