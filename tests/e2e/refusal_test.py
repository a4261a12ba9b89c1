# SPDX-License-Identifier: Apache-2.0
"""Bad input and bad days: exit codes, and databases that cannot be served. Nothing is ever overwritten."""

import hashlib
import os
import sqlite3
import unittest

from tests.support.cluster import Cluster, ClusterTest, matmul

REFUSED = 6


class CommandTest(unittest.TestCase):
    """Exit codes of the command line against one server and worker."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_server()
        cls.cluster.start_worker()

    def refused(self, code, *arguments):
        """The error object of a command that must fail with `code`; the same goes to stderr as one line of words."""
        answer = self.cluster.kiln(*arguments, "--json", expect=code)
        error = answer.json["error"]
        for field in ("code", "reason", "message"):
            self.assertIn(field, error)
        self.assertRegex(answer.stderr, "(?m)^kiln: ")
        return error["message"]

    def program(self, text):
        path = os.path.join(self.cluster.folder, hashlib.sha256(text.encode()).hexdigest()[:8] + ".kiln")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_an_unknown_operator(self):
        self.assertIn("nosuch", self.refused(2, "tune", "nosuch", "--dims", "M=1"))

    def test_a_missing_dim(self):
        self.assertIn("K", self.refused(2, "tune", "matmul", "--dims", "M=4,N=4"))

    def test_a_dim_that_is_not_there(self):
        self.assertIn("Q", self.refused(2, "lookup", *matmul(4, 4, 4)[:2], "M=4,N=4,K=4,Q=4"))

    def test_a_negative_dim(self):
        self.assertIn("-4", self.refused(2, "tune", "matmul", "--dims", "M=-4,N=4,K=4"))

    def test_dims_whose_product_overflows(self):
        big = 2**40 - 1
        self.assertIn("1099511627775", self.refused(2, "tune", "matmul", "--dims", f"M={big},N={big},K={big}"))

    def test_an_extent_past_the_limit(self):
        self.refused(2, "tune", "matmul", "--dims", f"M={2**40},N=1,K=1")

    def test_a_workload_larger_than_the_memory(self):
        self.refused(REFUSED, "tune", "matmul", "--dims", "M=4000000,N=4000000,K=4")

    def test_a_syntax_error_shows_the_place(self):
        message = self.refused(2, "tune", self.program("operator F(M) {\n  input x[M];\n  output y[M];\n  y[i] = x[i] +;\n}\n"),
                               "--dims", "M=4")
        self.assertIn("4", message)
        self.assertIn("^", message)

    def test_an_unknown_type(self):
        self.assertIn("f33", self.refused(2, "tune", *matmul(4, 4, 4), "--type", "A=f33"))

    def test_output_strides_that_overlap(self):
        self.assertIn("C", self.refused(2, "tune", *matmul(4, 4, 4), "--stride", "C=1:1"))

    def test_an_unknown_device(self):
        self.assertIn("abacus", self.refused(2, "tune", *matmul(4, 4, 4), "--device", "abacus"))

    def test_a_gpu_where_there_is_none(self):
        answer = self.cluster.kiln("tune", *matmul(4, 4, 4), "--device", "cuda:any", "--json", expect=None)
        self.assertIn(answer.code, (2, 4, 6), str(answer))

    def test_a_dynamic_dim_is_not_built_yet_and_says_so(self):
        answer = self.cluster.kiln("tune", "matmul", "--dims", "M=1..8,N=4,K=4", "--json", expect=REFUSED)
        self.assertIn("dynamic", answer.json["error"]["message"].lower())

    def test_a_program_that_no_family_takes(self):
        path = self.program("operator Soft(M, N) {\n  input x[M,N];\n  output y[M,N];\n"
                            "  y[i,j] = softmax(x[i,j] over [j]);\n}\n")
        message = self.refused(REFUSED, "tune", path, "--dims", "M=4,N=4")
        self.assertIn("contraction", message)
        self.assertRegex(self.cluster.ask("inspect", path, "--dims", "M=4,N=4")["signature"], "^[0-9a-f]{64}$")

    def test_a_quality_that_is_not_built_yet(self):
        self.refused(REFUSED, "lookup", *matmul(4, 4, 4), "--min-quality", "predicted")

    def test_an_unknown_flag_and_command(self):
        self.refused(2, "tune", *matmul(4, 4, 4), "--frobnicate")
        self.refused(2, "frobnicate")

    def test_nothing_stored(self):
        message = self.refused(3, "lookup", *matmul(11, 13, 17))
        self.assertIn("kiln tune", message)

    def test_no_server(self):
        self.refused(4, "lookup", *matmul(4, 4, 4), "--server", "127.0.0.1:1", "--timeout", "2")

    def test_help_is_a_success(self):
        self.assertIn("tune", self.cluster.kiln("--help").stdout)

    def test_names_that_are_not_there(self):
        for arguments in (("job", "get", "jobs/0000000000000000"), ("record", "get", "rec-0000000000000000"),
                          ("artifact", "get", "0" * 64, "-o", os.path.join(self.cluster.folder, "none"))):
            self.refused(3, *arguments)

    def test_the_server_lives_on(self):
        self.assertIsNone(self.cluster.server.child.poll())


class DatabaseTest(ClusterTest):
    def refuse(self, **how):
        """Starts a server that must refuse; its words."""
        second = self.cluster.start_server(wait=False, name="refused", **how)
        self.assertEqual(second.wait(20), REFUSED, second.text(second.log))
        self.assertNotIn("ready", second.text())
        return second.text(second.log)

    def digest(self, path):
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def made_database(self):
        self.cluster.start_server()
        self.cluster.server.stop()
        return self.cluster.database

    def test_a_second_server_names_the_owner(self):
        self.cluster.start_server()
        words = self.refuse(listen="unix:" + os.path.join(self.cluster.folder, "other.sock"))
        self.assertTrue(str(self.cluster.server.pid) in words or self.cluster.address in words, words)
        self.cluster.ask("records")

    def test_the_owner_killed_the_next_one_may(self):
        self.cluster.start_server()
        self.cluster.server.kill()
        self.cluster.start_server()
        self.cluster.ask("records")

    def test_a_file_that_is_no_database(self):
        with open(self.cluster.database, "wb") as file:
            file.write(b"these are somebody's notes, not a database\n" * 100)
        before = self.digest(self.cluster.database)
        self.assertIn(self.cluster.database, self.refuse())
        self.assertEqual(self.digest(self.cluster.database), before)

    def test_a_truncated_database(self):
        path = self.made_database()
        with open(path, "r+b") as file:
            file.truncate(os.path.getsize(path) // 2 + 100)
        before = self.digest(path)
        self.assertIn(path, self.refuse())
        self.assertEqual(self.digest(path), before)

    def test_a_newer_schema(self):
        path = self.made_database()
        with sqlite3.connect(path) as connection:
            version = connection.execute("pragma user_version").fetchone()[0]
            connection.execute(f"pragma user_version = {version + 1}")
        connection.close()
        before = self.digest(path)
        words = self.refuse()
        self.assertIn(path, words)
        self.assertIn("DATABASE_NEWER", words)
        self.assertEqual(self.digest(path), before)

    def test_another_programs_database(self):
        with sqlite3.connect(self.cluster.database) as connection:
            connection.execute("create table cookbook(recipe text)")
        connection.close()
        before = self.digest(self.cluster.database)
        self.refuse()
        self.assertEqual(self.digest(self.cluster.database), before)

    def test_a_read_only_folder(self):
        folder = os.path.join(self.cluster.folder, "locked")
        os.mkdir(folder)
        os.chmod(folder, 0o555)
        self.addCleanup(os.chmod, folder, 0o755)
        user = None
        if os.geteuid() == 0:  # whom no mode stops
            user = 65534
            os.chmod(self.cluster.folder, 0o777)
            os.chmod(self.cluster.tmp, 0o777)
        self.refuse(database=os.path.join(folder, "kiln.db"), user=user)
        self.assertEqual(os.listdir(folder), [])

    def test_a_folder_that_is_not_there(self):
        path = os.path.join(self.cluster.folder, "no", "such", "folder", "kiln.db")
        self.assertIn(path, self.refuse(database=path))

    def test_an_address_that_is_taken(self):
        self.cluster.start_server(listen="127.0.0.1:0")
        second = self.cluster.start_server(wait=False, name="refused", listen=self.cluster.address,
                                           database=os.path.join(self.cluster.folder, "other.db"))
        self.assertNotEqual(second.wait(20), 0)
        self.assertIn(self.cluster.address, second.text(second.log))


if __name__ == "__main__":
    unittest.main()
