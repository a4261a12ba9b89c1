// SPDX-License-Identifier: Apache-2.0
#include "worker/bench.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/contract/error.h"
#include "worker/bench_child.h"

namespace kiln::worker {
namespace {

// A child whose pipe is closed is dying; if it takes longer than this it is helped.
constexpr absl::Duration kDying = absl::Seconds(2);
// Of its memory limit: a child that dies beyond this share ran out of memory.
constexpr double kMemoryShare = 0.75;

// Of what its limit is on.
int64_t MemoryBytes(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/statm"));
  int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return (kLimitsAddressSpace ? pages : resident) * sysconf(_SC_PAGESIZE);
}

absl::Status NoAnswer(absl::string_view what) {
  return absl::InternalError(absl::StrCat("the bench child answers ", what));
}

template <typename Answer>
absl::StatusOr<Answer> Parse(const Frame& frame) {
  std::optional<Answer> answer = Decode<Answer>(frame.payload);
  if (!answer) return NoAnswer("with a malformed payload");
  return *std::move(answer);
}

}  // namespace

Bench::Bench(BenchOptions options, const TempRoot& root, SetupRequest setup,
             const CancelToken& cancel)
    : options_(std::move(options)), root_(root), setup_(std::move(setup)), cancel_(cancel) {
  setup_.launch_limit_ns = absl::ToInt64Nanoseconds(options_.launch_limit);
  setup_.reference_limit_ns = absl::ToInt64Nanoseconds(options_.reference_limit);
  // Writing to a child that has just died is an error to be handled, not a reason to die as well.
  signal(SIGPIPE, SIG_IGN);
}

absl::Status Bench::Start() {
  ChildOptions options{.supervisor = options_.binary,
                       .command = {options_.binary, kBenchChildFlag},
                       .pipes = true,
                       .temp_root = root_.path(),
                       .memory_bytes = options_.memory_bytes,
                       .isolated = true};
  KILN_ASSIGN_OR_RETURN(child_, Child::Start(options));
  ++starts_;
  absl::StatusOr<std::variant<Frame, Death>> reply =
      Ask(FrameType::kSetup, Encode(setup_), FrameType::kReady, options_.launch_limit);
  KILN_RETURN_IF_ERROR(reply.status());
  if (const Death* death = std::get_if<Death>(&*reply)) {
    // Nothing foreign has run yet but the reference, which is ours.
    return death->stage == Stage::kResources
               ? absl::ResourceExhaustedError(absl::StrCat("the bench child: ", death->reason))
               : absl::InternalError(absl::StrCat("the bench child: ", death->reason));
  }
  KILN_ASSIGN_OR_RETURN(ready_, Parse<ReadyAnswer>(std::get<Frame>(*reply)));
  return absl::OkStatus();
}

absl::StatusOr<ReadyAnswer> Bench::Ready() {
  if (child_ == nullptr) {
    if (absl::Status started = Start(); !started.ok()) {
      child_.reset();
      return started;
    }
  }
  return ready_;
}

absl::StatusOr<std::variant<Frame, Death>> Bench::Ask(FrameType type, std::string payload,
                                                      FrameType answer,
                                                      absl::Duration launch_limit) {
  absl::Duration limit = launch_limit;
  absl::Time deadline = absl::Now() + options_.launch_limit;
  std::optional<FaultNote> note;
  absl::Status sent = SendFrame(child_->input(), {static_cast<uint32_t>(type), std::move(payload)},
                                deadline, &cancel_);
  while (true) {
    absl::StatusOr<Frame> frame = ReceiveFrame(child_->output(), deadline, &cancel_);
    if (absl::IsCancelled(frame.status())) {
      child_.reset();
      return frame.status();
    }
    if (absl::IsDeadlineExceeded(frame.status())) return PutDown(limit);
    if (!frame.ok()) return Autopsy(note);
    const FrameType got = static_cast<FrameType>(frame->type);
    if (got == FrameType::kPhase) {
      KILN_ASSIGN_OR_RETURN(const PhaseNote phase, Parse<PhaseNote>(*frame));
      limit = phase.kind == PhaseNote::kReference ? options_.reference_limit : launch_limit;
      limit += absl::Nanoseconds(phase.expected_ns);
      deadline = absl::Now() + limit;
    } else if (got == FrameType::kFault) {
      note = Decode<FaultNote>(frame->payload);
    } else if (got == FrameType::kError) {
      KILN_ASSIGN_OR_RETURN(const ErrorAnswer error, Parse<ErrorAnswer>(*frame));
      return absl::Status(static_cast<absl::StatusCode>(error.code), error.message);
    } else if (got == answer) {
      return *std::move(frame);
    } else {
      child_.reset();
      return NoAnswer(absl::StrCat("out of turn (", frame->type, ")"));
    }
  }
}

// It took too long: whether by looping or by filling its memory.
Death Bench::PutDown(absl::Duration limit) {
  const int64_t used = MemoryBytes(child_->pid());
  child_->Kill();
  child_.reset();
  const std::string time = absl::StrCat("no end within ", absl::FormatDuration(limit));
  if (options_.memory_bytes > 0 &&
      used > kMemoryShare * static_cast<double>(options_.memory_bytes)) {
    return {Stage::kResources,
            absl::StrCat("allocated ", used >> 20, " MiB of ", options_.memory_bytes >> 20,
                         " MiB allowed, and ", time)};
  }
  return {Stage::kTimeout, time};
}

Death Bench::Autopsy(const std::optional<FaultNote>& note) {
  const ChildEnd end = child_->Wait(&cancel_, absl::Now() + kDying);
  child_.reset();
  Death death{Stage::kCrash,
              note && !note->text.empty() ? note->text : absl::StrCat("crash: ", Print(end)),
              note ? note->entrant : -1};
  const int64_t used = std::max(note ? note->memory_bytes : 0, end.peak_bytes);
  if (note && note->out_of_bounds) {
    death.stage = Stage::kOutOfBounds;
  } else if (options_.memory_bytes > 0 &&
             used > kMemoryShare * static_cast<double>(options_.memory_bytes)) {
    death.stage = Stage::kResources;
    death.reason = absl::StrCat("allocated ", used >> 20, " MiB of ", options_.memory_bytes >> 20,
                                " MiB allowed; ", death.reason);
  }
  return death;
}

absl::StatusOr<TriedAnswer> Bench::Try(const TryRequest& request, absl::Duration launch_limit) {
  KILN_RETURN_IF_ERROR(Ready().status());
  KILN_ASSIGN_OR_RETURN(auto reply, Ask(FrameType::kTry, Encode(request), FrameType::kTried,
                                        std::min(launch_limit, options_.launch_limit)));
  if (const Death* death = std::get_if<Death>(&reply))
    return TriedAnswer{.stage = death->stage, .reason = death->reason};
  return Parse<TriedAnswer>(std::get<Frame>(reply));
}

absl::StatusOr<EnteredAnswer> Bench::Enter(const EnterRequest& request) {
  KILN_RETURN_IF_ERROR(Ready().status());
  KILN_ASSIGN_OR_RETURN(auto reply, Ask(FrameType::kEnter, Encode(request), FrameType::kEntered,
                                        options_.launch_limit));
  if (const Death* death = std::get_if<Death>(&reply))
    return EnteredAnswer{.stage = death->stage, .reason = death->reason};
  return Parse<EnteredAnswer>(std::get<Frame>(reply));
}

absl::StatusOr<std::variant<ContestedAnswer, Death>> Bench::Contest(const ContestRequest& request) {
  KILN_RETURN_IF_ERROR(Ready().status());
  KILN_ASSIGN_OR_RETURN(auto reply, Ask(FrameType::kContest, Encode(request), FrameType::kContested,
                                        options_.launch_limit));
  if (Death* death = std::get_if<Death>(&reply))
    return std::variant<ContestedAnswer, Death>(std::move(*death));
  KILN_ASSIGN_OR_RETURN(ContestedAnswer answer, Parse<ContestedAnswer>(std::get<Frame>(reply)));
  return std::variant<ContestedAnswer, Death>(std::move(answer));
}

}  // namespace kiln::worker
