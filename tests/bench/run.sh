#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs all benchmarks and prints their tables, Kiln and its peer side by side from one run. Results are kept in build/bench by revision: an
# interrupted run goes on where it stopped; --fresh measures anew.
#   tests/bench/run.sh [--fresh] [kernels] [lookup] [tuning]      default: all, about an hour on two cores
set -euo pipefail
cd "$(dirname "$0")/../.."
source deploy/setup.sh

fresh=() wanted=()
for argument in "$@"; do
  case $argument in
    --fresh) fresh=(--fresh) ;;
    kernels | lookup | tuning) wanted+=("$argument") ;;
    *) sed -n '3,5s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
done
((${#wanted[@]})) || wanted=(kernels lookup tuning)

kiln_install build
kiln_configure release
kiln_build release kiln-server kiln-worker kiln e2e_binaries bench_binaries bench_kernels
# Peers run at their best: OpenBLAS chooses for itself.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE OPENBLAS_NUM_THREADS
export KILN_BIN_DIR=$PWD/build/release/bin PYTHONDONTWRITEBYTECODE=1

for benchmark in "${wanted[@]}"; do
  case $benchmark in
    kernels)
      state=build/bench/kernels-$(git rev-parse --short HEAD).json
      mkdir -p build/bench
      ((${#fresh[@]} == 0)) || rm -f "$state"
      for threads in 1 0; do
        kiln_say "kernels beside OpenBLAS, threads: ${threads/#0/all}"
        build/release/bin/bench_kernels --threads "$threads" --seconds 60 --state "$state"
      done ;;
    lookup) python3 -m tests.bench.lookup "${fresh[@]}" ;;
    tuning) python3 -m tests.bench.tuning "${fresh[@]}" ;;
  esac
done
