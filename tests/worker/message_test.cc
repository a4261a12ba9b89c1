// SPDX-License-Identifier: Apache-2.0
#include "worker/message.h"

#include <fcntl.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/bench_protocol.h"

namespace kiln::worker {
namespace {

struct Pipe {
  Pipe() { EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0); }
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) close(end);
    }
  }
  void CloseInput() { close(ends[1]), ends[1] = -1; }
  int ends[2];
};

TEST(Message, LargeFramesArriveWhole) {
  Pipe pipe;
  const std::string payload(5 << 20, 'x');
  std::thread sender([&] {
    EXPECT_TRUE(SendFrame(pipe.ends[1], {3, payload}, absl::InfiniteFuture(), nullptr).ok());
    EXPECT_TRUE(SendFrame(pipe.ends[1], {4, ""}, absl::InfiniteFuture(), nullptr).ok());
  });
  auto first = ReceiveFrame(pipe.ends[0], absl::InfiniteFuture(), nullptr);
  auto second = ReceiveFrame(pipe.ends[0], absl::InfiniteFuture(), nullptr);
  sender.join();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->type, 3u);
  EXPECT_EQ(first->payload, payload);
  EXPECT_EQ(second->type, 4u);
}

TEST(Message, WaitsEndByDeadlineCancelAndClosedPipe) {
  Pipe pipe;
  EXPECT_EQ(ReceiveFrame(pipe.ends[0], absl::Now(), nullptr).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  CancelToken cancel;
  cancel.Cancel();
  EXPECT_EQ(ReceiveFrame(pipe.ends[0], absl::InfiniteFuture(), &cancel).status().code(),
            absl::StatusCode::kCancelled);
  ASSERT_EQ(write(pipe.ends[1], "half a frame", 12), 12);
  pipe.CloseInput();
  EXPECT_EQ(ReceiveFrame(pipe.ends[0], absl::InfiniteFuture(), nullptr).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(Message, WhatIsNoFrameIsRefused) {
  Pipe pipe;
  FrameHeader header;
  header.bytes = kMaxFrameBytes + 1;
  ASSERT_EQ(write(pipe.ends[1], &header, sizeof header), static_cast<ssize_t>(sizeof header));
  EXPECT_EQ(ReceiveFrame(pipe.ends[0], absl::InfiniteFuture(), nullptr).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(BenchProtocol, SetupSurvivesTheWire) {
  SetupRequest setup;
  setup.spec.program = "operator F(N) { input x[N]; output y[N] = x; }";
  setup.spec.dims = {{"N", {3, 9}}};
  setup.spec.types = {{"x", DType::kF16}};
  setup.spec.strides = {{"x", {2}}, {"y", {}}};
  setup.spec.alignment = {{"x", 4}};
  setup.spec.alias = {{"y", "x"}};
  setup.spec.policy = {
      .accumulate = {{"y", DType::kBf16}}, .tf32 = true, .fixed_order = true, .library = false};
  setup.objective = {CacheState::kCold, Burst::kSustained};
  setup.threads = 5, setup.seed = ~uint64_t{0}, setup.last_level_bytes = 7, setup.floor_ns = 1.5;
  setup.launch_limit_ns = 11, setup.reference_limit_ns = 12;
  setup.reference = std::string("a\0b", 3);
  setup.directory = "folder";
  const auto back = Decode<SetupRequest>(Encode(setup));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->spec, setup.spec);
  EXPECT_EQ(back->objective, setup.objective);
  EXPECT_EQ(back->seed, setup.seed);
  EXPECT_EQ(back->reference, setup.reference);
  EXPECT_EQ(back->directory, "folder");
  EXPECT_EQ(back->launch_limit_ns, 11);
  EXPECT_EQ(back->reference_limit_ns, 12);
}

TEST(BenchProtocol, AnswersSurviveTheWire) {
  TriedAnswer tried{.stage = Stage::kTooSlow, .reason = "why", .verify_ns = 1, .measure_ns = 2};
  tried.measurement = Measurement{.samples_ns = {4, 5},
                                  .samples = 2,
                                  .median_ns = 4.5,
                                  .rejected = {{"stolen", 3}},
                                  .conditions = {{"load", "0.1"}}};
  const auto back = Decode<TriedAnswer>(Encode(tried));
  ASSERT_TRUE(back.has_value() && back->measurement.has_value());
  EXPECT_EQ(back->stage, Stage::kTooSlow);
  EXPECT_EQ(back->measurement->samples_ns, tried.measurement->samples_ns);
  EXPECT_EQ(back->measurement->rejected.at("stolen"), 3);
  EXPECT_EQ(back->measurement->conditions.at("load"), "0.1");

  ContestedAnswer contested{{{1, 0, 3}, {}}, {Measurement{.samples = 2}, Measurement{}}};
  EXPECT_EQ(Decode<ContestedAnswer>(Encode(contested))->rounds_ns, contested.rounds_ns);
  EnteredAnswer entered{
      .verification = {.method = "m", .sets = 2, .seed = 9, .set_names = {"a", "b"}}};
  EXPECT_EQ(Decode<EnteredAnswer>(Encode(entered))->verification.set_names,
            entered.verification.set_names);
}

// What a dying child may send: every prefix and random damage is an answer or nothing, never a
// crash.
TEST(BenchProtocol, DamagedPayloadsAreRefused) {
  TriedAnswer tried{
      .reason = "a reason",
      .measurement = Measurement{.samples_ns = {1, 2, 3}, .conditions = {{"a", "b"}}}};
  const std::string whole = Encode(tried);
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(Decode<TriedAnswer>(absl::string_view(whole).substr(0, size)).has_value()) << size;
  }
  EXPECT_FALSE(Decode<TriedAnswer>(whole + "x").has_value());
  std::mt19937_64 random(5);
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = whole;
    for (int j = 0; j < 4; ++j) damaged[random() % damaged.size()] = static_cast<char>(random());
    (void)Decode<TriedAnswer>(damaged);
    (void)Decode<ContestedAnswer>(damaged);
  }
}

}  // namespace
}  // namespace kiln::worker
