// SPDX-License-Identifier: Apache-2.0
// Input sets with what they must give, computed once per set by the compiled f64 reference and then
// reused by every candidate of a job; with a directory, by every bench child of a job, so that a
// crash costs no recomputation. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/contract/workload.h"
#include "worker/compiler/analysis/host_tensor.h"
#include "worker/verify/inputs.h"
#include "worker/verify/product_check.h"

namespace kiln::verify {

// The entry of worker/compiler/analysis/reference.h, compiled and loaded (or a closure with the
// same contract).
using Reference = std::function<int(const void* const* inputs, double* const* values,
                                    double* const* errors, int threads)>;

struct ReferenceSet {
  SetKind kind = SetKind::kRandom;
  std::vector<compiler::HostTensor> inputs;  // inputs and constants, in order; padding is poisoned
  std::vector<Expected> outputs;  // none where a ProductCheck stands in for the reference
  std::vector<bool> exact;        // per output: any order of operations gives `values` exactly
};

struct ReferenceOptions {
  uint64_t seed = 0;
  int threads = 1;
  std::string
      directory;  // where sets are kept for other processes of the job; empty: in memory alone
  double slow_terms = kSlowTerms;  // of a product, beyond which it is checked without the reference
};

class ReferenceCache {
 public:
  ReferenceCache(const Workload& workload, Reference reference, ReferenceOptions options);

  // The set, computed or loaded at the first call. RESOURCE_EXHAUSTED: no memory; INTERNAL: the
  // reference refused the inputs. A stored set that is damaged or of something else is computed
  // anew.
  absl::StatusOr<const ReferenceSet*> Get(SetKind kind);

  uint64_t seed() const { return options_.seed; }
  // What judges instead of reference sets, if they would take too long.
  const std::optional<ProductCheck>& product() const { return product_; }

 private:
  absl::StatusOr<std::unique_ptr<ReferenceSet>> Compute(SetKind kind);
  std::string PathOf(SetKind kind) const;

  const Workload& workload_;
  Reference reference_;
  ReferenceOptions options_;
  std::optional<ProductCheck> product_;
  std::map<SetKind, std::unique_ptr<ReferenceSet>> sets_;
};

}  // namespace kiln::verify
