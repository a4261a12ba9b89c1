// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/lookup/load.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace kiln::bench {
namespace {

constexpr char kMethod[] = "/kiln.v1.KilnService/GetSchedule";

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Flight {
  std::unique_ptr<grpc::ClientContext> context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  grpc::ByteBuffer response;
  grpc::Status status;
  int64_t started = 0;
};

grpc::ByteBuffer Bytes(const std::string& text) {
  grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

LoadClient::LoadClient(const std::string& address, int threads, int channels_per_thread)
    : threads_(threads) {
  stubs_.resize(threads);
  for (auto& stubs : stubs_) {
    for (int i = 0; i < channels_per_thread; ++i) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      stubs.push_back(std::make_unique<grpc::GenericStub>(
          grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments)));
    }
  }
}

std::string LoadClient::Call(const std::string& request) {
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  auto reader = stubs_[0][0]->PrepareUnaryCall(&context, kMethod, Bytes(request), &queue);
  grpc::ByteBuffer response;
  grpc::Status status;
  reader->StartCall();
  reader->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok()) {
    std::fprintf(stderr, "bench_lookup: %d %s\n", status.error_code(),
                 status.error_message().c_str());
    std::exit(1);
  }
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (response.Dump(&slices).ok()) {
    for (const grpc::Slice& slice : slices)
      bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

Load LoadClient::RunThread(int thread, int64_t first, int64_t calls, int in_flight,
                           const std::function<const std::string&(int64_t)>& request) {
  Load load;
  load.latency_ns.reserve(calls);
  grpc::CompletionQueue queue;
  std::vector<Flight> flights(std::min<int64_t>(in_flight, calls));
  int64_t started = 0;
  auto launch = [&](Flight* flight) {
    grpc::GenericStub* stub = stubs_[thread][started % stubs_[thread].size()].get();
    flight->context = std::make_unique<grpc::ClientContext>();
    flight->response.Clear();
    flight->started = Now();
    flight->reader = stub->PrepareUnaryCall(flight->context.get(), kMethod,
                                            Bytes(request(first + started)), &queue);
    flight->reader->StartCall();
    flight->reader->Finish(&flight->response, &flight->status, flight);
    ++started;
  };
  for (Flight& flight : flights) launch(&flight);
  void* tag = nullptr;
  bool ok = false;
  while (load.calls < calls && queue.Next(&tag, &ok)) {
    Flight* flight = static_cast<Flight*>(tag);
    load.latency_ns.push_back(Now() - flight->started);
    ++load.calls;
    if (!flight->status.ok()) {
      if (load.errors++ == 0) load.first_error = flight->status.error_message();
    }
    if (started < calls) launch(flight);
  }
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return load;
}

Load LoadClient::Run(int64_t calls, int in_flight,
                     const std::function<const std::string&(int64_t)>& request) {
  std::vector<Load> parts(threads_);
  std::vector<std::thread> threads;
  const int64_t start = Now();
  for (int t = 0; t < threads_; ++t) {
    const int64_t first = calls * t / threads_, end = calls * (t + 1) / threads_;
    threads.emplace_back([&, t, first, end] {
      parts[t] = RunThread(t, first, end - first, std::max(1, in_flight / threads_), request);
    });
  }
  for (std::thread& thread : threads) thread.join();
  Load load;
  load.seconds = static_cast<double>(Now() - start) / 1e9;
  for (Load& part : parts) {
    load.calls += part.calls;
    load.errors += part.errors;
    if (load.first_error.empty()) load.first_error = part.first_error;
    load.latency_ns.insert(load.latency_ns.end(), part.latency_ns.begin(), part.latency_ns.end());
  }
  return load;
}

}  // namespace kiln::bench
