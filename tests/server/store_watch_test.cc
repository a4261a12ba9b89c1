// SPDX-License-Identifier: Apache-2.0
#include "server/store_watch.h"

#include <gtest/gtest.h>

namespace kiln::server {
namespace {

TEST(StoreWatch, SpeaksOnceOfEachChange) {
  StoreWatch watch;
  EXPECT_FALSE(watch.Note(0, 5));
  EXPECT_NE(watch.Note(2, 5)->find("fails writes"), std::string::npos);
  EXPECT_FALSE(watch.Note(3, 6)) << "it still fails, though some writes go through";
  EXPECT_FALSE(watch.Note(3, 6)) << "nothing was tried";
  EXPECT_NE(watch.Note(3, 7)->find("again"), std::string::npos);
  EXPECT_FALSE(watch.Note(3, 9));
  EXPECT_TRUE(watch.Note(4, 9));
}

}  // namespace
}  // namespace kiln::server
