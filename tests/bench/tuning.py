# SPDX-License-Identifier: Apache-2.0
"""How soon a search is good: seconds and candidates until within 5 % of the final result, and where the time goes.
tuning.py [--seconds S] [--shapes MxNxK,...] [--fresh]"""

import argparse
import json
import sqlite3
import time

from tests.bench.results import Results, table
from tests.support.cluster import Cluster, matmul

SHAPES = "128x128x128,512x512x512,1024x1024x1024,8x4096x4096,4096x64x4096,384x384x6144,196x512x4608"
CLOSE = 1.05
COSTS = ("emit", "compile", "verify", "measure")


def costs(database):
    """Seconds by what they were spent on, over all outcomes."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        details = [json.loads(detail) for (detail,) in connection.execute("select detail from outcome")]
    finally:
        connection.close()
    return {cost: sum(detail.get(cost + "_ns", 0) for detail in details) / 1e9 for cost in COSTS}


def tuned(shape, seconds):
    cluster = Cluster()
    try:
        cluster.start_server()
        cluster.start_worker()
        tune = cluster.start_kiln("tune", *matmul(*shape), "--seconds", str(seconds), "--trials", "10000", "--json")
        start, trace = time.monotonic(), []
        while tune.child.poll() is None:
            answer = cluster.kiln("jobs", "--json", expect=None)
            jobs = answer.json["jobs"] if answer.code == 0 else []
            if jobs and jobs[0]["progress"].get("best_ns"):
                trace.append((time.monotonic() - start, jobs[0]["progress"]["done"], jobs[0]["progress"]["best_ns"]))
            time.sleep(0.1)
        total = time.monotonic() - start
        if tune.child.returncode != 0:
            raise SystemExit(f"tune failed: {tune.text(tune.log)}\n{cluster.logs()}")
        final = json.loads(tune.text())
        best = min(ns for _, _, ns in trace)
        when, done = next((at, count) for at, count, ns in trace if ns <= CLOSE * best)
        first = trace[0][2]
        spent = costs(cluster.database)
        return {"seconds": total, "close_seconds": when, "close_trials": done, "first_over_best": first / best,
                "trials": sum([final["trials"]["measured"], *final["trials"].get("failed", {}).values()]),
                "median_ns": final["measurement"]["median_ns"], "ratio": (final.get("baseline") or {}).get("ratio", 0),
                "spent": spent, "schedule": final["schedule"]}
    finally:
        cluster.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--shapes", default=SHAPES)
    parser.add_argument("--fresh", action="store_true")
    options = parser.parse_args()
    results = Results("tuning", options.fresh)
    rows = []
    for name in options.shapes.split(","):
        shape = tuple(int(extent) for extent in name.split("x"))
        told = results.get(f"{name} {options.seconds}", lambda shape=shape: tuned(shape, options.seconds))
        total, spent = told["seconds"], told["spent"]
        rest = max(0.0, total - sum(spent.values()))
        share = [f"{100 * spent[cost] / total:.0f}%" for cost in COSTS] + [f"{100 * rest / total:.0f}%"]
        rows.append([name, f"{told['close_seconds']:.1f}", told["close_trials"], f"{total:.1f}", told["trials"],
                     f"{told['first_over_best']:.2f}", f"{told['ratio']:.3f}", *share])
        print(f"{name}: {told['schedule']}", flush=True)
    table(f"Tuning, up to {options.seconds} s a shape: until within 5 % of the final result; shares of the whole time "
          "(rest: finalists, baseline, waiting)",
          ["M x N x K", "close s", "trials", "all s", "trials", "first/best", "vs library", *COSTS, "rest"], rows)


if __name__ == "__main__":
    main()
