# SPDX-License-Identifier: Apache-2.0
"""From request to served kernel: tune, look up, restart, look up again, load and run what was stored."""

import hashlib
import os
import struct
import unittest

from tests.support.cluster import ClusterTest, matmul

BUDGET = ["--trials", "8", "--seconds", "20"]


def write_npy(path, shape, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin1"))
        file.write(struct.pack(f"<{len(values)}f", *values))


def read_npy(path):
    with open(path, "rb") as file:
        data = file.read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return struct.unpack(f"<{(len(data) - start) // 4}f", data[start:])


class SpineTest(ClusterTest):
    def test_a_tuned_schedule_is_served_and_survives_a_restart(self):
        worker = self.spine()
        select = matmul(96, 80, 64)
        self.cluster.kiln("lookup", *select, expect=3)

        tuned = self.cluster.ask("tune", *select, *BUDGET)
        self.assertEqual(tuned["match"], "exact")
        self.assertRegex(tuned["signature"], "^[0-9a-f]{64}$")
        self.assertIn(tuned["device"], worker.device)
        self.assertGreaterEqual(tuned["trials"]["measured"], 1)
        self.assertGreater(tuned["measurement"]["median_ns"], 0)
        self.assertGreaterEqual(tuned["measurement"]["samples"], 10)
        self.assertGreaterEqual(tuned["verified"]["sets"], 3)
        self.assertLessEqual(tuned["verified"]["max_error"], tuned["verified"]["tolerance"])
        self.assertTrue(tuned["plan"])
        self.assertIn("openblas", tuned["baseline"]["name"])
        self.assertGreater(tuned["baseline"]["ratio"], 0)

        found = self.cluster.ask("lookup", *select)
        for field in ("match", "signature", "device", "schedule", "record", "job", "plan", "measurement"):
            self.assertEqual(found[field], tuned[field], field)

        self.assertEqual(self.cluster.server.stop(), 0)
        self.cluster.start_server()
        again = self.cluster.ask("lookup", *select)
        self.assertEqual(again["record"], tuned["record"])
        self.assertEqual(again["job"], tuned["job"])

        ran = self.cluster.ask("run", *select)
        self.assertLessEqual(ran["max_error"], ran["tolerance"])
        self.assertGreaterEqual(ran["checked"], 96 * 80)
        self.assertGreater(ran["median_ns"], 0)

    def test_tuning_what_is_stored_answers_at_once_unless_forced(self):
        self.spine()
        select = matmul(64, 48, 32)
        first = self.cluster.ask("tune", *select, *BUDGET)
        second = self.cluster.ask("tune", *select, *BUDGET)
        self.assertEqual((second["match"], second["record"]), ("exact", first["record"]))
        self.assertEqual(len(self.cluster.ask("jobs")["jobs"]), 1)
        self.cluster.ask("tune", *select, *BUDGET, "--force")
        self.assertEqual(len(self.cluster.ask("jobs")["jobs"]), 2)

    def test_names_of_tensors_and_dims_do_not_matter(self):
        self.spine()
        tuned = self.cluster.ask("tune", *matmul(40, 24, 56), *BUDGET)
        path = os.path.join(self.cluster.folder, "product.kiln")
        with open(path, "w", encoding="utf-8") as file:
            file.write("operator Product(P, Q, R) {\n  input X[P,R], Y[R,Q];\n  output Z[P,Q];\n"
                       "  Z[p,q] = sum(X[p,r] * Y[r,q]);  // the same\n}\n")
        found = self.cluster.ask("lookup", path, "--dims", "P=40,Q=24,R=56")
        self.assertEqual(found["record"], tuned["record"])
        names = [argument.get("name") for step in found["plan"] for argument in step["arguments"]]
        for theirs in ("A", "B", "C"):
            self.assertNotIn(theirs, names)

    def test_a_job_is_watched_by_its_name(self):
        self.spine()
        tuned = self.cluster.ask("tune", *matmul(40, 24, 16), *BUDGET)
        watched = self.cluster.ask("job", "watch", tuned["job"])
        self.assertEqual(watched["record"], tuned["record"])
        self.assertIn("jobs/", self.cluster.kiln("job", "watch", "job-of-mine", expect=2).stderr)

    def test_run_computes_on_the_given_data(self):
        self.spine()
        m, n, k = 5, 7, 3
        select = matmul(m, n, k)
        self.cluster.ask("tune", *select, *BUDGET)
        a = [float(i % 7 - 3) for i in range(m * k)]
        b = [float(i % 5 - 2) for i in range(k * n)]
        folder = self.cluster.folder
        paths = {name: os.path.join(folder, name + ".npy") for name in "abc"}
        write_npy(paths["a"], (m, k), a)
        write_npy(paths["b"], (k, n), b)
        self.cluster.kiln("run", *select, "--in", f"A={paths['a']},B={paths['b']}", "--out", f"C={paths['c']}")
        want = [sum(a[i * k + l] * b[l * n + j] for l in range(k)) for i in range(m) for j in range(n)]
        self.assertEqual(list(read_npy(paths["c"])), want)

    def test_what_is_stored_can_be_listed_and_fetched(self):
        self.spine()
        for kind in ("jobs", "records", "workers"):
            self.assertIn(kind, self.cluster.ask(kind))
        self.assertEqual(self.cluster.ask("records")["records"], [])
        tuned = self.cluster.ask("tune", *matmul(33, 17, 9), *BUDGET)
        self.assertEqual(len(self.cluster.ask("records")["records"]), 1)
        self.assertEqual(len(self.cluster.ask("workers")["workers"]), 1)
        self.cluster.kiln("record", "get", tuned["record"])
        self.cluster.kiln("job", "get", tuned["job"])
        digests = {step["artifact"] for step in tuned["plan"] if step.get("artifact")}
        for digest in digests:
            path = os.path.join(self.cluster.folder, "artifact")
            self.cluster.kiln("artifact", "get", digest, "-o", path)
            with open(path, "rb") as file:
                self.assertEqual(hashlib.sha256(file.read()).hexdigest(), digest)

    def test_inspect_needs_no_server(self):
        shown = self.cluster.ask("inspect", *matmul(128, 128, 128))
        self.assertRegex(shown["signature"], "^[0-9a-f]{64}$")
        self.assertGreater(shown["space"]["size"], 10)
        self.assertEqual(len(shown["best"]), 10)
        times = [candidate["predicted_ns"] for candidate in shown["best"]]
        self.assertEqual(times, sorted(times))

    def test_local_starts_and_stops_what_it_needs(self):
        database = os.path.join(self.cluster.folder, "local.db")
        tuned = self.cluster.ask("tune", *matmul(32, 32, 32), *BUDGET, "--local", "--db", database)
        self.assertEqual(tuned["match"], "exact")
        self.assert_nothing_left()
        found = self.cluster.ask("lookup", *matmul(32, 32, 32), "--local", "--db", database)
        self.assertEqual(found["record"], tuned["record"])
        self.assert_nothing_left()

    def test_a_stopped_cluster_leaves_nothing(self):
        self.spine()
        self.cluster.ask("tune", *matmul(20, 20, 20), *BUDGET)
        self.cluster.stop()
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
