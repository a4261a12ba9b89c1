// SPDX-License-Identifier: Apache-2.0
// What every command has: its options, where it prints, the client, and signals. One per process.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "client/cli/interrupt.h"
#include "client/cli/local_cluster.h"
#include "client/cli/options.h"
#include "client/cli/output.h"
#include "client/kiln_client.h"

namespace kiln::cli {

class Session {
 public:
  Session(const Options& options, Output* output, Interrupt* interrupt)
      : options_(options), output_(*output), interrupt_(*interrupt) {}

  const Options& options() const { return options_; }
  Output& output() { return output_; }
  Interrupt& interrupt() { return interrupt_; }

  // The client of --server, or of a server that --local starts (with a worker, if the command needs
  // one).
  absl::StatusOr<client::Client*> Connect(bool needs_worker = false);

 private:
  const Options& options_;
  Output& output_;
  Interrupt& interrupt_;
  std::unique_ptr<LocalCluster> local_;
  std::unique_ptr<client::Client> client_;
};

}  // namespace kiln::cli
