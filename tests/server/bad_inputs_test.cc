// SPDX-License-Identifier: Apache-2.0
// What may be wrong with a request, each with the code, the field, the value and what is allowed.
// Nothing of it starts a job or hurts the server.
#include <gmock/gmock.h>

#include "proto/wire.h"
#include "tests/server/service_fixture.h"

namespace kiln::server {
namespace {

using ::testing::HasSubstr;

using Request = v1::TuneScheduleRequest;

struct BadInput {
  const char* what;
  absl::StatusCode code;
  const char* reason;  // "": any, but one there must be
  const char* field;   // a part of it
  std::function<void(Request*)> spoil;
};

v1::WorkloadSpec* SpecOf(Request* request) {
  return request->mutable_selection()->mutable_workload();
}

const BadInput kBadInputs[] = {
    {"nothing at all", absl::StatusCode::kInvalidArgument, "MISSING_PROGRAM", "workload.program",
     [](Request* r) { r->clear_selection(); }},
    {"a syntax error", absl::StatusCode::kInvalidArgument, "", "",
     [](Request* r) {
       SpecOf(r)->set_program("operator MatMul(M, N, K) {\n  input A[M,K] B[K,N];\n}");
     }},
    {"an unknown operator", absl::StatusCode::kInvalidArgument, "", "",
     [](Request* r) {
       SpecOf(r)->set_program("operator F(M) { input x[M]; output y[M] = frobnicate(x); }");
     }},
    {"a program too long", absl::StatusCode::kInvalidArgument, "", "",
     [](Request* r) { SpecOf(r)->set_program(std::string(70'000, ' ') + SpecOf(r)->program()); }},
    {"an unbound dim", absl::StatusCode::kInvalidArgument, "", "",
     [](Request* r) { SpecOf(r)->mutable_dims()->erase("K"); }},
    {"a negative dim", absl::StatusCode::kInvalidArgument, "", "",
     [](Request* r) {
       (*SpecOf(r)->mutable_dims())["K"].set_lo(-1), (*SpecOf(r)->mutable_dims())["K"].set_hi(-1);
     }},
    {"a range upside down", absl::StatusCode::kInvalidArgument, "", "",
     [](Request* r) {
       (*SpecOf(r)->mutable_dims())["K"].set_lo(9), (*SpecOf(r)->mutable_dims())["K"].set_hi(3);
     }},
    {"dims whose product overflows", absl::StatusCode::kInvalidArgument, "", "",
     [](Request* r) {
       for (const char* dim : {"M", "N", "K"}) {
         (*SpecOf(r)->mutable_dims())[dim].set_lo(int64_t{1} << 39);
         (*SpecOf(r)->mutable_dims())[dim].set_hi(int64_t{1} << 39);
       }
     }},
    {"a dim that is not in the head", absl::StatusCode::kInvalidArgument, "", "",
     [](Request* r) {
       (*SpecOf(r)->mutable_dims())["Q"].set_lo(4), (*SpecOf(r)->mutable_dims())["Q"].set_hi(4);
     }},
    {"an unknown type", absl::StatusCode::kInvalidArgument, "UNKNOWN_TYPE", "workload.types[A]",
     [](Request* r) { (*SpecOf(r)->mutable_types())["A"] = "f17"; }},
    {"a type of an unknown tensor", absl::StatusCode::kInvalidArgument, "", "",
     [](Request* r) { (*SpecOf(r)->mutable_types())["Z"] = "f32"; }},
    {"strides that make outputs overlap", absl::StatusCode::kInvalidArgument, "", "",
     [](Request* r) {
       (*SpecOf(r)->mutable_strides())["C"].add_elements(1),
           (*SpecOf(r)->mutable_strides())["C"].add_elements(1);
     }},
    {"an alignment that is none", absl::StatusCode::kInvalidArgument, "", "",
     [](Request* r) { (*SpecOf(r)->mutable_alignment())["A"] = 3; }},
    {"an alias of nothing", absl::StatusCode::kInvalidArgument, "", "",
     [](Request* r) { (*SpecOf(r)->mutable_alias())["C"] = "nothing"; }},
    {"an accumulator type that is unknown", absl::StatusCode::kInvalidArgument, "UNKNOWN_TYPE",
     "policy.accumulate[C]",
     [](Request* r) { (*SpecOf(r)->mutable_policy()->mutable_accumulate())["C"] = "float"; }},
    {"an unknown device", absl::StatusCode::kInvalidArgument, "UNKNOWN_DEVICE", "device",
     [](Request* r) { r->mutable_selection()->set_device("gpu9000"); }},
    {"a device that is not built", absl::StatusCode::kUnimplemented, "DEVICE_NOT_BUILT", "device",
     [](Request* r) { r->mutable_selection()->set_device("cuda:any"); }},
    {"an objective of a later version", absl::StatusCode::kInvalidArgument, "BAD_ENUM",
     "objective.cache",
     [](Request* r) {
       r->mutable_selection()->mutable_objective()->set_cache(static_cast<v1::Objective_Cache>(7));
     }},
    {"another signature", absl::StatusCode::kInvalidArgument, "SIGNATURE_MISMATCH",
     "selection.signature",
     [](Request* r) { r->mutable_selection()->set_signature(std::string(64, '0')); }},
    {"a negative number of trials", absl::StatusCode::kInvalidArgument, "OUT_OF_RANGE",
     "budget.trials", [](Request* r) { r->mutable_budget()->set_trials(-5); }},
    {"a negative duration", absl::StatusCode::kInvalidArgument, "OUT_OF_RANGE", "budget.duration",
     [](Request* r) { r->mutable_budget()->mutable_duration()->set_seconds(-1); }},
    {"a priority out of range", absl::StatusCode::kInvalidArgument, "OUT_OF_RANGE", "priority",
     [](Request* r) { r->set_priority(5000); }},
    {"a request_id that is none", absl::StatusCode::kInvalidArgument, "BAD_REQUEST_ID",
     "request_id", [](Request* r) { r->set_request_id("two words"); }},
    {"a dynamic dim", absl::StatusCode::kUnimplemented, "DYNAMIC_DIMS", "workload.dims[K]",
     [](Request* r) { (*SpecOf(r)->mutable_dims())["K"].set_hi(4096); }},
    {"more than the device's memory", absl::StatusCode::kResourceExhausted, "WORKLOAD_TOO_LARGE",
     "workload",
     [](Request* r) {
       for (const char* dim : {"M", "N"}) {
         (*SpecOf(r)->mutable_dims())[dim].set_lo(200'000);
         (*SpecOf(r)->mutable_dims())[dim].set_hi(200'000);
       }
     }},
};

class BadInputs : public ServiceTest {};

TEST_F(BadInputs, EachIsRefusedAtSubmissionWithCodeFieldValueAndWhatIsAllowed) {
  const auto worker = MakeWorker();
  for (const BadInput& bad : kBadInputs) {
    SCOPED_TRACE(bad.what);
    Request request = TuneRequest();
    bad.spoil(&request);
    const auto refused = Tune(request);
    ASSERT_FALSE(refused.ok());
    const absl::Status& status = refused.status();
    EXPECT_EQ(status.code(), bad.code) << status;
    EXPECT_FALSE(status.message().empty());
    const std::string reason = ReasonOf(status);
    EXPECT_FALSE(reason.empty() || reason == "INVALID_ARGUMENT") << reason;
    if (*bad.reason != 0) {
      EXPECT_EQ(reason, bad.reason) << status;
    }
    EXPECT_THAT(DetailOf(status, "field"), HasSubstr(bad.field)) << status;
    if (*bad.field != 0) {
      EXPECT_FALSE(DetailOf(status, "allowed").empty()) << status;
    }
  }
  EXPECT_TRUE(store_.ListJobs(false, {})->items.empty());
  EXPECT_TRUE(Tune(TuneRequest()).ok()) << "the server is as it was";
}

TEST_F(BadInputs, LookupsAreRefusedAlike) {
  const auto worker = MakeWorker();
  v1::GetScheduleRequest request = GetRequest();
  request.mutable_selection()->mutable_workload()->mutable_dims()->erase("K");
  EXPECT_TRUE(absl::IsInvalidArgument(Get(request).status()));
  request = GetRequest();
  request.set_min_quality(v1::MATCH_NEAR);
  EXPECT_TRUE(absl::IsUnimplemented(Get(request).status()));
  EXPECT_EQ(DetailOf(Get(request).status(), "allowed"), "exact, stale");
  request.set_min_quality(static_cast<v1::Match>(99));
  EXPECT_EQ(DetailOf(Get(request).status(), "field"), "min_quality");
}

TEST_F(BadInputs, ALongErrorStillFitsIntoEveryClientsMetadata) {
  const auto worker = MakeWorker();
  Request request = TuneRequest();
  std::string program = "operator F(M) {\n  input x[M];\n  output y[M];\n";
  for (int i = 0; i < 200; ++i) absl::StrAppend(&program, "  t", i, " = nothing", i, " + x;\n");
  SpecOf(&request)->set_program(program + "  y = x;\n}\n");
  SpecOf(&request)->mutable_dims()->erase("N");
  SpecOf(&request)->mutable_dims()->erase("K");
  const auto refused = Tune(request);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("nothing0"));
}

TEST_F(BadInputs, NoWorkerMeansWaitDuringTheGraceAndAPreconditionAfterIt) {
  const auto none = Tune(TuneRequest());
  EXPECT_TRUE(absl::IsFailedPrecondition(none.status())) << none.status();
  EXPECT_EQ(ReasonOf(none.status()), "NO_WORKER_FOR_DEVICE");
  EXPECT_TRUE(absl::IsNotFound(Get(GetRequest()).status())) << "to a lookup it is a miss";
  StopServer();
  options_.worker_grace = absl::Hours(1);
  StartServer();
  const auto early = Tune(TuneRequest());
  EXPECT_TRUE(absl::IsUnavailable(early.status()));
  EXPECT_FALSE(DetailOf(early.status(), "retry_after_seconds").empty());
}

TEST_F(BadInputs, FullQueuesSayWhenToComeBack) {
  StopServer();
  options_.jobs.max_jobs = 1;
  StartServer();
  const auto worker = MakeWorker();
  ASSERT_TRUE(Tune(TuneRequest()).ok());
  const auto full = Tune(TuneRequest(65));
  EXPECT_TRUE(absl::IsResourceExhausted(full.status()));
  EXPECT_EQ(ReasonOf(full.status()), "QUEUE_FULL");
  EXPECT_EQ(DetailOf(full.status(), "retry_after_seconds"), "10");
  EXPECT_TRUE(Tune(TuneRequest()).ok()) << "joining takes no place";
}

}  // namespace
}  // namespace kiln::server
