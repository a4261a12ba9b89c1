// SPDX-License-Identifier: Apache-2.0
#include "worker/worker_main.h"

int main(int argc, char** argv) {
  return kiln::worker::WorkerMain(argc, argv, *kiln::worker::MakeFrontend());
}
