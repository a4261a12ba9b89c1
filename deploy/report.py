# SPDX-License-Identifier: Apache-2.0
"""What the quick start prints of the answers of `kiln --json`.

report.py compare TUNED NAIVE RUN    the winner beside the naive kernel and the vendor library
report.py answer TUNED AGAIN         that AGAIN is the stored answer, and how long the server took
"""

import json
import sys

FLOP = 2 * 1024**3


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def row(name, ns, winner_ns, note):
    print(f"  {name:<34}{ns / 1e6:10.3f} ms {FLOP / ns:9.1f} GFLOP/s {ns / winner_ns:8.2f}x   {note}")


def compare(tuned, naive, run):
    winner = tuned["measurement"]["median_ns"]
    trials = tuned["trials"]
    print(f"  schedule: {tuned['schedule']}")
    print(f"  device:   {tuned['device']}")
    failed = sum(trials.get("failed", {}).values())
    print(f"  trials:   {trials['measured']} measured, {failed} failed; verified by {tuned['verified']['method']}, "
          f"{tuned['verified']['sets']} input sets, largest error {tuned['verified']['max_error']:.3g} "
          f"of {tuned['verified']['tolerance']:.3g}\n")
    print(f"  {'':<34}{'median':>13} {'':>17} {'/ winner':>9}")
    row("Kiln's winner", winner, winner, f"{tuned['measurement']['samples']} samples")
    baseline = tuned.get("baseline") or {}
    if baseline.get("name"):
        row(baseline["name"], baseline["median_ns"], winner,
            f"same child, interleaved; paired ratio {baseline['ratio']:.3f}")
    row("naive: three loops, one thread", naive["median_ns"], winner, f"{naive['samples']} samples")
    print(f"\n  loaded and launched by the client's runtime: {run['median_ns'] / 1e6:.3f} ms, largest error "
          f"{run['max_error']:.3g} of {run['tolerance']:.3g}, {run['checked']} elements checked")


def answer(tuned, again):
    server = again.get("lookup_ns")
    took = f", {server / 1e3:.0f} us in the server" if server else ""
    print(f"  match {again['match']}: record {again['record']}, {again['measurement']['median_ns'] / 1e6:.3f} ms{took}")
    if again["match"] != "exact" or again["record"] != tuned["record"]:
        sys.exit(f"kiln: expected the stored record {tuned['record']}")


if __name__ == "__main__":
    {"compare": compare, "answer": answer}[sys.argv[1]](*map(load, sys.argv[2:]))
