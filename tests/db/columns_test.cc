// SPDX-License-Identifier: Apache-2.0
#include "db/columns.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "db/json.h"
#include "tests/db/samples.h"

namespace kiln::db {
namespace {

TEST(Columns, ASpecComesBackWhole) {
  const WorkloadSpec spec = SampleSpec(3);
  WorkloadSpec back;
  ASSERT_TRUE(FromColumn(ToColumn(spec), &back)) << ToColumn(spec);
  EXPECT_EQ(back, spec);
}

TEST(Columns, APlanComesBackWhole) {
  const Plan plan = SampleRecord(1).plan;
  Plan back;
  ASSERT_TRUE(FromColumn(ToColumn(plan), &back)) << ToColumn(plan);
  EXPECT_EQ(back, plan);
  EXPECT_TRUE(std::signbit(back.steps[1].arguments[2].number));
}

TEST(Columns, DefaultsComeBackAsTheyWere) {
  // Fields whose default is not zero, set to zero: what is left out must not come back as the
  // default.
  Plan plan;
  plan.tensors = {{0, 0}};
  plan.steps.resize(1);
  plan.steps[0].grid[0].value = 0;
  Plan back;
  ASSERT_TRUE(FromColumn(ToColumn(plan), &back));
  EXPECT_EQ(back, plan);
  WorkloadSpec spec;
  spec.policy.library = false;
  WorkloadSpec spec_back;
  ASSERT_TRUE(FromColumn(ToColumn(spec), &spec_back));
  EXPECT_EQ(spec_back, spec);
}

TEST(Columns, EvidenceComesBackBitForBit) {
  const Record record = SampleRecord(1);
  Record back;
  ASSERT_TRUE(FromEvidence(EvidenceColumn(record), &back)) << EvidenceColumn(record);
  EXPECT_EQ(EvidenceColumn(back), EvidenceColumn(record));
  EXPECT_EQ(back.measurement.ci95_lo_ns, record.measurement.ci95_lo_ns);
  EXPECT_EQ(back.measurement.conditions, record.measurement.conditions);
  EXPECT_EQ(back.verification.seed, record.verification.seed);
  EXPECT_EQ(back.measurement.objective, record.measurement.objective);
  EXPECT_EQ(back.measurement.inner_iterations, 0);
}

TEST(Columns, DoublesAndIntegersKeepEveryBit) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t bits = random();
    double number;
    std::memcpy(&number, &bits, sizeof number);
    if (std::isnan(number)) continue;
    double back = 0;
    ASSERT_TRUE(FromJson(ToJson(number), &back)) << ToJson(number);
    ASSERT_EQ(std::memcmp(&back, &number, sizeof number), 0) << ToJson(number);
    const int64_t integer = static_cast<int64_t>(random());
    int64_t integer_back = 0;
    ASSERT_TRUE(FromJson(ToJson(integer), &integer_back));
    ASSERT_EQ(integer_back, integer);
  }
}

TEST(Columns, StringsOfAnyBytesComeBack) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  std::string back;
  ASSERT_TRUE(FromJson(ToJson(all), &back));
  EXPECT_EQ(back, all);
}

TEST(Columns, EveryPrefixAndEveryFlippedByteIsReadOrRefusedButNeverCrashes) {
  const std::string text = EvidenceColumn(SampleRecord(1));
  for (size_t size = 0; size < text.size(); ++size) {
    Record record;
    EXPECT_FALSE(FromEvidence(text.substr(0, size), &record)) << size;
  }
  std::mt19937 random(11);
  int refused = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (random() % 8)));
    Record record;
    refused += !FromEvidence(damaged, &record);
  }
  EXPECT_GT(refused, 0);
}

TEST(Columns, AnUnknownFieldIsRefused) {
  WorkloadSpec spec;
  EXPECT_FALSE(FromColumn("{\"program\":\"x\",\"colour\":1,\"policy\":{}}", &spec));
  EXPECT_FALSE(FromColumn("{\"program\":\"x\",\"policy\":{}} ", &spec));
  EXPECT_TRUE(FromColumn("{\"program\":\"x\",\"policy\":{}}", &spec));
}

TEST(Columns, KeepsAHundredSamplesSpreadOverAll) {
  std::vector<int64_t> samples(1000);
  for (int i = 0; i < 1000; ++i) samples[i] = i;
  const std::vector<int64_t> kept = StoredSamples(samples);
  ASSERT_EQ(kept.size(), 100u);
  EXPECT_EQ(kept.front(), 0);
  EXPECT_EQ(kept.back(), 990);
  EXPECT_EQ(StoredSamples({3, 1, 2}), (std::vector<int64_t>{3, 1, 2}));
}

}  // namespace
}  // namespace kiln::db
