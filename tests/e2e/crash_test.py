# SPDX-License-Identifier: Apache-2.0
"""kill -9 of each process in turn while a job runs: the job completes, nothing acknowledged is lost, nothing is left behind."""

import json
import os
import signal
import unittest

from tests.support.cluster import ClusterTest, Failure, matmul, until

SELECT = matmul(192, 160, 224)
# Large enough that the job is still at work when the blow falls.
BUDGET = ["--trials", "40", "--seconds", "90"]
SHORT_LEASES = ["--heartbeat", "0.5", "--lease-expiry", "2"]


class CrashTest(ClusterTest):
    def start_job(self):
        """A tune in the background, some candidates into its search."""
        self.tune = self.cluster.start_kiln("tune", *SELECT, *BUDGET, "--json")
        self.job = until("a job runs", self.running_job, 60)
        until("three candidates are done", lambda: self.progress() >= 3, 90)

    def running_job(self):
        jobs = self.cluster.ask("jobs")["jobs"]
        return jobs[0]["name"] if jobs and jobs[0]["state"] == "running" else None

    def progress(self):
        answer = self.cluster.kiln("jobs", "--json", expect=None)
        if answer.code != 0:
            return 0
        job = next(job for job in answer.json["jobs"] if job["name"] == self.job)
        self.assertIn(job["state"], ("queued", "running"), "the job ended before the test could disturb it")
        return job["progress"]["done"]

    def assert_completes(self):
        self.assertEqual(self.tune.wait(200), 0, self.tune.text(self.tune.log) + self.cluster.logs())
        tuned = json.loads(self.tune.text())
        self.assertEqual(tuned["match"], "exact")
        found = self.cluster.ask("lookup", *SELECT)
        self.assertEqual(found["record"], tuned["record"])
        self.assertEqual(found["job"], self.job)
        self.cluster.kiln("run", *SELECT)
        return tuned

    def assert_clean(self):
        self.cluster.stop()
        self.assert_nothing_left()

    def victim(self, pattern, seconds=30):
        pids = until(f"a process that matches {pattern}", lambda: self.cluster.matching(pattern), seconds)
        return pids[-1]

    def test_server_killed_in_mid_job(self):
        self.cluster.start_server(*SHORT_LEASES)
        kept = self.cluster.start_worker() and self.cluster.ask("tune", *matmul(24, 16, 8), "--trials", "4", "--seconds", "15")
        self.start_job()
        before = self.progress()
        self.cluster.server.kill()
        self.cluster.start_server(*SHORT_LEASES)
        self.assertEqual(self.cluster.ask("lookup", *matmul(24, 16, 8))["record"], kept["record"])
        tuned = self.assert_completes()
        total = tuned["trials"]["measured"] + sum(tuned["trials"].get("failed", {}).values())
        self.assertGreaterEqual(total, before, "outcomes from before the crash were lost")
        job = self.cluster.ask("job", "get", self.job)
        self.assertEqual(job.get("attempts", 0), 0, "a server's restart counted against the worker")
        self.assert_clean()

    def test_worker_killed_in_mid_measurement(self):
        self.cluster.start_server(*SHORT_LEASES)
        worker = self.cluster.start_worker()
        self.start_job()
        worker.kill()
        # Its children die with it, before any other worker comes.
        until("the worker's children are gone", lambda: not self.cluster.matching("kiln-worker|cc1plus|kiln-bench"), 10)
        self.cluster.workers.remove(worker)
        self.cluster.start_worker()
        self.assert_completes()
        self.assert_clean()

    def test_bench_child_killed(self):
        self.spine()
        self.start_job()
        worker = self.cluster.workers[0].pid
        # Any child of the worker that is no compiler measures or verifies.
        os.kill(self.victim_below(worker, r"^(?!.*(cc1plus|/as |g\+\+|c\+\+|ld)).*kiln"), signal.SIGKILL)
        self.assert_completes()
        self.assert_clean()

    def victim_below(self, worker, pattern):
        def find():
            return [pid for pid in self.cluster.matching(pattern) if pid != worker and self.descends(pid, worker)]
        return until(f"a child of the worker matches {pattern}", find, 30)[-1]

    @staticmethod
    def descends(pid, ancestor):
        while pid > 1:
            if pid == ancestor:
                return True
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                    pid = int(file.read().rsplit(")", 1)[1].split()[1])
            except OSError:
                return False
        return False

    def test_compiler_killed(self):
        self.spine()
        self.start_job()
        for _ in range(200):
            try:
                os.kill(self.victim("cc1plus"), signal.SIGKILL)
                break
            except (ProcessLookupError, Failure):
                continue
        else:
            self.fail("no compiler could be caught")
        self.assert_completes()
        self.assert_clean()

    def test_worker_killed_while_it_compiles_leaves_no_compiler(self):
        self.spine()
        self.start_job()
        self.victim("cc1plus")
        self.cluster.workers[0].kill()
        until("no compiler is left", lambda: not self.cluster.matching("cc1plus|/as |collect2"), 10)

    def test_a_job_that_loses_three_workers_fails_with_the_reasons(self):
        self.cluster.start_server(*SHORT_LEASES)
        self.cluster.start_worker()
        self.start_job()
        for _ in range(3):
            until("the job is leased", self.running_job, 30)
            self.cluster.workers[-1].kill()
            until("the lease is over", lambda: not self.running_job(), 30)
            self.cluster.start_worker()
        self.assertEqual(self.tune.wait(60), 5)
        error = json.loads(self.tune.text())["error"]
        self.assertIn("worker", error["message"])
        self.cluster.kiln("lookup", *SELECT, expect=3)


if __name__ == "__main__":
    unittest.main()
