// SPDX-License-Identifier: Apache-2.0
// A worker whose only family is faulty/1 (faults.h): end-to-end tests watch what a server makes of
// its outcomes.
#include "tests/support/faults.h"
#include "worker/worker_main.h"

int main(int argc, char** argv) {
  kiln::worker::FaultyOptions options;
  for (int i = 0; i < static_cast<int>(kiln::worker::Fault::kCount); ++i) {
    options.faults.insert(static_cast<kiln::worker::Fault>(i));
  }
  return kiln::worker::WorkerMain(argc, argv, *kiln::worker::MakeFaultyFrontend(options));
}
