// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/search/ranking.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "tests/worker/compiler/search/grid_space.h"
#include "worker/compiler/search/pool.h"

namespace kiln::compiler {
namespace {

Schedule At(int64_t a, int64_t b) {
  return {.family = "invented", .version = 1, .knobs = {{"a", a}, {"b", b}}};
}

TEST(Ranking, AsksTheModelOncePerSchedule) {
  int asked = 0;
  Ranking ranking([&](const Schedule&) {
    ++asked;
    return 10.0;
  });
  ranking.Corrected(At(1, 1));
  ranking.Corrected(At(1, 1));
  EXPECT_EQ(asked, 1);
}

TEST(Ranking, PutsSchedulesWithoutPredictionLast) {
  Ranking ranking([](const Schedule& s) {
    if (s.knobs.at("a") == 0) return std::numeric_limits<double>::quiet_NaN();
    if (s.knobs.at("a") == 1) return -5.0;
    return 10.0 + s.knobs.at("a");
  });
  std::vector<Schedule> schedules = {At(0, 0), At(1, 0), At(3, 0), At(2, 0)};
  ranking.Sort(&schedules);
  EXPECT_EQ(schedules[0], At(2, 0));
  EXPECT_EQ(schedules[1], At(3, 0));
}

TEST(Ranking, CorrectsAKnobValueThatTheModelMisjudges) {
  Ranking ranking([](const Schedule& s) { return s.knobs.at("a") == 1 ? 90.0 : 100.0; });
  for (int64_t b = 0; b < 4; ++b) {
    ranking.Learn(At(0, b), 100);
    ranking.Learn(At(1, b), 180);  // twice what was predicted
  }
  EXPECT_LT(ranking.Corrected(At(0, 9)), ranking.Corrected(At(1, 9)));
}

TEST(Ranking, KeepsTheModelsOrderWhereAllAreOffByOneFactor) {
  Ranking ranking([](const Schedule& s) { return 100.0 + s.knobs.at("a"); });
  for (int64_t a = 0; a < 6; ++a) ranking.Learn(At(a, 0), 7 * (100.0 + a));
  EXPECT_LT(ranking.Corrected(At(0, 0)), ranking.Corrected(At(1, 0)));
  EXPECT_LT(ranking.Corrected(At(4, 0)), ranking.Corrected(At(5, 0)));
}

TEST(Pool, HoldsTheWholeOfASmallSpace) {
  const GridSpace space({MakeKnob("a", 6), MakeKnob("b", 6)}, [](const Schedule& s) {
    return s.knobs.at("a") != s.knobs.at("b") || s.knobs.at("a") == 0;
  });
  Ranking ranking([](const Schedule& s) { return 1.0 + s.knobs.at("b"); });
  SplitMix64 random(1);
  const Pool pool = MakePool(space, &ranking, &random);
  EXPECT_TRUE(pool.whole);
  EXPECT_EQ(static_cast<int64_t>(pool.ranked.size()), space.Count(1000).schedules);
  EXPECT_EQ(pool.ranked.front().knobs.at("b"), 0);
}

TEST(Pool, FollowsTheModelBeyondItsSample) {
  std::vector<Knob> knobs;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) knobs.push_back(MakeKnob(name, 16));
  const GridSpace space(knobs, Anything);
  auto distance = [](const Schedule& s) {
    double sum = 1;
    for (const auto& [knob, value] : s.knobs) sum += std::abs(static_cast<double>(value) - 11);
    return sum;
  };
  Ranking ranking(distance);
  SplitMix64 random(1), again(1);
  const Pool pool = MakePool(space, &ranking, &random);
  EXPECT_FALSE(pool.whole);
  double sampled = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 1024; ++i) sampled = std::min(sampled, distance(space.Sample(again.Next())));
  EXPECT_LT(distance(pool.ranked.front()), sampled);
}

TEST(Pool, PicksSchedulesThatLieApart) {
  const std::vector<Schedule> ranked = {At(0, 0), At(0, 1), At(0, 2), At(1, 1), At(2, 2)};
  const std::vector<Schedule> picked = PickApart(ranked, 3);
  EXPECT_EQ(picked, (std::vector<Schedule>{At(0, 0), At(1, 1), At(2, 2)}));
}

TEST(Pool, PicksNearOnesWhereNoOthersAreLeft) {
  EXPECT_EQ(PickApart({At(0, 0), At(0, 1)}, 5).size(), 2u);
}

}  // namespace
}  // namespace kiln::compiler
