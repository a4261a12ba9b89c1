# SPDX-License-Identifier: Apache-2.0
"""The database's disk fills up in mid-job: lookups go on, new jobs are refused with the reason, the log says so, the job keeps its
lease and its worker the result, and all of it completes when there is room again."""

import json
import os
import subprocess
import time
import unittest

from tests.support.cluster import BIN, ClusterTest, Process, matmul, until

SIZE = "16m"
OWN_MOUNTS = ["unshare", "--mount"]  # what the server mounts is its own, and goes with it
STORED, TUNED = matmul(24, 16, 8), matmul(192, 160, 224)


def may_mount():
    return subprocess.run([*OWN_MOUNTS, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False).returncode == 0


@unittest.skipUnless(may_mount(), "a disk of its own needs the right to mount, which this user or container lacks")
class DiskTest(ClusterTest):
    def start_server_on_a_small_disk(self):
        cluster = self.cluster
        disk = os.path.join(cluster.folder, "disk")
        os.mkdir(disk)
        cluster.database = os.path.join(disk, "kiln.db")
        cluster.server = Process("server", [
            *OWN_MOUNTS, "sh", "-c", f'mount -t tmpfs -o size={SIZE} tmpfs {disk} && exec "$@"', "sh",
            os.path.join(BIN, "kiln-server"), "--db", cluster.database, "--listen", cluster.address,
            "--heartbeat", "0.5", "--lease-expiry", "2"], cluster.folder, cluster.environment())
        cluster.clients.append(cluster.server)
        cluster.server.await_line("kiln-server ready on ")
        self.filler = f"/proc/{cluster.server.pid}/root{disk}/filler"

    def fill(self):
        with open(self.filler, "wb", buffering=0) as file:
            try:
                while file.write(b"\1" * 4096) == 4096:
                    pass
            except OSError as error:
                self.assertIn("space", os.strerror(error.errno))

    def job(self):
        return next(job for job in self.cluster.ask("jobs")["jobs"] if job["name"] == self.name)

    def refusal(self):
        """Of a request that finds no room at last: the log's last page has some for small ones."""
        for m in range(1, 400):
            answer = self.cluster.kiln("tune", *matmul(m, 8, 8), "--timeout", "0.1", expect=None)
            if "full" in answer.stderr:
                return answer
        self.fail("400 requests found room on a full disk")

    def test_a_full_disk_in_mid_job(self):
        self.start_server_on_a_small_disk()
        self.cluster.start_worker()
        kept = self.cluster.ask("tune", *STORED, "--trials", "4", "--seconds", "15")
        tune = self.cluster.start_kiln("tune", *TUNED, "--trials", "12", "--seconds", "60", "--json")
        self.name = until("a job runs", lambda: next(
            (job["name"] for job in self.cluster.ask("jobs")["jobs"] if job["state"] == "running"), None), 60)
        self.fill()

        self.assertEqual(self.cluster.ask("lookup", *STORED)["record"], kept["record"])
        until("the search is over", lambda: self.job()["progress"]["phase"] == "publishing", 120)
        time.sleep(5)  # twice as long as a lease lasts without a heartbeat
        self.assertIsNone(tune.child.poll(), tune.text(tune.log))
        self.assertEqual(self.job()["state"], "running")
        self.assertIn("the database fails writes", self.cluster.server.text(self.cluster.server.log))
        refusal = self.refusal()
        self.assertEqual(refusal.code, 4)
        self.assertIn("disk is full", refusal.stderr)

        os.unlink(self.filler)
        self.assertEqual(tune.wait(60), 0, tune.text(tune.log) + self.cluster.logs())
        tuned = json.loads(tune.text())
        job = self.cluster.ask("job", "get", self.name)
        self.assertEqual(job.get("attempts", 0), 0, "the full disk counted against the worker")
        self.assertGreaterEqual(tuned["trials"]["measured"] + sum(tuned["trials"].get("failed", {}).values()), 12)
        self.assertEqual(self.cluster.ask("lookup", *TUNED)["record"], tuned["record"])
        self.cluster.kiln("run", *TUNED)
        self.cluster.stop()
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
