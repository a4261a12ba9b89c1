# SPDX-License-Identifier: Apache-2.0
"""Candidates that crash, hang, take all memory, write and read where they may not, or are wrong: each is an outcome with stage and
reason, none is published, and nothing is left behind. The worker's family is tests/support/faults.h."""

import json
import re
import sqlite3
import unittest

from tests.support.cluster import ClusterTest, matmul

# Fault's numbers in faults.h -> the stages it may end at.
RIGHT = {0: {"measured"}}
WRONG = {
    1: {"crash", "out_of_bounds"},   # writes to a wild pointer
    2: {"timeout"},                  # endless loop
    3: {"resources", "crash"},       # endless memory
    4: {"out_of_bounds"},            # writes beyond C
    5: {"out_of_bounds"},            # reads beyond B
    6: {"mismatch"},                 # half the output
    7: {"mismatch"},                 # NaN
    8: {"mismatch"},                 # wrong tail
    10: {"compile"},                 # bad source
    11: {"compile", "timeout"},      # endless source
    12: {"mismatch"},                # does nothing
    13: {"crash"},                   # aborts
    14: {"emit"},                    # no emission
}
SLOW = {9: {"too_slow", "measured", "timeout"}}  # right, and a thousand times slower: never the winner


class FaultTest(ClusterTest):
    def outcomes(self):
        """fault -> (stage, reason)"""
        connection = sqlite3.connect(f"file:{self.cluster.database}?mode=ro", uri=True)
        try:
            rows = connection.execute("select schedule, stage, detail from outcome where schedule like 'faulty/%'").fetchall()
        finally:
            connection.close()
        return {int(re.search(r"fault=(\d+)", schedule).group(1)): (stage, json.loads(detail).get("reason", ""))
                for schedule, stage, detail in rows}

    def test_every_fault_is_an_outcome_and_none_is_published(self):
        self.cluster.start_server()
        self.cluster.start_worker(binary="kiln-faulty-worker")
        select = matmul(64, 48, 40)
        tuned = self.cluster.ask("tune", *select, "--trials", "60", "--seconds", "240", "--policy", "library=no", seconds=320)
        self.assertRegex(tuned["schedule"], "fault=0")

        outcomes = self.outcomes()
        for fault, stages in {**RIGHT, **WRONG, **SLOW}.items():
            with self.subTest(fault=fault):
                self.assertIn(fault, outcomes)
                stage, reason = outcomes[fault]
                self.assertIn(stage, stages, reason)
                if stage != "measured":
                    self.assertTrue(reason)
        records = self.cluster.ask("records")["records"]
        self.assertEqual([record["record"] for record in records], [tuned["record"]])
        failed = self.cluster.ask("job", "get", tuned["job"])["histogram"]
        self.assertGreaterEqual(sum(failed.values()), len(WRONG))
        self.cluster.kiln("run", *select, "--policy", "library=no")
        self.cluster.stop()
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
