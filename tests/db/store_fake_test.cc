// SPDX-License-Identifier: Apache-2.0
#include "tests/support/store_fake.h"

#include "tests/db/store_suite.h"

namespace kiln::db {
namespace {

INSTANTIATE_TEST_SUITE_P(Fake, StoreSuite, ::testing::Values([](const TestDirectory&) {
                           return std::make_unique<StoreFake>();
                         }));

TEST(StoreFake, FailsAsItIsTold) {
  StoreFake store;
  store.FailWrites(absl::UnavailableError("full"));
  EXPECT_TRUE(absl::IsUnavailable(store.SetSalt(1)));
  EXPECT_EQ(*store.Salt(), 0);
  store.FailWrites(absl::OkStatus());
  store.FailReads(absl::UnavailableError("broken"));
  EXPECT_TRUE(absl::IsUnavailable(store.FindPublished(SampleKey(1), "").status()));
  store.FailReads(absl::OkStatus());
  const std::string id = TuneSample(store, 1).value();
  store.DamageRecord(id);
  EXPECT_FALSE(store.FindPublished(SampleKey(1), SampleCanonical(1))->has_value());
  EXPECT_TRUE(absl::IsDataLoss(store.GetRecord(id).status()));
}

}  // namespace
}  // namespace kiln::db
