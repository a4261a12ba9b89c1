# SPDX-License-Identifier: Apache-2.0
"""Many callers, one key: one job, one answer for all."""

import json
import os
import subprocess
import threading
import unittest

from tests.support.cluster import BIN, ClusterTest, matmul, until

CALLS = 1000


class SharingTest(ClusterTest):
    def storm(self, calls, m, n, k):
        """`calls` callers at once; what they were told."""
        done = subprocess.run([os.path.join(BIN, "storm"), self.cluster.address, str(calls), str(m), str(n), str(k), "8", "20"],
                              capture_output=True, text=True, timeout=150, env=self.cluster.environment(), check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:] + self.cluster.logs())
        return json.loads(done.stdout)

    def test_a_thousand_equal_requests_make_one_job(self):
        self.spine()
        told = self.storm(CALLS, 96, 64, 80)
        self.assertEqual(len(told["jobs"]), 1)
        self.assertEqual(len(told["records"]), 1)
        self.assertEqual(told["operations"], CALLS)
        self.assertEqual(told["answered"], CALLS)
        self.assertEqual(len(self.cluster.ask("jobs")["jobs"]), 1)
        self.assertEqual(len(self.cluster.ask("records")["records"]), 1)

    def test_a_thousand_wait_for_a_worker_and_all_get_the_answer(self):
        self.cluster.start_server()
        # The server must know the device before anyone can ask for it.
        self.cluster.start_worker().stop()
        told = {}
        storm = threading.Thread(target=lambda: told.update(self.storm(CALLS, 64, 64, 80)))
        storm.start()
        try:
            until("all have asked", lambda: sum(job["operations"] for job in self.cluster.ask("jobs")["jobs"]) == CALLS, 60)
            self.cluster.start_worker()
        finally:
            storm.join(160)
        self.assertEqual((len(told["jobs"]), told["answered"]), (1, CALLS))

    def test_different_workloads_share_nothing(self):
        self.spine()
        first = self.cluster.ask("tune", *matmul(32, 48, 16), "--trials", "4", "--seconds", "12")
        second = self.cluster.ask("tune", *matmul(48, 32, 16), "--trials", "4", "--seconds", "12")
        for field in ("signature", "record", "job"):
            self.assertNotEqual(first[field], second[field])


if __name__ == "__main__":
    unittest.main()
