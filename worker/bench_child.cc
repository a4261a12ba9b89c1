// SPDX-License-Identifier: Apache-2.0
#include "worker/bench_child.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/runtime/module.h"
#include "proto/contract/error.h"
#include "worker/bench_fault.h"
#include "worker/bench_plan.h"
#include "worker/bench_protocol.h"
#include "worker/conditions.h"
#include "worker/measure/stages.h"
#include "worker/processor_limit.h"
#include "worker/verify/verify.h"

namespace kiln::worker {
namespace {

// Warm-up before samples. `sustained` means what a machine does after it has run hot for a while.
constexpr int64_t kBurstWarmUpNs = 25'000'000, kSustainedWarmUpNs = 500'000'000;
constexpr int64_t kContestWarmUpNs = 150'000'000, kSustainedContestWarmUpNs = 2'000'000'000;
// By then the clock has settled, or it never will.
constexpr int64_t kLongestWarmUpNs = 1'000'000'000, kSustainedLongestWarmUpNs = 8'000'000'000;
constexpr int64_t kBurstSampleNs = 1'000'000, kSustainedSampleNs = 20'000'000;
// Of processor time, beyond what the worker's own limits let pass: those come first.
constexpr double kSpareSeconds = 20;
// What calibrating may take besides the samples.
constexpr double kCalibrationNs = 1e9;

struct Channel {
  int in, out;
  void Send(FrameType type, std::string payload) const {
    // Nobody is there to be told if this fails: the worker is gone, and the supervisor about to end
    // us.
    SendFrame(out, {static_cast<uint32_t>(type), std::move(payload)}, absl::InfiniteFuture(),
              nullptr)
        .IgnoreError();
  }
};

// One workload, and all that is kept for its candidates.
class Session {
 public:
  static absl::StatusOr<std::unique_ptr<Session>> Open(const Channel& channel, SetupRequest setup,
                                                       ReadyAnswer* ready);
  ~Session() {
    entrants_.clear();
    if (pool_ != nullptr) kiln_pool_destroy(pool_);
  }

  absl::StatusOr<TriedAnswer> Try(const TryRequest& request);
  absl::StatusOr<EnteredAnswer> Enter(const EnterRequest& request);
  absl::StatusOr<ContestedAnswer> Contest(const ContestRequest& request);

 private:
  Session(const Channel& channel, SetupRequest setup)
      : channel_(channel), setup_(std::move(setup)), clock_(MakeRawClock()) {}
  absl::StatusOr<verify::VerifyResult> Verify(const BenchPlan& plan, verify::Depth depth,
                                              int64_t launch_limit_ns, int64_t* too_slow_ns);
  void Phase(PhaseNote::Kind kind, double expected_ns = 0) const;
  std::unique_ptr<Sampler> MakeSampler(std::function<bool()> launch);
  bool sustained() const { return setup_.objective.burst == Burst::kSustained; }

  const Channel& channel_;
  SetupRequest setup_;
  Workload workload_;
  kiln_pool* pool_ = nullptr;
  kiln::runtime::Module reference_code_;
  std::unique_ptr<verify::ReferenceCache> references_;
  std::unique_ptr<BenchBuffers> buffers_;
  std::unique_ptr<CacheChiller> chiller_;
  std::unique_ptr<Clock> clock_;
  std::vector<std::unique_ptr<BenchPlan>> entrants_;
};

absl::StatusOr<std::unique_ptr<Session>> Session::Open(const Channel& channel, SetupRequest setup,
                                                       ReadyAnswer* ready) {
  std::unique_ptr<Session> session(new Session(channel, std::move(setup)));
  session->Phase(PhaseNote::kReference);
  const SetupRequest& s = session->setup_;
  KILN_ASSIGN_OR_RETURN(session->workload_, CheckWorkload(s.spec));
  if (kiln_pool_create(s.threads, /*pin=*/1, &session->pool_) != KILN_OK)
    return absl::ResourceExhaustedError(kiln_error());
  if (session->reference_code_.Load(Sha256Hex(s.reference), s.reference.data(),
                                    s.reference.size()) != KILN_OK) {
    return absl::InternalError(absl::StrCat("the reference: ", kiln_error()));
  }
  using Entry = int (*)(const void* const*, double* const*, double* const*, int);
  const auto entry = reinterpret_cast<Entry>(
      reinterpret_cast<void*>(session->reference_code_.FindEntry("kiln_reference")));
  if (entry == nullptr) return absl::InternalError("the reference has no entry kiln_reference");
  session->references_ = std::make_unique<verify::ReferenceCache>(
      session->workload_, entry, verify::ReferenceOptions{s.seed, s.threads, s.directory});
  const int64_t start = session->clock_->NowNs();
  const std::vector<verify::SetKind> kinds = verify::SetKinds(session->workload_);
  for (const verify::SetKind kind : {verify::SetKind::kSmallInteger, verify::SetKind::kRandom}) {
    KILN_RETURN_IF_ERROR(session->references_->Get(kind).status());
  }
  ready->reference_ns = session->clock_->NowNs() - start;
  ready->sets = static_cast<int64_t>(kinds.size());
  if (const char* library = kiln_library_identity("openblas")) ready->library = library;
  KILN_ASSIGN_OR_RETURN(BenchBuffers buffers, BenchBuffers::Make(session->workload_, s.seed));
  session->buffers_ = std::make_unique<BenchBuffers>(std::move(buffers));
  if (s.objective.cache == CacheState::kCold)
    session->chiller_ = std::make_unique<CacheChiller>(s.last_level_bytes);
  return session;
}

// Tells the worker, whose clock starts anew, and starts this process's own.
void Session::Phase(PhaseNote::Kind kind, double expected_ns) const {
  channel_.Send(FrameType::kPhase, Encode(PhaseNote{kind, expected_ns}));
  const int64_t limit_ns =
      kind == PhaseNote::kReference ? setup_.reference_limit_ns : setup_.launch_limit_ns;
  if (limit_ns <= 0) return;
  const double wall = 1e-9 * (static_cast<double>(limit_ns) + expected_ns);
  LimitProcessorTime(wall * std::max(1, setup_.threads) + kSpareSeconds);
}

std::unique_ptr<Sampler> Session::MakeSampler(std::function<bool()> launch) {
  SamplerOptions options{.objective = setup_.objective, .floor_ns = setup_.floor_ns};
  options.min_sample_ns = sustained() ? kSustainedSampleNs : kBurstSampleNs;
  options.one_by_one = buffers_->in_place();
  const auto prepare = [this] {
    buffers_->Restore();
    if (chiller_ != nullptr) (*chiller_)();
  };
  return std::make_unique<Sampler>(clock_.get(), options, std::move(launch), prepare);
}

absl::StatusOr<verify::VerifyResult> Session::Verify(const BenchPlan& plan, verify::Depth depth,
                                                     int64_t launch_limit_ns,
                                                     int64_t* too_slow_ns) {
  *too_slow_ns = 0;
  const verify::Launch launch = [&](const std::vector<void*>& tensors) -> absl::Status {
    Phase(PhaseNote::kLaunch);
    KILN_RETURN_IF_ERROR(plan.Prepack(tensors.data()));
    const int64_t start = clock_->NowNs();
    absl::Status status = plan.Launch(tensors.data());
    const int64_t spent = clock_->NowNs() - start;
    Phase(PhaseNote::kReference);  // judging is not the candidate's time
    if (status.ok() && launch_limit_ns > 0 && spent > launch_limit_ns) {
      *too_slow_ns = spent;
      return absl::DeadlineExceededError("too slow to be verified further");
    }
    return status;
  };
  return verify::VerifyPlan(workload_, *references_, launch, depth);
}

Stage StageOf(const absl::Status& status) {
  return absl::IsResourceExhausted(status) ? Stage::kResources : Stage::kLaunch;
}

absl::StatusOr<TriedAnswer> Session::Try(const TryRequest& request) {
  TriedAnswer answer;
  Phase(PhaseNote::kLaunch);
  const absl::StatusOr<std::unique_ptr<BenchPlan>> plan = BenchPlan::Load(request.files, pool_);
  if (!plan.ok())
    return TriedAnswer{.stage = StageOf(plan.status()),
                       .reason = std::string(plan.status().message())};
  const int64_t start = clock_->NowNs();
  int64_t too_slow_ns = 0;
  KILN_ASSIGN_OR_RETURN(
      const verify::VerifyResult verified,
      Verify(**plan, verify::Depth::kScreen, request.launch_limit_ns, &too_slow_ns));
  answer.verify_ns = clock_->NowNs() - start;
  if (too_slow_ns > 0) {
    answer.stage = Stage::kTooSlow;
    answer.reason = absl::StrCat("one launch took ", too_slow_ns / 1000, " us, the best so far ",
                                 static_cast<int64_t>(request.best_ns / 1000), " us");
    return answer;
  }
  answer.stage = verified.stage, answer.reason = verified.reason;
  if (!verified.ok()) return answer;

  const auto launch = [&] { return (*plan)->Launch(buffers_->tensors()).ok(); };
  const auto warm = [&] {
    buffers_->Restore();
    return launch();
  };
  Phase(PhaseNote::kMeasure, 2 * request.total_ns + kCalibrationNs);
  if (const absl::Status packed = (*plan)->Prepack(buffers_->tensors()); !packed.ok()) {
    return TriedAnswer{.stage = StageOf(packed), .reason = std::string(packed.message())};
  }
  const std::unique_ptr<Sampler> sampler = MakeSampler(launch);
  SearchPolicy policy{.best_ns = request.best_ns,
                      .warm_up_ns = sustained() ? kSustainedWarmUpNs : kBurstWarmUpNs};
  policy.refine = {.min_samples = kScreenSamples,
                   .max_samples = request.max_samples,
                   .half_width = request.half_width,
                   .total_ns = request.total_ns};
  SearchResult result = MeasureForSearch(sampler.get(), clock_.get(), policy, warm);
  answer.measure_ns = clock_->NowNs() - start - answer.verify_ns;
  if (!result.launched)
    return TriedAnswer{
        .stage = Stage::kLaunch, .reason = kiln_error(), .verify_ns = answer.verify_ns};
  if (result.measurement.samples == 0) {
    answer.stage = Stage::kLaunch;
    answer.reason = absl::StrCat(
        "no valid time: every sample was rejected (",
        result.measurement.rejected.count("impossible") ? "faster than the device can be" : "timer",
        ")");
    return answer;
  }
  if (result.too_slow) {
    answer.stage = Stage::kTooSlow;
    answer.reason = absl::StrCat("more than ", kHopeless, " times the best after one run");
  }
  AddConditions(&result.measurement, setup_.threads);
  answer.measurement = std::move(result.measurement);
  return answer;
}

absl::StatusOr<EnteredAnswer> Session::Enter(const EnterRequest& request) {
  EnteredAnswer answer;
  Phase(PhaseNote::kLaunch);
  absl::StatusOr<std::unique_ptr<BenchPlan>> plan = BenchPlan::Load(request.files, pool_);
  if (!plan.ok())
    return EnteredAnswer{.stage = StageOf(plan.status()),
                         .reason = std::string(plan.status().message())};
  const int64_t start = clock_->NowNs();
  int64_t too_slow_ns = 0;
  KILN_ASSIGN_OR_RETURN(const verify::VerifyResult verified,
                        Verify(**plan, verify::Depth::kFull, 0, &too_slow_ns));
  answer.verify_ns = clock_->NowNs() - start;
  answer.stage = verified.stage, answer.reason = verified.reason,
  answer.verification = verified.verification;
  if (verified.ok()) entrants_.push_back(*std::move(plan));
  return answer;
}

absl::StatusOr<ContestedAnswer> Session::Contest(const ContestRequest& request) {
  Phase(PhaseNote::kMeasure, 3 * request.total_ns +
                                 kCalibrationNs * static_cast<double>(entrants_.size()) +
                                 kSustainedLongestWarmUpNs);
  const double clock_before = ProbeClockMhz();
  std::vector<std::unique_ptr<Sampler>> samplers;
  std::vector<Sampler*> all;
  WarmUp warm_up;
  for (size_t i = 0; i < entrants_.size(); ++i) {
    const auto launch = [this, i] {
      launched_entrant.store(static_cast<int>(i), std::memory_order_relaxed);
      return entrants_[i]->Launch(buffers_->tensors()).ok();
    };
    KILN_RETURN_IF_ERROR(entrants_[i]->Prepack(buffers_->tensors()));
    if (i == 0) {
      const auto warm = [&] {
        buffers_->Restore();
        return launch();
      };
      warm_up = sustained() ? WarmUntilSettled(clock_.get(), kSustainedContestWarmUpNs,
                                               kSustainedLongestWarmUpNs, warm, ProbeClockMhz)
                            : WarmUntilSettled(clock_.get(), kContestWarmUpNs, kLongestWarmUpNs,
                                               warm, ProbeClockMhz);
      if (!warm_up.launched) return absl::InternalError(kiln_error());
    }
    samplers.push_back(MakeSampler(launch));
    all.push_back(samplers.back().get());
    if (!samplers.back()->Calibrate()) return absl::InternalError(kiln_error());
  }
  ContestedAnswer answer;
  answer.rounds_ns = Interleave(all, clock_.get(),
                                {.min_rounds = request.min_rounds,
                                 .max_rounds = request.max_rounds,
                                 .half_width = request.half_width,
                                 .total_ns = request.total_ns},
                                [] { return false; });
  launched_entrant.store(-1, std::memory_order_relaxed);
  const double clock_after = ProbeClockMhz();
  for (const auto& sampler : samplers) {
    Measurement measurement = sampler->Finish();
    AddConditions(&measurement, setup_.threads);
    measurement.conditions["warm_up_ms"] = absl::StrCat(warm_up.spent_ns / 1'000'000);
    measurement.conditions["clock_settled"] = warm_up.settled ? "yes" : "no";
    measurement.conditions["clock_mhz_before"] = absl::StrCat(static_cast<int>(clock_before));
    measurement.conditions["clock_mhz_after"] = absl::StrCat(static_cast<int>(clock_after));
    answer.measurements.push_back(std::move(measurement));
  }
  return answer;
}

// Answers one request; `session` is made by the first one.
template <typename Request, typename Handle>
void Answer(const Channel& channel, const std::string& payload, FrameType type, Handle handle) {
  const std::optional<Request> request = Decode<Request>(payload);
  absl::Status status = absl::InvalidArgumentError("malformed request");
  if (request) {
    auto answer = handle(*request);
    if (answer.ok()) return channel.Send(type, Encode(*answer));
    status = answer.status();
  }
  channel.Send(FrameType::kError,
               Encode(ErrorAnswer{static_cast<int>(status.code()), std::string(status.message())}));
}

}  // namespace

int RunBenchChild() {
  // The answers' descriptor is ours alone: what a kernel prints goes where stderr goes.
  const Channel channel{fcntl(0, F_DUPFD_CLOEXEC, 10), fcntl(1, F_DUPFD_CLOEXEC, 10)};
  dup2(2, 1);
  close(0);
  ReportFaultsTo(channel.out);
  std::unique_ptr<Session> session;
  while (true) {
    const absl::StatusOr<Frame> frame = ReceiveFrame(channel.in, absl::InfiniteFuture(), nullptr);
    if (!frame.ok()) return 0;
    const FrameType type = static_cast<FrameType>(frame->type);
    if (type == FrameType::kSetup) {
      Answer<SetupRequest>(channel, frame->payload, FrameType::kReady,
                           [&](const SetupRequest& setup) -> absl::StatusOr<ReadyAnswer> {
                             ReadyAnswer ready;
                             session.reset();
                             KILN_ASSIGN_OR_RETURN(session, Session::Open(channel, setup, &ready));
                             return ready;
                           });
      continue;
    }
    if (session == nullptr) return 1;
    if (type == FrameType::kTry) {
      Answer<TryRequest>(channel, frame->payload, FrameType::kTried,
                         [&](const auto& r) { return session->Try(r); });
    } else if (type == FrameType::kEnter) {
      Answer<EnterRequest>(channel, frame->payload, FrameType::kEntered,
                           [&](const auto& r) { return session->Enter(r); });
    } else if (type == FrameType::kContest) {
      Answer<ContestRequest>(channel, frame->payload, FrameType::kContested,
                             [&](const auto& r) { return session->Contest(r); });
    } else {
      return 1;
    }
  }
}

}  // namespace kiln::worker
