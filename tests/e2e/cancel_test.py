# SPDX-License-Identifier: Apache-2.0
"""Interest in a job: joined, withdrawn, all withdrawn; and jobs that wait for a worker."""

import json
import signal
import unittest

from tests.support.cluster import ClusterTest, matmul, until

SELECT = matmul(128, 96, 160)
BUDGET = ["--trials", "40", "--seconds", "20"]


class CancelTest(ClusterTest):
    def job(self):
        jobs = self.cluster.ask("jobs")["jobs"]
        self.assertLessEqual(len(jobs), 1)
        return jobs[0] if jobs else {}

    def await_operations(self, count):
        until(f"{count} operations", lambda: self.job().get("operations") == count, 30)

    def test_one_callers_withdrawal_leaves_the_others_their_answer(self):
        self.cluster.start_server()
        self.cluster.start_worker().stop()  # so that the server knows the device
        leaver = self.cluster.start_kiln("tune", *SELECT, *BUDGET, "--json")
        stayer = self.cluster.start_kiln("tune", *SELECT, *BUDGET, "--json")
        self.await_operations(2)
        self.cluster.start_worker()
        until("the job runs", lambda: self.job()["state"] == "running", 30)
        leaver.signal(signal.SIGINT)
        self.assertEqual(leaver.wait(10), 130)
        self.assertIn("job", leaver.text(leaver.log), "it does not say how to come back")
        self.assertEqual(stayer.wait(90), 0)
        self.assertEqual(json.loads(stayer.text())["match"], "exact")
        self.assertEqual(self.job()["state"], "succeeded")

    def test_a_job_that_nobody_wants_stops(self):
        self.spine()
        caller = self.cluster.start_kiln("tune", *SELECT, "--trials", "5000", "--seconds", "300", "--json")
        until("candidates are done", lambda: self.job().get("progress", {}).get("done", 0) >= 2, 60)
        caller.signal(signal.SIGINT)
        self.assertEqual(caller.wait(10), 130)
        until("the job is cancelled", lambda: self.job()["state"] == "cancelled", 10)
        until("the worker is idle", lambda: self.cluster.ask("workers")["workers"][0]["state"] == "idle", 15)
        # It is as good as new for the next.
        self.cluster.ask("tune", *matmul(16, 16, 16), "--trials", "4", "--seconds", "15")

    def test_a_killed_client_withdraws_nothing(self):
        self.spine()
        caller = self.cluster.start_kiln("tune", *SELECT, "--trials", "12", "--seconds", "20", "--json")
        until("the job runs", lambda: self.job().get("state") == "running", 30)
        caller.kill()
        until("the job succeeds", lambda: self.job()["state"] == "succeeded", 60)
        self.cluster.kiln("lookup", *SELECT)

    def test_without_a_worker_a_job_waits_and_then_fails(self):
        self.cluster.start_server()
        worker = self.cluster.start_worker()
        worker.stop()
        answer = self.cluster.kiln("tune", *SELECT, *BUDGET, "--wait-worker", "2", "--json", expect=None)
        self.assertIn(answer.code, (4, 5), str(answer))
        self.assertIn("worker", answer.json["error"]["message"])


if __name__ == "__main__":
    unittest.main()
