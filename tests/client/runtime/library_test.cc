// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/client/runtime/plan_fixture.h"

namespace kiln::runtime {
namespace {

struct Shape {
  int64_t m, n, k, batch;
  bool trans_a, trans_b;
};

// One library step over packed operands.
template <typename T>
Plan GemmPlan(const Shape& s) {
  Plan plan;
  const int64_t size = sizeof(T);
  plan.tensors = {{.alignment = 8, .span_bytes = s.batch * s.m * s.k * size},
                  {.alignment = 8, .span_bytes = s.batch * s.k * s.n * size},
                  {.alignment = 8, .span_bytes = s.batch * s.m * s.n * size}};
  Step step;
  step.kind = StepKind::kLibrary;
  step.entry = sizeof(T) == 4 ? "openblas:sgemm" : "openblas:dgemm";
  step.arguments = {TensorArgument(0), TensorArgument(1), TensorArgument(2)};
  const int64_t lda = s.trans_a ? s.m : s.k, ldb = s.trans_b ? s.k : s.n;
  for (const int64_t value :
       {int64_t{s.trans_a}, int64_t{s.trans_b}, s.m, s.n, s.k, std::max<int64_t>(lda, 1),
        std::max<int64_t>(ldb, 1), std::max<int64_t>(s.n, 1), s.batch, s.m * s.k, s.k * s.n,
        s.m * s.n}) {
    step.arguments.push_back(IntegerArgument(value));
  }
  plan.steps = {step};
  return plan;
}

template <typename T>
void ExpectMatchesLoops(const Shape& s, kiln_pool* pool) {
  const PlanPtr loaded = MustLoad(GemmPlan<T>(s));
  Aligned<T> a(s.batch * s.m * s.k + 1), b(s.batch * s.k * s.n + 1),
      c(s.batch * s.m * s.n + 1, 777);
  for (int64_t i = 0; i < s.batch * s.m * s.k; ++i) a[i] = static_cast<T>(i * 7 % 13 - 6);
  for (int64_t i = 0; i < s.batch * s.k * s.n; ++i) b[i] = static_cast<T>(i * 5 % 11 - 5);
  void* tensors[] = {a.data(), b.data(), c.data()};
  ASSERT_EQ(kiln_plan_launch(loaded.get(), pool, tensors, nullptr, nullptr), KILN_OK)
      << kiln_error();
  for (int64_t item = 0; item < s.batch; ++item) {
    const T* ai = a.data() + item * s.m * s.k;
    const T* bi = b.data() + item * s.k * s.n;
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j) {
        T sum = 0;  // small integers: exact in any order
        for (int64_t k = 0; k < s.k; ++k) {
          sum += (s.trans_a ? ai[k * s.m + i] : ai[i * s.k + k]) *
                 (s.trans_b ? bi[j * s.k + k] : bi[k * s.n + j]);
        }
        ASSERT_EQ(c[(item * s.m + i) * s.n + j], sum) << item << " " << i << " " << j;
      }
    }
  }
  EXPECT_EQ(c[s.batch * s.m * s.n], 777);
}

class Library : public testing::Test {
 protected:
  void SetUp() override {
    if (kiln_library_identity("openblas") == nullptr) GTEST_SKIP() << kiln_error();
  }
};

TEST_F(Library, MatchesLoopsInEveryTranspositionAndBatch) {
  for (const int threads : {1, 2}) {
    const PoolPtr pool = MakePool(threads);
    for (const bool trans_a : {false, true}) {
      for (const bool trans_b : {false, true}) {
        ExpectMatchesLoops<float>({33, 17, 29, 1, trans_a, trans_b}, pool.get());
        ExpectMatchesLoops<float>({5, 7, 3, 20, trans_a, trans_b}, pool.get());
        ExpectMatchesLoops<double>({31, 16, 64, 2, trans_a, trans_b}, pool.get());
      }
    }
  }
}

TEST_F(Library, HandlesEmptyExtents) {
  const PoolPtr pool = MakePool(2);
  ExpectMatchesLoops<float>({4, 5, 0, 1, false, false}, pool.get());  // zeros
  ExpectMatchesLoops<float>({0, 5, 3, 1, false, false}, pool.get());
  ExpectMatchesLoops<float>({4, 0, 3, 1, true, false}, pool.get());
  ExpectMatchesLoops<float>({4, 5, 3, 0, false, true}, pool.get());
}

TEST_F(Library, TellsWhichLibraryItIs) {
  const std::string identity = kiln_library_identity("openblas");
  EXPECT_EQ(identity.rfind("openblas ", 0), 0) << identity;
  EXPECT_EQ(std::count(identity.begin(), identity.end(), ' '), 2) << identity;
}

TEST_F(Library, RefusesNumbersBeyondItsIntegers) {
  const PoolPtr pool = MakePool(1);
  Plan plan = GemmPlan<float>({4, 4, 4, 1, false, false});
  plan.steps[0].arguments[5].integer = int64_t{1} << 31;  // m
  const PlanPtr large = MustLoad(plan);
  Aligned<float> memory(64);
  void* tensors[] = {memory.data(), memory.data() + 16, memory.data() + 32};
  EXPECT_EQ(kiln_plan_launch(large.get(), pool.get(), tensors, nullptr, nullptr),
            KILN_BAD_ARGUMENT);
  EXPECT_EQ(std::string(kiln_error()).rfind("library gemm: m: 2147483648", 0), 0) << kiln_error();

  plan = GemmPlan<float>({4, 4, 4, 1, false, false});
  plan.steps[0].arguments.pop_back();
  ExpectLoadFails(plan, KILN_INVALID_PLAN, "takes 15 arguments");
}

TEST(LibraryIdentity, OfAnUnknownLibraryIsNull) {
  EXPECT_EQ(kiln_library_identity("mkl"), nullptr);
  EXPECT_STREQ(kiln_error(), "library mkl: not known; known: openblas");
}

}  // namespace
}  // namespace kiln::runtime
