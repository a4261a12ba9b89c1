// SPDX-License-Identifier: Apache-2.0
// Admission, the names of devices, and what is said to someone for whom nothing is stored.
#include "server/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/contract/error.h"
#include "server/devices.h"
#include "server/explain.h"
#include "tests/server/samples.h"

namespace kiln::server {
namespace {

using ::testing::HasSubstr;

absl::Status TakesAll(const Workload&, const DeviceFingerprint&,
                      std::map<std::string, std::string>*) {
  return absl::OkStatus();
}

std::string ReasonOf(const absl::Status& status) { return GetErrorInfo(status).reason; }

TEST(Admission, TakesWhatAFamilyTakes) { EXPECT_TRUE(Admit(MatMul(), CpuDevice(), TakesAll).ok()); }

TEST(Admission, RefusesAWorkloadLargerThanTheDevicesMemoryAndSaysNotToComeBack) {
  DeviceFingerprint small = CpuDevice();
  small.memory_bytes = 1 << 20;
  const absl::Status status = Admit(MatMul(1024, 1024, 1024), small, TakesAll);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  ErrorInfo info = GetErrorInfo(status);
  EXPECT_EQ(info.reason, "WORKLOAD_TOO_LARGE");
  EXPECT_EQ(info.details["value"], absl::StrCat(3 * 1024 * 1024 * 4));
  EXPECT_EQ(info.details["retry_after_seconds"], "never");
  small.memory_bytes = 0;  // not known
  EXPECT_TRUE(Admit(MatMul(1024, 1024, 1024), small, TakesAll).ok());
}

TEST(Admission, RefusesWhatIsNotBuiltYetAndSaysSo) {
  WorkloadSpec dynamic = MatMulSpec(64, 64, 64);
  dynamic.dims["K"] = {1, 4096};
  const absl::StatusOr<Workload> workload = CheckWorkload(dynamic);
  ASSERT_TRUE(workload.ok());
  absl::Status status = Admit(*workload, CpuDevice(), TakesAll);
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_EQ(GetErrorInfo(status).details["field"], "workload.dims[K]");

  DeviceFingerprint gpu = CpuDevice();
  gpu.kind = DeviceKind::kCuda;
  EXPECT_TRUE(absl::IsUnimplemented(Admit(MatMul(), gpu, TakesAll)));
}

TEST(Admission, ListsEachFamilysReason) {
  const auto refuses = [](const Workload&, const DeviceFingerprint&,
                          std::map<std::string, std::string>* refused) {
    (*refused)["contraction"] = "two outputs";
    return absl::UnimplementedError("no family takes it: contraction: two outputs");
  };
  const absl::Status status = Admit(MatMul(), CpuDevice(), refuses);
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_EQ(ReasonOf(status), "NO_FAMILY");
  EXPECT_EQ(GetErrorInfo(status).details["refused_contraction"], "two outputs");
}

TEST(Admission, ChecksPriorityAndRequestId) {
  EXPECT_TRUE(CheckRequest(0, "").ok());
  EXPECT_TRUE(CheckRequest(-1000, "6f1c1a52-9d0b-4a53-8f6c-0a8ad5bb6e1b").ok());
  EXPECT_EQ(GetErrorInfo(CheckRequest(1001, "")).details["allowed"], "-1000..1000");
  EXPECT_FALSE(CheckRequest(0, "two words").ok());
  EXPECT_FALSE(CheckRequest(0, std::string(129, 'a')).ok());
}

class Devices : public ::testing::Test {
 protected:
  Devices() {
    other_.threads = other_.cores = 8;
    other_.name = "AMD EPYC 9";
    simulated_.backing = Backing::kSimulated;
    simulated_.kind = DeviceKind::kCuda;
    simulated_.architecture = "sm_90";
    simulated_.name = "H100";
  }
  const DeviceFingerprint cpu_ = CpuDevice();
  DeviceFingerprint other_ = CpuDevice(), simulated_ = CpuDevice();
};

TEST_F(Devices, CpuMeansTheConnectedOneElseTheRememberedOne) {
  EXPECT_EQ(DeviceId(*ResolveDevice("cpu", {cpu_}, {other_})), DeviceId(cpu_));
  EXPECT_EQ(DeviceId(*ResolveDevice("", {}, {other_, simulated_})), DeviceId(other_));
  const absl::Status none = ResolveDevice("cpu", {}, {}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(none));
  EXPECT_EQ(ReasonOf(none), "NO_WORKER_FOR_DEVICE");
}

TEST_F(Devices, DifferentFingerprintsAreAmbiguousAndListed) {
  const absl::Status status = ResolveDevice("cpu", {cpu_, other_}, {}).status();
  EXPECT_EQ(ReasonOf(status), "AMBIGUOUS_DEVICE");
  EXPECT_THAT(GetErrorInfo(status).details["allowed"], HasSubstr(DeviceId(cpu_)));
  EXPECT_THAT(GetErrorInfo(status).details["allowed"], HasSubstr(DeviceId(other_)));
}

TEST_F(Devices, IdsLinesNamesAndArchitecturesNameADevice) {
  const std::vector<DeviceFingerprint> all = {cpu_, simulated_};
  EXPECT_EQ(*ResolveDevice(DeviceId(cpu_), all, {}), cpu_);
  EXPECT_EQ(*ResolveDevice(Print(cpu_), all, {}), cpu_);
  EXPECT_EQ(*ResolveDevice("amd epyc", all, {}), cpu_);
  EXPECT_EQ(*ResolveDevice("x86-64", all, {}), cpu_);
  EXPECT_EQ(*ResolveDevice("sim:sm_90:H100", all, {}), simulated_);
  EXPECT_EQ(*ResolveDevice("sim:sm_90", all, {}), simulated_);
}

TEST_F(Devices, ASimulatedDeviceNeverAnswersForTheOneThatItImitates) {
  EXPECT_FALSE(ResolveDevice("H100", {simulated_}, {}).ok());
  EXPECT_FALSE(ResolveDevice("sm_90", {simulated_}, {}).ok());
  EXPECT_FALSE(ResolveDevice("cuda:any", {simulated_}, {}).ok());
}

TEST_F(Devices, AnUnknownNameIsRefusedWithWhatIsKnown) {
  const absl::Status status = ResolveDevice("gpu9000", {cpu_}, {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(ReasonOf(status), "UNKNOWN_DEVICE");
  EXPECT_THAT(GetErrorInfo(status).details["allowed"], HasSubstr(DeviceId(cpu_)));
  EXPECT_TRUE(absl::IsUnimplemented(ResolveDevice("cuda:any", {cpu_}, {}).status()));
  EXPECT_TRUE(absl::IsUnimplemented(ResolveDevice("sim:sm_90:H100", {cpu_}, {}).status()));
}

TEST(ExplainMiss, SaysTheKeyTheCommandAndWhatComesClose) {
  Question question;
  question.workload = std::make_shared<const Workload>(MatMul());
  question.device = CpuDevice(2);
  question.key = {question.workload->signature, DeviceId(question.device), Objective{}, 0};
  Job elsewhere = Proposal(*question.workload, CpuDevice(8));
  Record near = RecordFor(elsewhere, *question.workload);
  near.id = "rec-1";
  const absl::Status status = ExplainMiss(question, {}, {near});
  EXPECT_TRUE(absl::IsNotFound(status));
  ErrorInfo info = GetErrorInfo(status);
  EXPECT_EQ(info.reason, "NOT_TUNED");
  EXPECT_EQ(info.details["signature"], question.key.signature);
  EXPECT_EQ(
      info.details["command"],
      absl::StrCat("kiln tune MatMul.kiln --dims K=32,M=64,N=48 --objective warm,burst --device ",
                   question.key.device));
  EXPECT_THAT(info.details["nearest_1"],
              HasSubstr("rec-1: cores 8, asked 2 (blocking); threads 8, asked 2 (blocking)"));
}

TEST(ExplainMiss, AStaleRecordIsNamedWithItsReasons) {
  Question question;
  question.workload = std::make_shared<const Workload>(MatMul());
  question.device = CpuDevice();
  question.key = {question.workload->signature, DeviceId(question.device), Objective{}, 0};
  auto record = std::make_shared<Record>(
      RecordFor(Proposal(*question.workload, question.device), *question.workload));
  record->id = "rec-9";
  const absl::Status status =
      ExplainMiss(question, {Match::kStale, record, {"toolchain: stored a, today b"}}, {});
  EXPECT_EQ(ReasonOf(status), "STALE");
  EXPECT_EQ(GetErrorInfo(status).details["record"], "rec-9");
  EXPECT_THAT(GetErrorInfo(status).details["stale_because"], HasSubstr("toolchain"));
}

}  // namespace
}  // namespace kiln::server
