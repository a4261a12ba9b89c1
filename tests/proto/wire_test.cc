// SPDX-License-Identifier: Apache-2.0
#include "proto/wire.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "kiln/v1/types.pb.h"
#include "proto/contract/error.h"
#include "tests/server/samples.h"

namespace kiln {
namespace {

using server::CpuDevice;
using server::MatMul;
using server::MatMulSpec;
using server::Proposal;
using server::RecordFor;
using ::testing::HasSubstr;

// Value -> message -> value -> message: both messages are the same.
template <typename Message, typename Value, typename... Args>
void ExpectRoundTrip(const Value& value, Args... args) {
  Message message, again;
  wire::ToWire(value, &message);
  const auto back = wire::FromWire(message, args...);
  ASSERT_TRUE(back.ok()) << back.status();
  wire::ToWire(*back, &again);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(message, again))
      << message.ShortDebugString() << "\n"
      << again.ShortDebugString();
}

WorkloadSpec FullSpec() {
  WorkloadSpec spec = MatMulSpec(3, 4, 5);
  spec.dims["K"] = {1, 4096};
  spec.types = {{"A", DType::kF16}};
  spec.strides = {{"A", {600, 1}}, {"s", {}}};
  spec.alignment = {{"A", 4}};
  spec.alias = {{"C", "D"}};
  spec.policy = {{{"C", DType::kF16}}, true, true, true, true, false};
  return spec;
}

TEST(Wire, SpecsAndDevicesSurviveTheWay) {
  v1::WorkloadSpec message;
  wire::ToWire(FullSpec(), &message);
  EXPECT_EQ(*wire::FromWire(message), FullSpec());
  v1::Device device;
  wire::ToWire(CpuDevice(), &device);
  EXPECT_EQ(device.id(), DeviceId(CpuDevice()));
  EXPECT_EQ(*wire::FromWire(device), CpuDevice());
}

TEST(Wire, RecordsOutcomesAndJobsSurviveTheWay) {
  const Workload workload = MatMul();
  Job job = Proposal(workload, CpuDevice());
  Record record = RecordFor(job, workload);
  record.id = "rec-0123456789abcdef";
  record.contest = {{"incumbent", 1.02}};
  record.trials = {{"measured", 4}};
  record.created = absl::FromUnixNanos(1'900'000'000'123'456'789);
  record.plan.steps[0].arguments.push_back({ArgumentKind::kScalar, 0, 0, false, true, 0.5});
  record.plan.steps[0].arguments.push_back({ArgumentKind::kScalar, 0, 0, false, false, 0, -7});
  record.plan.steps[0].grid[1].expression = "($0+127)/128";
  record.measurement.samples_ns = {1, 2, 3};
  ExpectRoundTrip<v1::Record>(record, "record");
  v1::Record message;
  wire::ToWire(record, &message);
  EXPECT_EQ(message.name(), "records/rec-0123456789abcdef");
  const auto back = wire::FromWire(message);
  EXPECT_EQ(back->plan, record.plan);
  EXPECT_EQ(back->key, record.key);
  EXPECT_EQ(back->created, record.created);
  ExpectRoundTrip<v1::Outcome>(server::Measured(3), "outcome");
  ExpectRoundTrip<v1::Outcome>(server::Failed(3, Stage::kTooSlow, "1000x"), "outcome");
  job.name = "jobs/1";
  job.losses = {"workers/a: gone"};
  job.histogram = {{"crash", 2}};
  job.progress.failed = {{"crash", 2}};
  job.started = absl::FromUnixSeconds(5);
  ExpectRoundTrip<v1::Job>(job, "job");
}

TEST(Wire, ABudgetTakesWhatIsAbsentFromTheDefaults) {
  const Budget defaults{77, 33, 5, 44};
  v1::Budget message;
  Budget budget = *wire::FromWire(message, defaults);
  EXPECT_EQ(budget, (Budget{77, 33, 0, 44}));
  message.set_trials(3);
  message.set_seed(8);
  message.mutable_duration()->set_nanos(500'000'000);
  budget = *wire::FromWire(message, defaults);
  EXPECT_EQ(budget, (Budget{3, 0.5, 8, 44}));
}

TEST(Wire, AnObjectiveTakesWhatIsUnspecifiedFromTheFallback) {
  v1::Objective message;
  message.set_burst(v1::Objective::BURST_SUSTAINED);
  const Objective cold{CacheState::kCold, Burst::kBurst};
  EXPECT_EQ(*wire::FromWire(message, cold), (Objective{CacheState::kCold, Burst::kSustained}));
  EXPECT_EQ(wire::DefaultObjective(DeviceKind::kCpu).cache, CacheState::kWarm);
  EXPECT_EQ(wire::DefaultObjective(DeviceKind::kCuda).cache, CacheState::kCold);
}

TEST(Wire, WhatAMessageGetsWrongIsNamed) {
  const auto field = [](const absl::Status& status) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return GetErrorInfo(status).details["field"];
  };
  v1::Device device;
  wire::ToWire(CpuDevice(), &device);
  device.set_kind(v1::DEVICE_KIND_UNSPECIFIED);
  EXPECT_EQ(field(wire::FromWire(device, "worker.device").status()), "worker.device.kind");
  wire::ToWire(CpuDevice(), &device);
  device.set_l2_bytes(-1);
  EXPECT_EQ(field(wire::FromWire(device).status()), "device.l2_bytes");
  const Workload workload = MatMul();
  const Record good = RecordFor(Proposal(workload, CpuDevice()), workload);
  v1::Record record;
  wire::ToWire(good, &record);
  record.mutable_plan()->mutable_steps(0)->mutable_grid()->RemoveLast();
  EXPECT_EQ(field(wire::FromWire(record).status()), "record.plan.steps[0].grid");
  wire::ToWire(good, &record);
  record.mutable_plan()->mutable_steps(0)->mutable_arguments(1)->set_kind(
      static_cast<v1::Argument_Kind>(9));
  EXPECT_EQ(field(wire::FromWire(record).status()), "record.plan.steps[0].arguments[1].kind");
  wire::ToWire(good, &record);
  record.mutable_measurement()->set_median_ns(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(field(wire::FromWire(record).status()), "record.measurement.median_ns");
  wire::ToWire(good, &record);
  record.mutable_objective()->clear_cache();
  EXPECT_EQ(field(wire::FromWire(record).status()), "record.objective.cache");
}

TEST(Wire, ArgumentsAreNamedAsTheAskersProgramNamesThem) {
  const Workload workload = MatMul();
  v1::Plan plan;
  wire::ToWire(RecordFor(Proposal(workload, CpuDevice()), workload).plan, &plan);
  wire::NameArguments(workload, &plan);
  EXPECT_EQ(plan.steps(0).arguments(0).name(), "A");
  EXPECT_EQ(plan.steps(0).arguments(2).name(), "C");
  EXPECT_EQ(plan.tensors(1).name(), "B");
}

// --- status ---

google::rpc::Status Details(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  return details;
}

TEST(WireStatus, CodeReasonAndDetailsSurviveTheWay) {
  const absl::Status status =
      InvalidField("UNKNOWN_TYPE", "workload.types[A]", "f17", "no type", "f32 f16");
  const grpc::Status sent = wire::ToGrpc(status);
  EXPECT_EQ(sent.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const absl::Status back = wire::FromGrpc(sent);
  EXPECT_EQ(back.message(), status.message());
  EXPECT_EQ(GetErrorInfo(back).reason, "UNKNOWN_TYPE");
  EXPECT_EQ(GetErrorInfo(back).details, GetErrorInfo(status).details);
  EXPECT_TRUE(wire::ToGrpc(absl::OkStatus()).ok());
  EXPECT_TRUE(wire::FromGrpc(grpc::Status::OK).ok());
}

TEST(WireStatus, RetryInfoAndPreconditionFailureGoWithTheirCodes) {
  const auto types = [](const absl::Status& status) {
    std::string names;
    const google::rpc::Status sent = Details(wire::ToGrpc(status));
    for (const auto& detail : sent.details()) names += detail.type_url() + " ";
    return names;
  };
  EXPECT_THAT(types(absl::UnavailableError("x")), HasSubstr("google.rpc.RetryInfo"));
  EXPECT_THAT(types(absl::ResourceExhaustedError("x")), HasSubstr("google.rpc.RetryInfo"));
  EXPECT_THAT(types(absl::FailedPreconditionError("x")),
              HasSubstr("google.rpc.PreconditionFailure"));
  EXPECT_THAT(types(absl::NotFoundError("x")), ::testing::Not(HasSubstr("Retry")));
  EXPECT_THAT(types(absl::NotFoundError("x")), HasSubstr("google.rpc.ErrorInfo"));
  const absl::Status wait =
      MakeError(absl::StatusCode::kUnavailable, "x", {"R", {{"retry_after_seconds", "2.5"}}});
  EXPECT_EQ(GetErrorInfo(wire::FromGrpc(wire::ToGrpc(wait))).details["retry_after_seconds"], "2.5");
  const absl::Status never = MakeError(absl::StatusCode::kResourceExhausted, "x",
                                       {"R", {{"retry_after_seconds", "never"}}});
  EXPECT_THAT(types(never), ::testing::Not(HasSubstr("Retry")));
}

TEST(WireStatus, GrpcsOwnErrorsHaveAReasonToo) {
  const absl::Status status =
      wire::FromGrpc(grpc::Status(grpc::StatusCode::UNAVAILABLE, "failed to connect"));
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(GetErrorInfo(status).reason, "UNAVAILABLE");
}

TEST(WireStatus, FitsIntoTheMetadataThatEveryClientTakes) {
  ErrorInfo info{"LONG", {}};
  for (int i = 0; i < 50; ++i) info.details["detail" + std::to_string(i)] = std::string(2000, 'd');
  for (const std::string& text :
       {std::string(100'000, 'm'), std::string(100'000, '\n'), std::string(100'000, '\xc3')}) {
    const grpc::Status status =
        wire::ToGrpc(MakeError(absl::StatusCode::kInvalidArgument, text, info));
    size_t encoded = status.error_details().size() * 4 / 3;
    for (const char c : status.error_message()) encoded += c >= ' ' && c <= '~' ? 1 : 3;
    EXPECT_LE(encoded, 7500u);
    EXPECT_EQ(Details(status).message(), status.error_message());
    EXPECT_THAT(status.error_message(), HasSubstr("bytes cut]"));
  }
}

TEST(WireStatus, TextIsValidUtf8WhateverTheErrorQuoted) {
  const grpc::Status status =
      wire::ToGrpc(MakeError(absl::StatusCode::kInvalidArgument, "stray \xff and half \xe2\x82",
                             {"R", {{"value", "\x80"}}}));
  EXPECT_EQ(status.error_message(), "stray ? and half ??");
  EXPECT_EQ(GetErrorInfo(wire::FromGrpc(status)).details["value"], "?");
  EXPECT_EQ(wire::ToGrpc(absl::InternalError("grüß €")).error_message(), "grüß €");
}

}  // namespace
}  // namespace kiln
