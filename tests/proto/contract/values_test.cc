// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/contract/device.h"
#include "proto/contract/dtype.h"
#include "proto/contract/error.h"
#include "proto/contract/job.h"
#include "proto/contract/objective.h"
#include "proto/contract/schedule.h"
#include "proto/contract/workload.h"

namespace kiln {
namespace {

using ::testing::HasSubstr;

TEST(DType, EachWordParsesToItsType) {
  for (int i = 0; i <= static_cast<int>(DType::kBool); ++i) {
    const DType type = static_cast<DType>(i);
    EXPECT_EQ(ParseDType(Print(type)), type) << Print(type);
  }
  EXPECT_EQ(ParseDType("float"), std::nullopt);
}

TEST(DType, TwoNibblesShareAByte) {
  EXPECT_EQ(BytesOf(DType::kI4, 3), 2);
  EXPECT_EQ(BytesOf(DType::kU4, 4), 2);
  EXPECT_EQ(BytesOf(DType::kF64, 3), 24);
  EXPECT_EQ(BytesOf(DType::kI4, INT64_MAX), INT64_MAX / 2 + 1);
}

TEST(Error, CarriesWhatWhereAndWhatIsAllowed) {
  const absl::Status status =
      InvalidField("NEGATIVE_DIM", "dims.M", "-3", "negative", "an integer from 0");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()), "dims.M: -3 is negative; allowed: an integer from 0");
  const ErrorInfo info = GetErrorInfo(Annotate(status, "TuneSchedule"));
  EXPECT_EQ(info.reason, "NEGATIVE_DIM");
  EXPECT_EQ(info.details.at("field"), "dims.M");
  EXPECT_EQ(info.details.at("value"), "-3");
  EXPECT_EQ(info.details.at("allowed"), "an integer from 0");
  EXPECT_EQ(GetErrorInfo(absl::InternalError("x")).reason, "");
}

TEST(Schedule, ParsesWhatItPrints) {
  const Schedule schedule{"contraction", 1, {{"mr", 6}, {"nr", 16}, {"kc", 256}, {"bias", -1}}};
  EXPECT_EQ(Print(schedule), "contraction/1 bias=-1 kc=256 mr=6 nr=16");
  EXPECT_EQ(*ParseSchedule(Print(schedule)), schedule);
  EXPECT_EQ(Print(*ParseSchedule("library/1")), "library/1");
}

TEST(Schedule, RefusesOtherText) {
  for (const char* text :
       {"", "contraction", "contraction/0", "/1", "a/1 k", "a/1 k=", "a/1 k=1 k=2", "a/1 k=1.5"}) {
    const auto schedule = ParseSchedule(text);
    EXPECT_FALSE(schedule.ok()) << text;
    EXPECT_EQ(GetErrorInfo(schedule.status()).reason, "MALFORMED_SCHEDULE");
  }
}

TEST(Objective, FillsInWhatIsLeftOut) {
  const Objective warm{CacheState::kWarm, Burst::kBurst};
  EXPECT_EQ(Print(*ParseObjective("", warm)), "warm,burst");
  EXPECT_EQ(Print(*ParseObjective("sustained", warm)), "warm,sustained");
  EXPECT_EQ(Print(*ParseObjective("cold", warm)), "cold,burst");
  EXPECT_THAT(std::string(ParseObjective("tepid", warm).status().message()), HasSubstr("tepid"));
}

DeviceFingerprint SomeCpu() {
  DeviceFingerprint device;
  device.architecture = "x86-64";
  device.model = "AuthenticAMD-25-1-1";
  device.features = {"fma", "avx2"};
  device.cores = device.threads = 2;
  device.vector_bits = 256;
  device.l1d_bytes = 32768;
  device.l2_bytes = 524288;
  device.l3_bytes = 33554432;
  device.l3_sharing = 2;
  return device;
}

TEST(Device, ParsesWhatItPrints) {
  DeviceFingerprint device = SomeCpu();
  const DeviceFingerprint parsed = *ParseDevice(Print(device));
  std::sort(device.features.begin(), device.features.end());
  EXPECT_EQ(parsed, device);
  EXPECT_TRUE(parsed.Has("avx2"));
  EXPECT_FALSE(parsed.Has("avx512f"));
}

TEST(Device, NamesInformAndFactsIdentify) {
  const DeviceFingerprint device = SomeCpu();
  DeviceFingerprint other = device;
  other.name = "Another \xc3\xa9 name ";
  other.memory_bytes = 1;
  std::swap(other.features[0], other.features[1]);
  EXPECT_EQ(DeviceId(other), DeviceId(device));
  other.threads = 1;
  EXPECT_NE(DeviceId(other), DeviceId(device));
  other = device;
  other.backing = Backing::kSimulated;
  EXPECT_NE(DeviceId(other), DeviceId(device));
}

TEST(Device, RefusesFactsThatItDoesNotPrint) {
  for (const char* text : {"", "gpu hardware", "cpu real", "cpu hardware cores=two",
                           "cpu hardware cores=-1", "cpu hardware colour=red"}) {
    const auto device = ParseDevice(text);
    EXPECT_FALSE(device.ok()) << text;
    EXPECT_THAT(GetErrorInfo(device.status()).details["field"], HasSubstr("device."));
  }
}

TEST(Words, EveryEnumeratorHasOne) {
  for (int i = 0; i <= static_cast<int>(Stage::kTooSlow); ++i) {
    EXPECT_EQ(ParseStage(Print(static_cast<Stage>(i))), static_cast<Stage>(i));
  }
  for (int i = 0; i <= static_cast<int>(Timer::kSimulated); ++i) {
    EXPECT_EQ(ParseTimer(Print(static_cast<Timer>(i))), static_cast<Timer>(i));
  }
  for (int i = 0; i <= static_cast<int>(Match::kNone); ++i) {
    EXPECT_EQ(ParseMatch(Print(static_cast<Match>(i))), static_cast<Match>(i));
  }
  for (int i = 0; i <= static_cast<int>(JobState::kCancelled); ++i) {
    EXPECT_EQ(ParseJobState(Print(static_cast<JobState>(i))), static_cast<JobState>(i));
  }
}

TEST(Hash, IsSha256) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace kiln
