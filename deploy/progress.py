# SPDX-License-Identifier: Apache-2.0
"""Prints a line about each live job every three seconds until it is ended: progress for those without a terminal."""

import json
import subprocess
import sys
import time


def line(job):
    progress = job.get("progress", {})
    best = progress.get("best_ns") or 0
    shown = f"best {best / 1e6:.3f} ms" if best else "none measured yet"
    left = progress.get("seconds_left") or 0
    return (f"  {progress.get('phase', job.get('state', '?'))}: {progress.get('done', 0)} of "
            f"{progress.get('total', 0)} candidates, {shown}, {left:.0f} s left")


def main(kiln):
    while True:
        time.sleep(3)
        listed = subprocess.run([kiln, "jobs", "--json", "--timeout", "5"], capture_output=True, text=True, check=False)
        if listed.returncode != 0:
            continue
        for job in json.loads(listed.stdout).get("jobs", []):
            if job.get("state") in ("queued", "running"):
                print(line(job), flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except KeyboardInterrupt:
        pass
