# SPDX-License-Identifier: Apache-2.0
"""Extents 0, 1 and primes, types, strides, batches, transpositions and fused epilogues: tuned, served, run and checked."""

import os
import unittest

from tests.support.cluster import Cluster, matmul

BUDGET = ["--trials", "4", "--seconds", "12"]

EPILOGUES = {
    "bias_relu": ("input A[M,K], B[K,N], bias[N];", "C[i,j] = relu(sum(A[i,k] * B[k,j]) + bias[j]);"),
    "scale": ("input A[M,K], B[K,N];", "C[i,j] = sum(A[i,k] * B[k,j]) * 0.125;"),
    "bias_gelu": ("input A[M,K], B[K,N], bias[N];", "C[i,j] = gelu(sum(A[i,k] * B[k,j]) + bias[j]);"),
    "silu": ("input A[M,K], B[K,N];", "t[i,j] = sum(A[i,k] * B[k,j]);\n  C[i,j] = silu(t[i,j]);"),
    "residual": ("input A[M,K], B[K,N], R[M,N];", "C[i,j] = sum(A[i,k] * B[k,j]) + R[i,j];"),
}


class ShapesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_server()
        cls.cluster.start_worker()

    def check(self, *select):
        tuned = self.cluster.ask("tune", *select, *BUDGET)
        self.assertEqual(tuned["match"], "exact")
        self.assertEqual(self.cluster.ask("lookup", *select)["record"], tuned["record"])
        ran = self.cluster.ask("run", *select)
        self.assertLessEqual(ran["max_error"], ran["tolerance"])
        return tuned, ran

    def program(self, name, text):
        path = os.path.join(self.cluster.folder, name + ".kiln")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_one_by_one_by_one(self):
        self.check(*matmul(1, 1, 1))

    def test_primes_and_thin(self):
        for shape in ((127, 31, 13), (1, 257, 64), (257, 1, 64), (64, 64, 1), (2, 3, 509)):
            with self.subTest(shape=shape):
                self.check(*matmul(*shape))

    def test_an_empty_output(self):
        for shape in ((0, 8, 4), (8, 0, 4)):
            with self.subTest(shape=shape):
                _, ran = self.check(*matmul(*shape))
                self.assertEqual(ran["checked"], 0)

    def test_an_empty_sum_is_zero(self):
        _, ran = self.check(*matmul(16, 24, 0))
        self.assertEqual(ran["max_error"], 0)

    def test_an_empty_sum_gives_the_epilogue_of_zeros(self):
        path = self.program("empty", "operator F(M, N, K) {\n  input A[M,K], B[K,N], bias[N];\n  output C[M,N];\n"
                                     "  C[i,j] = relu(sum(A[i,k] * B[k,j]) + bias[j]);\n}\n")
        self.check(path, "--dims", "M=8,N=12,K=0")

    def test_f64(self):
        self.check(*matmul(48, 40, 56), "--type", "A=f64,B=f64,C=f64")

    def test_strides(self):
        tuned, _ = self.check(*matmul(48, 40, 56), "--stride", "A=64:1,C=48:1")
        packed, _ = self.check(*matmul(48, 40, 56))
        self.assertNotEqual(tuned["signature"], packed["signature"])

    def test_both_sides_transposed(self):
        path = self.program("transposed", "operator T(M, N, K) {\n  input A[K,M], B[N,K];\n  output C[M,N];\n"
                                          "  C[i,j] = sum(A[k,i] * B[j,k]);\n}\n")
        self.check(path, "--dims", "M=37,N=45,K=51")

    def test_a_batch(self):
        path = self.program("batch", "operator Batch(P, M, N, K) {\n  input A[P,M,K], B[P,K,N];\n  output C[P,M,N];\n"
                                     "  C[p,i,j] = sum(A[p,i,k] * B[p,k,j]);\n}\n")
        self.check(path, "--dims", "P=6,M=32,N=24,K=16")

    def test_a_constant_is_packed_once(self):
        path = self.program("constant", "operator W(M, N, K) {\n  input A[M,K];\n  constant B[K,N];\n  output C[M,N];\n"
                                        "  C[i,j] = sum(A[i,k] * B[k,j]);\n}\n")
        self.check(path, "--dims", "M=24,N=96,K=80")

    def test_epilogues(self):
        for name, (inputs, body) in EPILOGUES.items():
            with self.subTest(epilogue=name):
                path = self.program(name, f"operator F(M, N, K) {{\n  {inputs}\n  output C[M,N];\n  {body}\n}}\n")
                self.check(path, "--dims", "M=45,N=52,K=33")

    def test_no_library_where_the_policy_forbids_it(self):
        tuned, _ = self.check(*matmul(64, 64, 64), "--policy", "library=no")
        self.assertNotIn("library", [step["kind"] for step in tuned["plan"]])


if __name__ == "__main__":
    unittest.main()
