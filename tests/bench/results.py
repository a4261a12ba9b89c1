# SPDX-License-Identifier: Apache-2.0
"""Results of benchmarks, a line of JSON each, kept so that an interrupted run goes on where it stopped."""

import json
import os
import subprocess

FOLDER = os.environ.get("KILN_BENCH_DIR", "build/bench")


def revision():
    """Of the tree: results of another one are not taken for this one's."""
    described = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return described.stdout.strip() or "unknown"


class Results:
    """Results of one benchmark at one revision, by case."""

    def __init__(self, benchmark, fresh=False):
        os.makedirs(FOLDER, exist_ok=True)
        self.path = os.path.join(FOLDER, benchmark + ".jsonl")
        self.revision = revision()
        self.by_case = {}
        if not fresh and os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                for line in file:
                    entry = json.loads(line)
                    if entry["revision"] == self.revision:
                        self.by_case[entry["case"]] = entry["result"]

    def get(self, case, measure):
        """The kept result of the case, else that of measure(), which is kept."""
        if case not in self.by_case:
            result = measure()
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps({"revision": self.revision, "case": case, "result": result}) + "\n")
            self.by_case[case] = result
        return self.by_case[case]


def table(title, head, rows):
    """Prints columns, the first flush left."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    print(f"\n{title}")
    for row in [head, *rows]:
        print("  " + "  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(row, widths))))
